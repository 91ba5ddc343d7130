"""A backbone in 8 bits, as `weights/base` holds it: a pretrained one, or what a training run has learned so far."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch

from teo.errors import ModelError
from teo.models import TeoConfig, TeoForConditionalGeneration
from teo.models.storage import save_bytes
from teo.training.backbones import load_base
from teo.training.config import read_config
from teo.training.loop import CHECKPOINT
from teo.training.losses import loss_model
from teo.training.run_folder import SHARED, WORK

_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


def save_checkpoint(checkpoint: Path, path: Path) -> None:
    """Write a backbone and its tokenizer in 8 bits.

    `checkpoint` is the model folder that pretraining wrote, or the output folder of a fine-tuning run in shared weights
    that is not finished: its last checkpoint is taken, the running average of the weights if it has one.
    """
    if (checkpoint / WORK / SHARED / CHECKPOINT).is_file():
        _save_unfinished(checkpoint, path)
        return
    missing = [name for name in _FILES if not (checkpoint / name).is_file()]
    if missing:
        raise ModelError(
            f"{checkpoint}: expected the folder of a backbone with its tokenizer, found no {missing[0]}; "
            "give the model folder that teo-lab pretrain wrote, or that of a run with a checkpoint"
        )
    kind = json.loads((checkpoint / "config.json").read_text(encoding="utf-8")).get("model_type")
    if kind != TeoConfig.model_type:
        raise ModelError(f"{checkpoint}: expected the project's own backbone (model_type teo), found {kind}")
    save_bytes(TeoForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32), checkpoint, path)


def _save_unfinished(run: Path, path: Path) -> None:
    """Write what an unfinished run has learned."""
    model, codec = load_base(read_config(run / WORK / "config.toml").model.base)
    if not isinstance(model, TeoForConditionalGeneration):
        raise ModelError(f"{run}: expected a run of the project's own backbone, found {type(model).__name__}")
    fitted = loss_model(model)
    stored = torch.load(run / WORK / SHARED / CHECKPOINT, map_location="cpu", weights_only=True)
    fitted.load_state_dict(stored["model"])
    if "average" in stored:
        with torch.no_grad():
            for weight, average in zip(fitted.parameters(), stored["average"], strict=True):
                weight.copy_(average)
    with tempfile.TemporaryDirectory() as folder:
        codec.tokenizer.save_pretrained(folder)
        save_bytes(model, Path(folder), path)
