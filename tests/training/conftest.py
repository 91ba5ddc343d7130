"""A tiny base model and a few rows of the copy task, made once for all tests of training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from teo.training.backbones import build_random
from teo.training.config import RandomModel, TrainConfig
from teo.training.saving import save_weights
from teo.training.settings import build, merge
from teo.training.synthetic import generate_rows, write_rows

torch.set_num_threads(1)

ConfigMaker = Callable[..., TrainConfig]


@pytest.fixture(scope="session")
def rows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with train.jsonl (48 rows), dev.jsonl and test.jsonl."""
    return write_rows(tmp_path_factory.mktemp("rows"), rows={"train": 48, "dev": 8, "test": 8})


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny BART with dropout, so that random states matter."""
    texts = [
        text for row in generate_rows(200) for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)
    ]
    folder = tmp_path_factory.mktemp("base") / "model"
    save_weights(*build_random(RandomModel(width=16, layers=1, heads=2, dropout=0.1), texts), folder)
    return folder


@pytest.fixture
def make_config(base_folder: Path, rows_folder: Path, tmp_path: Path) -> ConfigMaker:
    """Return a function that gives a small run's configuration, with changes laid over it."""

    def make(**changes: Any) -> TrainConfig:
        tree = {
            "output": str(tmp_path / "model"),
            "device": "cpu",
            "model": {"base": str(base_folder), "source_limit": 64, "target_limit": 32},
            "data": {"path": str(rows_folder)},
            "optimisation": {"epochs": 2, "batch_size": 8, "learning_rate": 1e-3},
            "evaluation": {"batch_size": 8},
            "writing": {"plots": False, "log_every": 1},
        }
        return build(TrainConfig, merge(tree, changes), "test")

    return make
