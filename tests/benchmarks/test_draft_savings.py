"""The benchmark of drafts: what it measures and how it says it, on the embedded model and a few rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drafts import Ours, check_texts, main
from teo.dialogue import Dialogue
from teo.errors import TeoError
from teo.loading import open_model

ROWS = [
    {"id": "1", "history": ["Who wrote Dune?", "Frank Herbert."], "utterance": "When did he die?", "rewrite": "?"},
    {"id": "2", "history": ["你最喜欢谁", "乔峰"], "utterance": "为什么呢", "rewrite": "?"},
    {"id": "3", "history": ["Is it cold?", "Yes, in Oslo."], "utterance": "And in Rome?", "rewrite": "?"},
]


def test_drafts_save_passes_and_everything_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "drafts.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    options = "--split all --rows 3 --rounds 1 --batch-size 2 --variants direct fused --lengths --out"
    main([f"jsonl={file}", *options.split(), str(out)])
    found = json.loads(out.read_text(encoding="utf-8"))
    parts = found["datasets"]["jsonl"]["parts"]
    for plain, drafted in (parts[:2], parts[2:]):
        assert (plain["system"], drafted["system"]) == ("no drafts", "drafts")
        assert 0 < drafted["passes"] < plain["passes"] / 1.5
    for row in parts:
        assert sum(row[part] for part in ("encoder", "decoder", "tokenizer", "python")) == pytest.approx(1)
        assert row["encoder"] > 0.1 and row["decoder"] > 0.05 and row["tokenizer"] > 0
    assert {row["system"] for row in found["datasets"]["jsonl"]["speeds"]} == {"drafts", "no drafts"}
    assert [row["tokens"] for row in found["lengths"]] == [16, 32, 64, 128, 256, 512]
    printed = capsys.readouterr().out
    assert "| direct | drafts |" in printed
    assert "| pipeline |  | passes a row | tokens a row | encoder | decoder | tokenizer | python |" in printed


def test_other_texts_are_an_error() -> None:
    model = open_model(None, threads=1)
    plain, drafted = Ours(model, drafts=False), Ours(model, drafts=True)
    dialogues = [Dialogue(tuple(row["history"]), str(row["utterance"])) for row in ROWS]
    check_texts([plain, drafted], dialogues, ["direct"], 2)

    class Wrong(Ours):
        def __call__(self, variant: str, size: int, dialogues: list[Dialogue]) -> tuple[float, list[str]]:  # type: ignore[override]
            return 0.0, ["?"] * len(dialogues)

    with pytest.raises(TeoError, match="direct gives other rewrites"):
        check_texts([plain, Wrong(model, drafts=True)], dialogues, ["direct"], 2)
