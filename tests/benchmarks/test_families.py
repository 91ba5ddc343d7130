"""The benchmark of exported families: what it measures and how it says it, with tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="exporting a model needs torch")
pytest.importorskip("transformers", reason="exporting a model needs transformers")
pytest.importorskip("onnx", reason="exporting a model needs onnx")

import baselines  # noqa: E402
from families import main  # noqa: E402

TINY = [
    "model.random.width=16",
    "model.random.heads=2",
    "optimisation.epochs=1",
    "optimisation.batch_size=400",
    "evaluation.batch_size=100",
]
ROWS = [
    {"id": "1", "history": ["Ben is here"], "utterance": "is he", "rewrite": "is Ben"},
    {"id": "2", "history": ["乔峰在这里"], "utterance": "在吗", "rewrite": "乔峰在吗"},
]


def tiny_bart() -> dict[str, Any]:
    settings: dict[str, Any] = {"vocab_size": 16_384, "d_model": 16, "max_position_embeddings": 512}
    for side in ("encoder", "decoder"):
        settings |= {f"{side}_layers": 1, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
    return settings


@pytest.mark.slow
def test_texts_are_compared_and_systems_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baselines, "bart_settings", tiny_bart)
    rows = tmp_path / "test.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    options = ["--rows", "5", "--rounds", "1", "--threads", "1", "--batch-size", "2", "--out", str(tmp_path / "out")]
    main([f"jsonl={rows}", *options, "--families", "bart", "--set", *TINY])
    kept = json.loads((tmp_path / "out" / "kept.json").read_text())
    assert {name: {form: loss["rows"] for form, loss in forms.items()} for name, forms in kept.items()} == {
        "bart": {"float32": 5, "int8": 5}
    }
    race = json.loads((tmp_path / "out" / "race.json").read_text())
    assert [speed["name"] for speed in race["speeds"]] == [
        "two-pass BART-base, transformers fp32, 1 thread",
        "two-pass BART-base, exported float32, 1 thread",
        "two-pass BART-base, exported int8, 1 thread",
    ]
    assert race["facts"]["data"] == "jsonl"
    assert json.loads(capsys.readouterr().out) == {"kept": kept, "race": race}
