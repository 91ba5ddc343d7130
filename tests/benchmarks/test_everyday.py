"""The everyday benchmark: its files, how it counts, and that the embedded model does not get worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everyday import FOLDER, LANGUAGES, main, measure, outcome, read_dialogues
from teo.errors import TeoError
from teo.evaluation.markdown import percent
from teo.loading import has_default

STORED = Path(__file__).resolve().parents[2] / "results" / "default" / "everyday.json"
FLOORS = {"en": (32, 30), "zh": (33, 32)}
"""Right and kept of the development dialogues with the embedded model when this was written."""
MARGIN = 3
"""Utterances that may be lost: 8-bit sums are rounded differently by other processors."""

with_model = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")


class Scripted:
    """A rewriter that answers from a table, and else keeps."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def rewrite_many(self, dialogues):
        from teo.result import Rewrite

        return [Rewrite(self.answers.get(row["utterance"], row["utterance"])) for row in dialogues]


INCOMPLETE = {"kind": "pronoun", "utterance": "Is it new?", "rewrites": ["Is the car new?", "Is this car new?"]}
COMPLETE = {"kind": "keep-switch", "utterance": "What time is it?", "rewrites": ["What time is it?"]}


@pytest.mark.parametrize(
    ("row", "rewrite", "expected"),
    [
        (INCOMPLETE, "Is the car new?", "right"),
        (INCOMPLETE, "is this  car new?", "right"),  # another accepted rewrite; case and white space do not count
        (INCOMPLETE, "Is it new?", "missed"),
        (INCOMPLETE, "Is the bus new?", "wrong"),
        (COMPLETE, "What time is it?", "kept"),
        (COMPLETE, "What time is the car?", "changed"),
    ],
)
def test_an_utterance_has_one_outcome(row, rewrite, expected):
    assert outcome(row, rewrite) == expected


def test_counts_add_up_in_all_and_by_kind():
    rows = [{**row, "history": ["My car is here."]} for row in (INCOMPLETE, INCOMPLETE, COMPLETE)]
    counts = measure(Scripted({"Is it new?": "Is the car new?"}), rows)
    assert counts == {
        "incomplete": 2,
        "complete": 1,
        "right": 2,
        "missed": 0,
        "wrong": 0,
        "kept": 1,
        "by_kind": {"pronoun": {"right": 2}, "keep-switch": {"kept": 1}},
    }


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.jsonl")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_complete_utterance_is_its_own_only_rewrite(path):
    for row in read_dialogues(path):
        assert (row["rewrites"] == [row["utterance"]]) is row["kind"].startswith("keep-"), row["id"]


@with_model
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_embedded_model_is_no_worse_than_it_was(language):
    from teo.rewriter import Rewriter

    counts = measure(Rewriter.from_pretrained(), read_dialogues(FOLDER / "dev" / f"{language}.jsonl"))
    right, kept = FLOORS[language]
    assert counts["right"] >= right - MARGIN
    assert counts["kept"] >= kept - MARGIN


@pytest.mark.parametrize(("language", "name"), [("en", "English"), ("zh", "Chinese")])
def test_the_folders_page_has_the_stored_result(language, name):
    counts = json.loads(STORED.read_text(encoding="utf-8"))["languages"][language]
    shares = [percent(counts[key] / counts["incomplete"]) for key in ("right", "missed", "wrong")]
    row = " | ".join([name, *shares, percent(counts["kept"] / counts["complete"])])
    assert f"| {row} |" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_a_model_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["everyday.py", "--model", str(tmp_path / "none")])
    with pytest.raises(TeoError, match="none"):
        main()
