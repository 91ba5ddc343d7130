"""Rewrites shown on a terminal: edits in colour, alternatives below."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from teo.edits import EditScript
    from teo.result import Rewrite

_RED, _GREEN, _PLAIN = "\x1b[31;9m", "\x1b[32m", "\x1b[0m"


def wants_colour() -> bool:
    """Tell whether stdout is a terminal whose user did not turn colours off."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def print_text(text: str) -> None:
    """Print a line whatever it holds: what the terminal's encoding lacks is shown as a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding))


def show_result(utterance: str, result: Rewrite, *, colour: bool) -> str:
    """Return the rewrite with its edits shown, and under it each alternative with its confidence."""
    others = [
        f"    {other.confidence:.2f}  {show_edits(utterance, other.edits, colour=colour)}"
        for other in result.alternatives[1:]
    ]
    return "\n".join([show_edits(utterance, result.edits, colour=colour), *others])


def show_edits(utterance: str, edits: EditScript, *, colour: bool) -> str:
    """Return the rewrite; in colour with what went struck out and what came in green."""
    if not colour:
        return edits.apply(utterance)
    shown, previous_end = [], 0
    for edit in edits:
        shown.append(utterance[previous_end : edit.start])
        shown += [f"{_RED}{edit.old}{_PLAIN}"] if edit.old else []
        shown += [f"{_GREEN}{edit.new}{_PLAIN}"] if edit.new else []
        previous_end = edit.end
    return "".join([*shown, utterance[previous_end:]])
