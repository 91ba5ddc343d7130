"""The mean of models that were fine-tuned from one start.

Runs that differ in seed or data only lie close together; their mean often beats each of them, at the cost of one. The
mean of a model and the one that it was fine-tuned from keeps more of what the latter knew.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from teo.errors import ConfigError, ModelError
from teo.loading import DEFAULT_MODEL, ModelFolder
from teo.runtime.torch_generator import load_model
from teo.runtime.torch_reading import find_graphs, read_exported
from teo.training.backbones import EMBEDDED
from teo.training.saving import disk_errors, whole_folder


def average(out: Path, folders: Sequence[Path], share: float = 0.0) -> None:
    """Write the mean of model folders of equal shape; description and tokenizers are those of the first.

    `share` is that of the first folder, the others have equal parts of the rest; 0: all have equal parts. All but the
    first may be exported models with one set of weights, or the embedded one by its name.
    """
    if len(folders) < 2:
        raise ConfigError(f"average: expected at least two model folders, found {len(folders)}")
    if not 0 <= share < 1:
        raise ConfigError(f"share: expected a number from 0 to below 1, found {share:g}")
    first, *others = (DEFAULT_MODEL if str(folder) == EMBEDDED else folder for folder in folders)
    described = ModelFolder.load(first)
    if any(_prompts(ModelFolder.load(folder)) != _prompts(described) for folder in others):
        raise ModelError("average: expected models with the same roles, found different ones; train them alike")
    weights = sorted({role.folder for role in described.roles.values()})
    each = (1 - (share or 1 / len(folders))) / len(others)
    with disk_errors(out), whole_folder(out, *folders) as written:
        for name in weights:
            shutil.copytree(first / name, written / name)
            _mean(load_model(first / name), [(folder, name) for folder in others], each).save_pretrained(written / name)
        described.save(written)


def _prompts(model: ModelFolder) -> dict[str, tuple[str, ...]]:
    return {name: role.prompt for name, role in model.roles.items()}


def _mean(model: Any, others: Sequence[tuple[Path, str]], share: float) -> Any:
    """Return a model moved towards others by a share each; weights that all have alike stay as they are, to the bit."""
    first = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    with torch.no_grad():
        for folder, name in others:
            graphs = find_graphs(folder)
            other = dict((load_model(folder / name) if graphs is None else read_exported(graphs)).named_parameters())
            for key, weight in model.named_parameters():
                if key not in other or other[key].shape != weight.shape:
                    raise ModelError(f"{folder}: expected {key} of shape {tuple(weight.shape)} as in the first model")
                weight.add_(other[key] - first[key], alpha=share)
    return model
