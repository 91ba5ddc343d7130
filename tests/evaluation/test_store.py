"""Evaluations are kept without the dataset's text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from teo.evaluation.store import main

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
    assert main([str(tmp_path / "results" / "ours"), str(run)]) == 0
    packed = (tmp_path / "results" / "ours" / "task-test-fast.rows.jsonl.gz").read_bytes()
    kept = gzip.decompress(packed).decode()
    assert "acted" not in kept
    assert "secret" not in kept
    first, second = map(json.loads, kept.splitlines())
    assert (first["right"], first["changed"], first["score"]) == (True, True, -0.75)
    assert (second["right"], second["changed"]) == (False, False)
    assert first["hash"] != second["hash"]
    stored = json.loads((tmp_path / "results" / "ours" / "task-test-fast.json").read_text(encoding="utf-8"))
    assert stored["em"] == 0.5


def test_what_is_no_run_is_said(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "predictions.jsonl").unlink()
    assert main([str(tmp_path / "out"), str(tmp_path)]) == 2
    assert main([str(tmp_path / "out"), str(run)]) == 2
    assert main(["only"]) == 2
    assert not (tmp_path / "out").exists()
    assert "expected the metrics that teo evaluate wrote" in capsys.readouterr().err
