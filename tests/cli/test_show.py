"""Edits on a terminal: what is copied from it is the rewrite."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from teo.alignment import derive_edits
from teo.cli.show import show_confidence, show_deleted, show_edits, show_reason, show_result
from teo.edits import EditScript, make_edit
from teo.result import Alternative, Rewrite
from teo.rules import Reason


def copied(text: str) -> str:
    """Return what a user gets who copies a text from a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_edits_in_colour() -> None:
    script = derive_edits("It is he who acted.", "It is Ben who acted as Batman.")
    plain = show_edits("It is he who acted.", script, colour=False)
    shown = show_edits("It is he who acted.", script, colour=True)
    assert plain == "It is Ben who acted as Batman."
    assert shown == "It is \x1b[32mBen\x1b[0m who acted\x1b[32m as Batman\x1b[0m."
    assert show_edits("same", derive_edits("same", "same"), colour=True) == "same"
    assert show_deleted("It is he who acted.", script, colour=True) == "It is \x1b[31;9mhe\x1b[0m who acted."
    assert show_deleted("It is he who acted.", script, colour=False) == "It is he who acted."
    blank = EditScript((make_edit(2, " ", ""),))
    assert show_deleted("It is", blank, colour=True) == "It is", "a blank cannot be seen"


@pytest.mark.parametrize(
    ("utterance", "rewrite"),
    [
        ("When was he born?", "When was Frank Herbert born?"),
        ("为什么喜欢他", "为什么喜欢乔峰"),
        ("明天呢", "西安明天呢"),
        ("他的 iPhone", "Ben 的 iPhone"),
        ("and then he left", "he left"),
        ("  is he \n", "  is Ben \n"),
    ],
)
def test_what_is_copied_is_the_rewrite_alone(utterance: str, rewrite: str) -> None:
    script = derive_edits(utterance, rewrite)
    assert copied(show_edits(utterance, script, colour=True)) == rewrite
    assert copied(show_deleted(utterance, script, colour=True)) == utterance


def test_alternatives_below_the_rewrite() -> None:
    edits = derive_edits("is he", "is Ben")
    result = Rewrite("is Ben", True, edits, "", 0.5)
    others = (Alternative("is Ben", edits, "", 0.5), Alternative("is he", EditScript(), "", 0.25))
    shown = show_result("is he", Rewrite("is Ben", True, edits, "", 0.5, alternatives=others), colour=True)
    assert copied(shown) == "is Ben\n    0.25  is he"
    assert copied(show_result("is he", result, colour=False)) == "is Ben"


def test_no_confidence_is_a_dash_as_wide() -> None:
    assert (show_confidence(0.876), show_confidence(None)) == ("0.88", "   -")


def test_the_reason_is_said_in_grey() -> None:
    unsure = Rewrite("is he", operations="[D] he [R] Ben", confidence=0.25, reason="unsure")
    text = "unchanged: the model is unsure (confidence 0.25); proposed: [D] he [R] Ben"
    assert show_reason(unsure, colour=False) == text
    assert show_reason(unsure, colour=True) == f"\x1b[90m{text}\x1b[0m"
    assert show_reason(Rewrite("x", confidence=0.9, reason="complete"), colour=False) == (
        "unchanged: it is complete (confidence 0.90)"
    )
    for reason in get_args(Reason):
        assert show_reason(Rewrite("x", reason=reason), colour=False).startswith("unchanged: ")
