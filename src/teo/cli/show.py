"""Rewrites shown on a terminal: edits by colour alone, so that what is copied is the rewrite."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teo.edits import EditScript
    from teo.result import Rewrite
    from teo.rules import Reason

_RED, _GREEN, _GREY, _PLAIN = "\x1b[31;9m", "\x1b[32m", "\x1b[90m", "\x1b[0m"
_REASONS: dict[Reason, str] = {
    "no-history": "nothing was said before it",
    "empty": "it is blank",
    "reaction": "it only reacts",
    "code": "it is only links or code",
    "keep-list": "it is on the list of --keep",
    "too-long": "it leaves no room for the turns before it",
    "complete": "it is complete",
    "unsure": "the model is unsure",
    "runaway": "the model's proposal did not end",
}


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
    """Return a confidence with two decimals; a dash if no model was called."""
    return "   -" if confidence is None else f"{confidence:.2f}"


def show_reason(result: Rewrite, *, colour: bool) -> str:
    """Return why an utterance is unchanged, and what was proposed if the model was unsure; in grey."""
    text = f"unchanged: {_REASONS[result.reason] if result.reason else 'the rewriter says no reason'}"
    if result.confidence is not None:
        text += f" (confidence {result.confidence:.2f})"
    if result.reason == "unsure" and result.operations:
        text += f"; proposed: {result.operations}"
    return f"{_GREY}{text}{_PLAIN}" if colour else text


def show_edits(utterance: str, edits: EditScript, *, colour: bool) -> str:
    """Return the rewrite, with what came in green."""
    if not colour:
        return edits.apply(utterance)
    shown, end = [], 0
    for edit in edits:
        shown += [utterance[end : edit.start], f"{_GREEN}{edit.new}{_PLAIN}" if edit.new else ""]
        end = edit.end
    return "".join([*shown, utterance[end:]])


def show_deleted(utterance: str, edits: EditScript, *, colour: bool) -> str:
    """Return the utterance, with what goes in red and struck out."""
    shown, end = [], 0
    for edit in edits:
        old = f"{_RED}{edit.old}{_PLAIN}" if colour and edit.old.strip() else edit.old
        shown += [utterance[end : edit.start], old]
        end = edit.end
    return "".join([*shown, utterance[end:]])
