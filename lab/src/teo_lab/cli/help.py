"""Verbs with their help: a docstring whose last paragraphs are examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from teo.cli.help import unwrap


def add_verb(app: typer.Typer, verb: Callable[..., Any], panel: str | None = None) -> None:
    """Add a function as a verb of an app, under its own name; lists of verbs show its first clause."""
    text = unwrap(verb.__doc__ or "")
    first = re.split(r"[.:;]\s", text, maxsplit=1)[0]
    app.command(verb.__name__, help=text, short_help=f"{first}.", rich_help_panel=panel)(verb)
