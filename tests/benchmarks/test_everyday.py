"""The everyday benchmark: its files, how it counts, and that the embedded model does not get worse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everyday import FOLDER, LANGUAGES, main, measure, propose, read_dialogues, read_kinds
from teo.data.row import MeaningKeys, Row
from teo.dialogue import Dialogue
from teo.errors import TeoError
from teo.loading import has_default
from teo.metrics.meaning import grade
from teo.result import Rewrite
from teo.units import holds_cjk

FLOORS = {"en": (40, 30), "zh": (44, 31)}
"""Right and kept of the development dialogues with the embedded model when this was written."""
MARGIN = 3
"""Utterances that may be lost: 8-bit sums are rounded differently by other processors."""

with_model = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")


def row(number: int, utterance: str, *rewrites: str) -> Row:
    keys = MeaningKeys((("car",), ("new",)), ("it",)) if utterance not in rewrites else None
    return Row(str(number), Dialogue(("My car is here.",), utterance), rewrites[0], rewrites[1:], keys)


def test_verdicts_are_counted_in_all_and_by_kind():
    rows = [row(1, "Is it new?", "Is the car new?"), row(2, "And new?", "Is the car new?"), row(3, "Hi.", "Hi.")]
    found = [("Is the car new?", 0.6), ("And is your car new?", 0.5), ("Hi there.", 0.4)]
    records = [Rewrite(text, changed=True, confidence=confidence) for text, confidence in found]
    counts = measure(rows, records, {"1": "pronoun", "2": "statement", "3": "keep-reaction"})
    assert (counts["incomplete"], counts["complete"], counts["exact"]) == (2, 1, 1)
    assert counts["meaning"]["counts"] == {"right": 2, "partly": 0, "wrong": 0, "missed": 0, "kept": 1, "harmed": 0}
    assert counts["by_kind"] == {"pronoun": {"right": 1}, "statement": {"right": 1}, "keep-reaction": {"kept": 1}}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", ["test", "dev", "held"])
def test_a_complete_utterance_is_its_own_only_rewrite(part, language):
    kinds = read_kinds(FOLDER / ("" if part == "test" else part) / f"{language}.jsonl")
    for row in read_dialogues(part, language):
        assert row.is_complete is kinds[row.id].startswith("keep-"), row.id
        assert not (row.is_complete and row.references), row.id


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", ["test", "dev", "held"])
def test_keys_accept_every_rewrite_and_refuse_the_utterance(part, language):
    for row in read_dialogues(part, language):
        assert not row.keys.need if row.is_complete else row.keys.need, row.id
        if row.is_complete:
            continue
        # As other wordings are judged: by the keys alone.
        rewrite = "不" if holds_cjk(row.rewrite) else "-"
        other = replace(row, rewrite=rewrite, references=(), keys=replace(row.keys, judged=()))
        for text in (row.rewrite, *row.references):
            assert grade(other, text) == "right", (row.id, text)
        assert grade(other, row.dialogue.utterance + " x") != "right", row.id


@pytest.mark.slow
@with_model
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_embedded_model_is_no_worse_than_it_was(language):
    from teo.rewriter import Rewriter

    kinds = read_kinds(FOLDER / "dev" / f"{language}.jsonl")
    rows = read_dialogues("dev", language)
    counts = measure(rows, propose(Rewriter.from_pretrained(), rows), kinds)["meaning"]["counts"]
    right, kept = FLOORS[language]
    assert counts["right"] >= right - MARGIN
    assert counts["kept"] >= kept - MARGIN


def test_a_model_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["everyday.py", "--model", str(tmp_path / "none")])
    with pytest.raises(TeoError, match="none"):
        main()
