"""The pretrained backbone in 8 bits: small enough to keep beside the code, exact enough to fine-tune from.

A matrix is stored in int8 with one scale per row; vectors stay in half precision.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from teo.errors import ModelError
from teo.files import write_whole
from teo.models.backbone import TeoForConditionalGeneration
from teo.models.configuration import TeoConfig

BASE = "teo-base"
"""The name of the project's pretrained backbone as a model to start from."""
BASE_VARIABLE = "TEO_BASE"
"""Environment variable: the folder of the pretrained backbone, if it is not in the checkout."""
BYTES = "model.int8.safetensors"
_SCALE = ".scale"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def find_base() -> Path:
    """Return the folder of the pretrained backbone: the environment's, the current folder's or the checkout's."""
    checkout = Path(__file__).resolve().parents[3] / "weights" / "base"
    named = os.environ.get(BASE_VARIABLE)
    for folder in [Path(named)] if named else [Path("weights/base"), checkout]:
        if (folder / BYTES).is_file():
            return folder
    raise ModelError(
        f"{BASE}: expected the pretrained backbone in weights/base of a checkout, found none; "
        f"clone the repository, or name its folder in {BASE_VARIABLE}"
    )


def quantise(weight: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the int8 rows of a matrix and the scale of each: weight = rows * scale, symmetric, absmax / 127."""
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-8).astype(np.float32) / np.float32(127)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def save_bytes(model: TeoForConditionalGeneration, tokenizer_folder: Path, path: Path) -> None:
    """Write a model in 8 bits with the tokenizer of another folder."""
    path.mkdir(parents=True, exist_ok=True)
    stored: dict[str, torch.Tensor] = {}
    for name, weight in model.named_parameters():  # tied weights come once
        if weight.dim() < 2:
            stored[name] = weight.detach().half()
            continue
        rows, scale = quantise(weight.detach().float().cpu().numpy())
        stored[name], stored[name + _SCALE] = torch.from_numpy(rows), torch.from_numpy(scale)
    write_whole(path / BYTES, lambda beside: save_file(stored, str(beside)))
    model.config.save_pretrained(path)
    for name in _TOKENIZER:
        shutil.copyfile(tokenizer_folder / name, path / name)


def load_bytes(path: Path) -> TeoForConditionalGeneration:
    """Return the model that a folder holds in 8 bits, in full precision."""
    model = TeoForConditionalGeneration(TeoConfig.from_pretrained(path))
    stored = load_file(str(path / BYTES))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name not in stored or stored[name].shape != weight.shape:
                raise ModelError(f"{path / BYTES}: expected {name} of shape {tuple(weight.shape)}; get the file again")
            scale = stored.get(name + _SCALE)
            weight.copy_(stored[name].float() if scale is None else stored[name].float() * scale[:, None])
    return model
