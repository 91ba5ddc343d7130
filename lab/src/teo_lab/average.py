"""The mean of models that were fine-tuned from one start.

Runs that differ in seed or data only lie close together; their mean often beats each of them, at the cost of one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from teo.errors import ConfigError, ModelError
from teo.loading import ModelFolder
from teo.runtime.torch_generator import load_model
from teo.training.saving import disk_errors, whole_folder


def average(out: Path, folders: Sequence[Path]) -> None:
    """Write the mean of model folders of equal shape; description and tokenizers are those of the first."""
    if len(folders) < 2:
        raise ConfigError(f"average: expected at least two model folders, found {len(folders)}")
    described = [ModelFolder.load(folder) for folder in folders]
    if any(model.roles != described[0].roles for model in described):
        raise ModelError("average: expected models with the same roles, found different ones; train them alike")
    weights = sorted({role.folder for role in described[0].roles.values()})
    with disk_errors(out), whole_folder(out, *folders) as written:
        for name in weights:
            shutil.copytree(folders[0] / name, written / name)
            _mean([folder / name for folder in folders]).save_pretrained(written / name)
        described[0].save(written)


def _mean(folders: Sequence[Path]) -> Any:
    """Return a model with the mean of the folders' weights."""
    model = load_model(folders[0])
    with torch.no_grad():
        for folder in folders[1:]:
            other = dict(load_model(folder).named_parameters())
            for name, weight in model.named_parameters():
                if name not in other or other[name].shape != weight.shape:
                    raise ModelError(f"{folder}: expected {name} of shape {tuple(weight.shape)} as in {folders[0]}")
                weight.add_(other[name])
        for weight in model.parameters():
            weight.div_(len(folders))
    return model
