"""Verdicts by meaning keys, in both languages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from teo.data.row import MeaningKeys, Row, fingerprint
from teo.dialogue import Dialogue
from teo.metrics.meaning import SIGNATURE, grade, report_meaning

POOL = Row(
    "en",
    Dialogue(("What time does the pool open on Saturdays?", "It opens at 8 a.m."), "And on Sundays?"),
    "And what time does the pool open on Sundays?",
    ("What time does the pool open on Sundays?",),
    MeaningKeys((("pool",), ("Sunday", "Sundays"), ("what time", "when", "open*", "hours")), ("Saturdays", "8 a.m.")),
)
SINGER = Row(
    "zh",
    Dialogue(("七里香是谁唱的", "周杰伦唱的"), "他还唱过什么歌"),
    "周杰伦还唱过什么歌",
    (),
    MeaningKeys((("周杰伦", "Jay"), ("唱过", "歌"), ("什么", "哪些")), ("他", "七里香 .. 唱过")),
)
COMPLETE = Row("keep", Dialogue(("几点了", "三点"), "谢谢，辛苦了"), "谢谢，辛苦了")


@pytest.mark.parametrize(
    ("row", "prediction", "verdict", "why"),
    [
        (POOL, "What time does the pool open on Sundays?", "right", "an accepted rewrite"),
        (POOL, "WHAT TIME does the pool open on sundays", "right", "case and marks do not count"),
        (POOL, "When is the pool open on a Sunday?", "right", "other words for all that is needed"),
        (POOL, "Opening hours of the pool on Sundays", "right", "a stem: open* is opening"),
        (POOL, "And on Sundays?", "missed", "unchanged"),
        (POOL, "and on sundays", "missed", "unchanged but for case and marks"),
        (POOL, "And the pool on Sundays?", "partly", "the place is restored, the question is not"),
        (POOL, "What time does the pool open on Saturdays and on Sundays?", "wrong", "says what is forbidden"),
        (POOL, "And on Sundays at the restaurant?", "wrong", "nothing of what is needed"),
        (POOL, "What time does the whirlpool open on Sundays?", "partly", "whole words: a whirlpool is no pool"),
        (SINGER, "周杰伦还唱过哪些歌？", "right", "other words"),
        (SINGER, "Jay 还唱过什么歌", "right", "an alternative in another script, spaces do not count"),
        (SINGER, "周杰伦他还唱过什么歌", "partly", "the pronoun is still there, though it is no longer needed"),
        (SINGER, "七里香还唱过什么歌", "wrong", "the work sings: what the gap pattern forbids"),
        (SINGER, "他还唱过什么歌？", "missed", "unchanged but for a mark"),
        (COMPLETE, "谢谢 辛苦了", "kept", "unchanged but for a mark"),
        (COMPLETE, "谢谢，三点辛苦了", "harmed", "a complete utterance was changed"),
    ],
)
def test_verdicts(row: Row, prediction: str, verdict: str, why: str) -> None:
    assert grade(row, prediction) == verdict, why


@pytest.mark.parametrize(
    ("prediction", "verdict", "why"),
    [
        ("And the pool on Sundays?", "right", "a reader found it right, the keys only in part"),
        ("When is the pool open on a Sunday?", "wrong", "a reader found it wrong, the keys right"),
        ("Is the pool nice on Sundays?", "partly", "no reader: the keys"),
        ("What time does the pool open on Sundays?", "right", "an accepted rewrite needs no reader"),
    ],
)
def test_what_a_reader_said_goes_before_the_keys(prediction: str, verdict: str, why: str) -> None:
    judged = ((fingerprint("And the pool on Sundays?"), True), ("When is the pool open on a Sunday?", False))
    row = replace(POOL, keys=replace(POOL.keys, judged=judged))
    assert grade(row, prediction) == verdict, why


def test_without_keys_only_accepted_rewrites_are_right() -> None:
    bare = Row(POOL.id, POOL.dialogue, POOL.rewrite)
    assert grade(bare, POOL.rewrite) == "right"
    assert grade(bare, "When is the pool open on a Sunday?") == "wrong"


def test_a_report_gives_shares_of_incomplete_and_of_complete_rows() -> None:
    report = report_meaning(["right"] * 6 + ["partly", "wrong", "missed", "missed"] + ["kept"] * 3 + ["harmed"])
    assert (report.rate("right"), report.rate("missed"), report.rate("kept")) == (0.6, 0.2, 0.75)
    stored = report.to_dict()
    assert stored["counts"] == {"right": 6, "partly": 1, "wrong": 1, "missed": 2, "kept": 3, "harmed": 1}
    low, high = stored["intervals"]["right"]
    assert low == pytest.approx(0.3127, abs=1e-4)  # Wilson's interval of 6 in 10
    assert high == pytest.approx(0.8318, abs=1e-4)
    assert stored["signature"] == str(SIGNATURE)
    assert str(SIGNATURE).startswith("meaning|keys:need+forbid")


def test_a_report_of_no_complete_rows_has_no_share_of_them() -> None:
    report = report_meaning(["right"])
    assert report.rate("kept") is None
    assert "kept" not in report.to_dict()["intervals"]
