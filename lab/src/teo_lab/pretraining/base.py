"""A pretrained backbone in 8 bits, as `weights/base` holds it."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from teo.errors import ModelError
from teo.models import TeoConfig, TeoForConditionalGeneration
from teo.models.storage import save_bytes

_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


def save_checkpoint(checkpoint: Path, path: Path) -> None:
    """Write a pretrained backbone and its tokenizer in 8 bits, as `weights/base` holds them."""
    missing = [name for name in _FILES if not (checkpoint / name).is_file()]
    if missing:
        raise ModelError(
            f"{checkpoint}: expected the folder of a backbone with its tokenizer, found no {missing[0]}; "
            "give the model folder that teo-lab pretrain wrote"
        )
    kind = json.loads((checkpoint / "config.json").read_text(encoding="utf-8")).get("model_type")
    if kind != TeoConfig.model_type:
        raise ModelError(f"{checkpoint}: expected the project's own backbone (model_type teo), found {kind}")
    save_bytes(TeoForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32), checkpoint, path)
