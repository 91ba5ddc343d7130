"""Verbs of `teo-lab`, each as a command of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer

from teo.cli.shell import run_command

Verb = Callable[..., Any]


def app_of(*verbs: Verb) -> typer.Typer:
    """Return an app of these verbs; a single one is named on the command line too."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    for verb in verbs:
        app.command(verb.__name__)(verb)
    return app


def run_verb(monkeypatch: pytest.MonkeyPatch, verb: Verb, *words: str) -> int:
    """Return the exit status of a verb with these words after its name, as the shell gets it."""
    monkeypatch.setattr(sys, "argv", ["teo-lab", verb.__name__, *words])
    return run_command(app_of(verb), "teo-lab")
