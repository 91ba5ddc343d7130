"""Rewrites shown on a terminal: edits in colour, alternatives below."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from teo.units import is_cjk

if TYPE_CHECKING:
    from teo.edits import EditScript
    from teo.result import Rewrite

_RED, _GREEN, _PLAIN = "\x1b[31;9m", "\x1b[32m", "\x1b[0m"


def wants_colour() -> bool:
    """Tell whether stdout is a terminal whose user did not turn colours off."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def show_result(utterance: str, result: Rewrite, *, colour: bool) -> str:
    """Return the rewrite with its edits shown, and under it each alternative with its confidence."""
    others = [
        f"    {show_confidence(other.confidence)}  {show_edits(utterance, other.edits, colour=colour)}"
        for other in result.alternatives[1:]
    ]
    return "\n".join([show_edits(utterance, result.edits, colour=colour), *others])


def show_confidence(confidence: float | None) -> str:
    """Return a confidence with two decimals; a dash where no model was asked."""
    return "   -" if confidence is None else f"{confidence:.2f}"


def show_edits(utterance: str, edits: EditScript, *, colour: bool) -> str:
    """Return the rewrite; in colour with what went in brackets, struck out, and what came in green.

    Copied from a terminal it still reads: "When was [he] Frank Herbert born?".
    """
    if not colour:
        return edits.apply(utterance)
    shown, previous_end = [], 0
    for edit in edits:
        shown += [utterance[previous_end : edit.start], _show_old(edit.old, edit.new)]
        shown += [f"{_GREEN}{edit.new}{_PLAIN}"] if edit.new else []
        previous_end = edit.end
    return "".join([*shown, utterance[previous_end:]])


def _show_old(old: str, new: str) -> str:
    """Return what went, in brackets, with a space after it where a word of letters follows."""
    text = old.strip()
    if not text:
        return ""
    before, after = old[: old.index(text)], old[old.index(text) + len(text) :]
    if new:
        after = " " if new[0].isalnum() and not is_cjk(new[0]) else ""
    return f"{before}{_RED}[{text}]{_PLAIN}{after}"
