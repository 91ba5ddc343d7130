"""`teo train`: the same command as `python -m teo.training`, with help that needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from teo.cli.train import train
from teo.errors import ConfigError, MissingExtraError

app = typer.Typer()
app.command("train")(train)
runner = CliRunner()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text('output = "out"\n[data]\npath = "rows.jsonl"\n')
    return path


def test_a_dry_run_prints_the_resolved_configuration(config: Path) -> None:
    result = runner.invoke(app, [str(config), "optimisation.epochs=3", "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "epochs = 3" in result.output
    assert 'path = "rows.jsonl"' in result.output


def test_the_keys_are_printed(config: Path) -> None:
    result = runner.invoke(app, ["--keys"])
    assert result.exit_code == 0
    assert "optimisation.learning_rate = 5e-05  (a number)" in result.output


def test_mistakes_reach_the_caller_as_our_errors(config: Path) -> None:
    result = runner.invoke(app, [str(config), "optimisation.epoch=3"])
    assert isinstance(result.exception, ConfigError)
    assert "optimisation.epoch: unknown key; the nearest known one is optimisation.epochs" in str(result.exception)


def test_without_torch_the_extra_is_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("teo.training.command.run_command", absent)
    result = runner.invoke(app, [str(config)])
    assert isinstance(result.exception, MissingExtraError)
    assert str(result.exception) == (
        "training needs the library 'torch', which is not installed: pip install 'teo[train]'"
    )


def test_the_help_and_a_dry_run_import_no_torch(config: Path) -> None:
    code = (
        "import sys, typer; from teo.cli.train import train; from teo.training.command import run_command; "
        f"from pathlib import Path; run_command(Path({str(config)!r}), dry_run=True); "
        "sys.exit(sum(name in sys.modules for name in ('torch', 'transformers')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
