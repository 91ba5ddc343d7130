"""benchmarks/own_data.py: what training brings on one's own rows and costs elsewhere, with rewriters by rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import own_data
from teo.dialogue import Dialogue
from teo.result import Rewrite

ROWS = [
    {"id": "a-1", "history": ["Where is Ada?"], "utterance": "is she up?", "rewrite": "is Ada up?", "need": [["Ada"]]},
    {"id": "a-2", "history": ["Where is Ada?"], "utterance": "Hello you!", "rewrite": "Hello you!"},
]


class Rule:
    """A rewriter that puts a name for a pronoun, or nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def rewrite_many(self, dialogues: list[Dialogue], *, min_confidence: float) -> list[Rewrite]:
        assert min_confidence == 0
        texts = [dialogue.utterance.replace("she", self.name) for dialogue in dialogues]
        return [Rewrite(text, changed=True, confidence=0.4) for text in texts]


def test_before_and_after_on_own_and_everyday_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "mine", tmp_path / "out.json"
    folder.mkdir()
    for part in ("train", "test"):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    monkeypatch.setattr(
        own_data.Rewriter, "from_pretrained", staticmethod(lambda model=None: Rule("Ada" if model else "it"))
    )
    own_data.main([f"{folder}=trained", "--out", str(out)])
    found = json.loads(out.read_text(encoding="utf-8"))["domains"]["mine"]
    assert found["train_rows"] == 2
    counts = {when: found["test"][when]["search"]["meaning"]["counts"] for when in ("before", "after")}
    assert (counts["before"]["right"], counts["after"]["right"]) == (0, 1)
    assert found["test"]["after"]["balanced"]["meaning"]["counts"]["missed"] == 1, "0.4 is below the threshold"
    assert found["everyday"]["en"]["before"]["incomplete"] == 831
    printed = capsys.readouterr().out
    assert "| `mine` | search | trained | 100.0 |" in printed
    assert "| trained on `mine` |" in printed
