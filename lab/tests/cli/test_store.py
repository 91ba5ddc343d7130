"""Evaluations are kept without the dataset's text."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from teo.errors import InputError
from teo_lab.cli.store import store

ROWS = [
    {
        "id": "a",
        "history": ["secret history"],
        "current": "he acted",
        "reference": "Ben acted",
        "prediction": "Ben acted",
        "scores": {"operations": -0.5, "rewrite": -0.25},
    },
    {
        "id": "b",
        "history": ["secret history"],
        "current": "he acted",
        "reference": "Ben acted",
        "prediction": "He acted",
        "scores": {"joint": -1.0},
    },
    {
        "id": "c",
        "history": ["secret history"],
        "current": "he acted",
        "reference": "Ben acted",
        "references": ["Affleck acted"],
        "prediction": "Affleck acted",
        "scores": {"joint": -1.0},
    },
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    settings = {"data": "task", "split": "test", "variant": "fast"}
    (folder / "metrics.json").write_text(json.dumps({"em": 0.5, "settings": settings}), encoding="utf-8")
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return folder


def test_rows_are_kept_without_text(run: Path, tmp_path: Path) -> None:
    store(tmp_path / "results" / "ours", [run])
    packed = (tmp_path / "results" / "ours" / "task-test-fast.rows.jsonl.gz").read_bytes()
    kept = gzip.decompress(packed).decode()
    assert "acted" not in kept
    assert "secret" not in kept
    first, second, third = map(json.loads, kept.splitlines())
    assert (first["right"], first["changed"], first["score"]) == (True, True, -0.75)
    assert (second["right"], second["changed"]) == (False, False)
    assert (third["right"], third["changed"]) == (True, True), "another accepted rewrite"
    assert first["hash"] != second["hash"]
    stored = json.loads((tmp_path / "results" / "ours" / "task-test-fast.json").read_text(encoding="utf-8"))
    assert stored["em"] == 0.5


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (".", "metrics.json: expected the metrics that teo evaluate wrote"),
        ("run", "predictions.jsonl: no such file; give the folder that teo evaluate wrote"),
    ],
)
def test_what_is_no_run_is_said(tmp_path: Path, run: Path, folder: str, message: str) -> None:
    (run / "predictions.jsonl").unlink()
    with pytest.raises(InputError, match=re.escape(message)):
        store(tmp_path / "out", [tmp_path / folder])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("keep", "n", "message"),
    [
        (-9, 3, "predictions.jsonl:3: expected a row that teo evaluate wrote (JSONDecodeError"),
        (None, 4, "predictions.jsonl: expected 4 rows, as metrics.json has them, found 3; run teo evaluate again"),
    ],
    ids=["torn in a line", "torn between lines"],
)
def test_torn_predictions_are_refused(tmp_path: Path, run: Path, keep: int | None, n: int, message: str) -> None:
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    (run / "metrics.json").write_text(json.dumps({**metrics, "n": n}), encoding="utf-8")
    predictions = run / "predictions.jsonl"
    predictions.write_bytes(predictions.read_bytes()[:keep])
    with pytest.raises(InputError, match=re.escape(message)):
        store(tmp_path / "out", [run])
    assert not (tmp_path / "out").exists()


def test_a_row_without_its_fields_is_refused(tmp_path: Path, run: Path) -> None:
    (run / "predictions.jsonl").write_text('{"id": "a"}\n[]\n', encoding="utf-8")
    with pytest.raises(InputError, match=re.escape("predictions.jsonl:1: expected a row that teo evaluate wrote")):
        store(tmp_path / "out", [run])
