"""The command `teo-lab`: its verbs, their help, and what they say if a library is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from teo_lab import __version__
from teo_lab.cli.app import app

MAKE = ("rows", "encode", "train", "rank", "clean", "pretrain", "base", "average", "teacher")
MEASURE = ("reproduce", "evaluate", "judge", "retrieval", "store", "pages", "report", "sheets")
WIDTH, SCREEN = 80, 40


def verbs_of(command: Any, *words: str) -> list[tuple[str, ...]]:
    """Return the verbs of a command and of the groups in it, with the words before them."""
    commands = getattr(command, "commands", None)
    if commands is None:
        return [words]
    return [found for name, verb in commands.items() for found in verbs_of(verb, *words, name)]


def help_of(*words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    return re.sub(r"\s+", " ", done.stdout)


def test_the_help_groups_the_verbs() -> None:
    text = help_of()
    make, _, measure = text.partition("Measure and compare")
    assert "Make a model" in make
    assert [verb for verb in MAKE if f" {verb} " not in make] == []
    assert [verb for verb in MEASURE if f" {verb} " not in measure] == []


def test_all_verbs_fit_on_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", WIDTH)
    lines = CliRunner().invoke(app, ["--help"], env={"COLUMNS": str(WIDTH)}).stdout.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("words", verbs_of(get_command(app)), ids=" ".join)
def test_the_help_of_a_verb_ends_in_examples(words: tuple[str, ...]) -> None:
    assert f"Example: teo-lab {' '.join(words)} " in help_of(*words)


def test_every_verb_prints_its_help() -> None:
    assert sorted((*MAKE, *MEASURE)) == sorted(get_command(app).commands)  # type: ignore[attr-defined]
    for verb in (*MAKE, *MEASURE):
        assert f"Usage: root {verb} " in help_of(verb) or f"teo-lab {verb} " in help_of(verb)


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"teo-lab {__version__}\n"


@pytest.mark.process
def test_the_help_imports_no_library_of_training() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from teo_lab.cli.app import app; "
        "CliRunner().invoke(app, ['--help']); CliRunner().invoke(app, ['teacher', 'tune', '--help']); "
        "sys.exit(','.join({'torch', 'transformers', 'numpy', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "accelerate"):
    sys.modules[name] = None  # what importing gives if a library is not installed
from typer.testing import CliRunner
from teo_lab.cli.app import app
for words in sys.argv[1:]:
    print(CliRunner().invoke(app, words.split()).exception)
"""
NEEDED = {
    "encode c o.npz": "encoding rows",
    "train c o.npz": "training",
    "pretrain c": "pretraining",
    "average a b c": "averaging models",
    "base a b": "storing a backbone",
    "teacher tune a b c": "tuning a teacher",
    "teacher rewrite a b c": "rewriting with a teacher",
    "teacher sample a b c": "sampling from a teacher",
    "teacher answers a b": "sampling answers",
}


@pytest.mark.process
def test_without_torch_the_extra_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, *NEEDED]
    lines = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
    for line, feature in zip(lines, NEEDED.values(), strict=True):
        assert re.match(rf"{feature} needs the library '\w+', which is not installed: pip install '.+\[train\]'", line)


@pytest.mark.process
def test_an_error_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "teo_lab", "rows", str(tmp_path / "none.toml"), "out.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"teo-lab: {tmp_path / 'none.toml'}: no such file; give the path of a configuration in TOML"
    ]
