"""Edits on a terminal: what is copied from it must read."""

from __future__ import annotations

import re

import pytest

from teo.alignment import derive_edits
from teo.cli.show import show_confidence, show_edits, show_result
from teo.edits import Edit, EditScript, make_edit
from teo.result import Alternative, Rewrite


def copied(text: str) -> str:
    """Return what a user gets who copies a text from a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_edits_in_colour() -> None:
    script = derive_edits("It is he who acted.", "It is Ben who acted as Batman.")
    plain = show_edits("It is he who acted.", script, colour=False)
    shown = show_edits("It is he who acted.", script, colour=True)
    assert plain == "It is Ben who acted as Batman."
    assert shown == "It is \x1b[31;9m[he]\x1b[0m \x1b[32mBen\x1b[0m who acted\x1b[32m as Batman\x1b[0m."
    assert show_edits("same", derive_edits("same", "same"), colour=True) == "same"


@pytest.mark.parametrize(
    ("utterance", "rewrite", "expected", "reason"),
    [
        ("When was he born?", "When was Frank Herbert born?", "When was [he] Frank Herbert born?", "words apart"),
        ("为什么喜欢他", "为什么喜欢乔峰", "为什么喜欢[他]乔峰", "no spaces between Chinese words"),
        ("明天呢", "西安明天呢", "西安明天呢", "what only comes in needs no mark"),
        ("他的 iPhone", "Ben 的 iPhone", "[他] Ben 的 iPhone", "letters after a Chinese word"),
    ],
)
def test_a_copied_edit_reads(utterance: str, rewrite: str, expected: str, reason: str) -> None:
    assert copied(show_edits(utterance, derive_edits(utterance, rewrite), colour=True)) == expected, reason


@pytest.mark.parametrize(
    ("edit", "expected", "reason"),
    [
        (make_edit(2, "he ", ""), "a [he] b", "a space that goes with a word stays outside the brackets"),
        (make_edit(1, " he", ""), "a [he] b", "before it likewise"),
        (make_edit(2, "he", ""), "a [he] b", "nothing comes in"),
        (make_edit(1, " he", " Ben"), "a [he] Ben b", "the space is there once"),
        (make_edit(2, "he", "!"), "a [he]! b", "marks stand close"),
        (make_edit(1, " ", ","), "a,he b", "a blank is not shown"),
    ],
)
def test_blanks_and_marks(edit: Edit, expected: str, reason: str) -> None:
    assert copied(show_edits("a he b", EditScript((edit,)), colour=True)) == expected, reason


def test_alternatives_below_the_rewrite() -> None:
    edits = derive_edits("is he", "is Ben")
    result = Rewrite("is Ben", True, edits, "", 0.5)
    others = (Alternative("is Ben", edits, "", 0.5), Alternative("is he", EditScript(), "", 0.25))
    shown = show_result("is he", Rewrite("is Ben", True, edits, "", 0.5, alternatives=others), colour=True)
    assert copied(shown) == "is [he] Ben\n    0.25  is he"
    assert copied(show_result("is he", result, colour=False)) == "is Ben"


def test_no_confidence_is_a_dash_as_wide() -> None:
    assert (show_confidence(0.876), show_confidence(None)) == ("0.88", "   -")
