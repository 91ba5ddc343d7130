"""The help: one screen for all verbs, and under every verb examples that exist, most of which are run here."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.cli.app import app
from teo.cli.help import EXAMPLES, unwrap
from teo.loading import has_default

WIDTH, SCREEN, MOST_VERBS = 80, 40, 12
ROW = {"history": ["Ben is here"], "utterance": "is he", "rewrite": "is Ben"}
RUNNABLE = [
    example
    for examples in EXAMPLES.values()
    for example in examples
    if re.match(r"teo (rewrite|batch dialogues|evaluate --data jsonl|score|demo$|train --keys|data)", example)
    and not re.search(r"download|data/|\|", example)
]
"""Examples that need neither a network, a trained model nor a published dataset."""


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that the words name, and its arguments."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def verbs_of(command: Any, path: str = "") -> list[str]:
    """Return the verbs of a command and of the groups in it, with the words before them."""
    found = []
    for name, verb in getattr(command, "commands", {}).items():
        found += [f"{path}{name}", *verbs_of(verb, f"{path}{name} ")]
    return found


def show_help(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", WIDTH)
    return CliRunner().invoke(app, [*words, "--help"], catch_exceptions=False).output


def test_all_verbs_fit_on_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = show_help(monkeypatch).splitlines()
    assert len(lines) <= SCREEN
    assert max(len(line) for line in lines) <= WIDTH
    panels = re.findall(r"╭─ (.+?) ─", "\n".join(lines))
    assert panels == ["Options", "Use", "Adapt to your own data", "Measure"]
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert len(verbs) <= MOST_VERBS
    for name in verbs:
        (line,) = (line for line in lines if line.startswith(f"│ {name} "))
        assert line.rstrip(" │").endswith("."), f"{name}: its summary takes more than a line"


def test_every_verb_has_examples() -> None:
    assert sorted(EXAMPLES) == sorted(verbs_of(typer.main.get_command(app)))


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_are_shown_one_a_line_and_exist(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [line.strip() for line in show_help(monkeypatch, *path.split()).splitlines()]
    for example in EXAMPLES[path]:
        assert example in shown
        words = shlex.split(example.partition(" | ")[0])
        words = words[next(index for index, word in enumerate(words) if "=" not in word) :]
        assert words[0] == "teo"
        command, arguments = find_command(words[1:])
        assert example.split("teo ", 1)[1].startswith(path)
        known = {name for parameter in command.params for name in parameter.opts}
        assert [word for word in arguments if word.startswith("--") and word not in known] == []


@pytest.mark.parametrize("example", RUNNABLE)
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(example)[1:]
    if words[0] in ("rewrite", "batch", "evaluate", "demo") and not has_default():
        pytest.skip("this checkout has no embedded model")
    monkeypatch.chdir(tmp_path)
    for name in ("dialogues", "gold", "mine"):
        (tmp_path / f"{name}.jsonl").write_text(f"{json.dumps(ROW)}\n" * 40, encoding="utf-8")
    scored = {"current": "is he", "reference": "is Ben", "prediction": "is Ben"}
    for name in ("predictions", "other"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(scored) + "\n", encoding="utf-8")
    if words[0] == "evaluate":
        (tmp_path / "mine.jsonl").rename(tmp_path / "test.jsonl")
        words = ["test.jsonl" if word == "mine.jsonl" else word for word in words]
    if words[0] == "batch":
        words += ["--processes", "1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output or result.exception


def test_enough_examples_are_run() -> None:
    assert len(RUNNABLE) >= 10


def test_paragraphs_are_unwrapped() -> None:
    assert unwrap("One\n    line.\n\n    Two\n    lines.\n    ") == "One line.\n\nTwo lines."
