"""The rows of a run: those of its datasets, and the complete utterances that are made from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teo.training.config import DataSettings, UnchangedSettings
from teo.training.rows import read_operations, read_rows


def test_rows_are_added_once_an_epoch_after_those_of_the_datasets(rows_folder: Path, tmp_path: Path) -> None:
    data = DataSettings(path=str(rows_folder), rows=10, repeat=3)
    plain, rows = read_rows([data], tmp_path), read_rows([data], tmp_path, UnchangedSettings(identity=1.0, reactions=4))
    added = rows.train[10:]
    assert (rows.train[:10], rows.dev, rows.sources) == (plain.train, plain.dev, [rows_folder])
    assert [row.id for row in added] == [
        *(f"identity:{row.id}" for row in plain.train if not row.is_complete),
        *(f"reaction-{number}" for number in range(4)),
    ]
    assert rows.repeats == [3] * 10 + [1] * len(added)
    assert all(row.is_complete for row in added)


@pytest.mark.parametrize("settings", [None, UnchangedSettings()])
def test_nothing_is_added_unless_it_is_asked_for(
    rows_folder: Path, tmp_path: Path, settings: UnchangedSettings | None
) -> None:
    assert len(read_rows([DataSettings(path=str(rows_folder))], tmp_path, settings).train) == 48


def test_what_is_added_follows_from_the_seed(rows_folder: Path, tmp_path: Path) -> None:
    first, again, other = (
        read_rows([DataSettings(path=str(rows_folder))], tmp_path, UnchangedSettings(identity=0.5), seed=seed).train
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_rows_of_several_datasets_have_ids_of_their_own(rows_folder: Path, tmp_path: Path) -> None:
    data = DataSettings(path=str(rows_folder))
    ids = [row.id for row in read_rows([data, data], tmp_path).train]
    assert len(set(ids)) == len(ids) == 96


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps({"history": ["a"], **row}) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_of_one_id_are_told_apart(tmp_path: Path) -> None:
    row = {"utterance": "b", "rewrite": "c"}
    file = write(tmp_path / "x.jsonl", *({"id": name, **row} for name in ("7", "7", "7 (2)", "7")))
    rows = read_rows([DataSettings(path=str(file), train="all", dev="all")], tmp_path)
    assert [row.id for row in rows.train] == [row.id for row in rows.dev] == ["7", "7 (2)", "7 (2) (2)", "7 (3)"]


def test_half_an_emoji_is_the_replacement_character(tmp_path: Path) -> None:
    half = "\ud83d"
    texts = {"utterance": f"b{half}", "rewrites": [f"c{half}", f"d{half}"], "history": [f"a{half}"]}
    file = write(tmp_path / "x.jsonl", {"id": half, **texts})
    (row,) = read_rows([DataSettings(path=str(file), train="all", dev="")], tmp_path).train
    assert row.to_dict() == {
        "id": "\ufffd",
        "history": ["a\ufffd"],
        "utterance": "b\ufffd",
        "rewrite": "c\ufffd",
        "rewrites": ["c\ufffd", "d\ufffd"],
    }
    operations = write(tmp_path / "operations.jsonl", {"id": half, "operations": f"[I] {half}"})
    assert [operation.new for operation in read_operations(operations)["\ufffd"]] == ["\ufffd"]
