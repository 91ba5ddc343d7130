"""The rows of a run: those of its datasets, and those that augmentation adds to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.training.augmentation.settings import AugmentationSettings
from teo.training.config import DataSettings
from teo.training.rows import read_rows

ADDED = Row("added", Dialogue(("anna likes tea",), "why does anna like tea"), "why does anna like tea")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[AugmentationSettings, int]]:
    """Return what augmentation was asked for: its settings and how many rows it was given."""
    calls: list[tuple[AugmentationSettings, int]] = []

    def augment(settings: AugmentationSettings, rows: Sequence[Row]) -> list[Row]:
        calls.append((settings, len(rows)))
        return [ADDED]

    module = ModuleType("teo.training.augmentation.augment")
    module.augment = augment  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_rows_are_added_once_an_epoch_after_those_of_the_datasets(
    rows_folder: Path, tmp_path: Path, asked: list[tuple[AugmentationSettings, int]]
) -> None:
    settings = AugmentationSettings(identity=0.5, labels=str(tmp_path / "labels.jsonl"))
    rows = read_rows([DataSettings(path=str(rows_folder), rows=10, repeat=3)], tmp_path, settings)
    assert asked == [(settings, 10)]
    assert rows.train[10:] == [ADDED]
    assert rows.repeats == [3] * 10 + [1]
    assert ADDED not in rows.dev
    assert rows.sources == [rows_folder, tmp_path / "labels.jsonl"], "files that rows are made from are hashed too"


@pytest.mark.parametrize("settings", [None, AugmentationSettings(), AugmentationSettings(seed=7)])
def test_nothing_is_added_unless_it_is_asked_for(
    rows_folder: Path,
    tmp_path: Path,
    settings: AugmentationSettings | None,
    asked: list[tuple[AugmentationSettings, int]],
) -> None:
    assert len(read_rows([DataSettings(path=str(rows_folder))], tmp_path, settings).train) == 48
    assert asked == []
