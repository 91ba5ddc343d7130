"""Verbs with their help: a docstring whose last paragraphs are examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from teo.cli.help import unwrap


def add_verb(app: typer.Typer, verb: Callable[..., Any], panel: str | None = None) -> None:
    """Add a function as a verb of an app, under its own name."""
    app.command(verb.__name__, help=unwrap(verb.__doc__ or ""), rich_help_panel=panel)(verb)
