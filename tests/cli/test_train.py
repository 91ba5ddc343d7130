"""`teo train`: one JSON line on stdout, one line on stderr for a mistake, help without torch."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from teo.cli.app import app
from teo.errors import ConfigError

runner = CliRunner()
TINY = """
output = "OUT"
roles = ["direct"]
device = "cpu"
[model]
base = "random"
source_limit = 64
target_limit = 32
[model.random]
width = 16
layers = 1
heads = 2
vocabulary = 300
[data]
name = "synthetic"
rows = 16
dev_rows = 4
[optimisation]
epochs = 1
batch_size = 8
[writing]
plots = false
log_every = 1
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(TINY.replace("OUT", str(tmp_path / "model")), encoding="utf-8")
    return path


@pytest.fixture
def own_log() -> Iterator[None]:
    """Give the package's logger back as it was; the command sends it to stderr."""
    log = logging.getLogger("teo")
    before = (log.handlers, log.propagate, log.level)
    yield
    log.handlers, log.propagate, log.level = before


@pytest.mark.train
@pytest.mark.usefixtures("own_log")
def test_training_answers_with_one_json_line_and_logs_on_stderr(config: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = runner.invoke(app, ["train", str(config), "seed=1"], catch_exceptions=False)
    assert json.loads(done.stdout) == {"model": str(tmp_path / "model"), "dev_em": {"direct": 0.0}}
    assert "direct: epoch 1.00 step 2: loss" in done.stderr


@pytest.mark.process
def test_mistakes_are_one_line_on_stderr(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "teo", "train", str(tmp_path / "none.toml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"teo: {tmp_path / 'none.toml'}: no such file; give the path of a configuration in TOML\n"
    assert done.stdout == ""


def test_a_dry_run_prints_the_resolved_configuration(config: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["train", str(config), "optimisation.epochs=3", "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "epochs = 3" in result.output
    assert 'name = "synthetic"' in result.output
    assert not (tmp_path / "model").exists()


def test_the_keys_are_printed_with_their_meaning() -> None:
    result = runner.invoke(app, ["train", "--keys"])
    assert result.exit_code == 0
    assert "optimisation.learning_rate = 5e-05  (a number above 0)" in result.output
    assert "perturbation.prob_p = 0.6  (a number from 0 to 1)\n    Probability that an operation is pe" in result.output


@pytest.mark.usefixtures("own_log")
def test_an_unknown_key_is_named(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"optimisation\.epoch: unknown key; the nearest known one is optimisation\."):
        runner.invoke(app, ["train", str(config), "optimisation.epoch=3"], catch_exceptions=False)


WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "accelerate"):
    sys.modules[name] = None  # as if the library were not installed
from typer.testing import CliRunner
from teo.cli.app import app
print(CliRunner().invoke(app, ["train", sys.argv[1]]).exception)
"""


@pytest.mark.process
def test_without_torch_the_extra_is_named(config: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(config)]
    line = subprocess.run(command, capture_output=True, text=True).stdout
    assert line.startswith("training needs the library ")
    assert line.endswith("which is not installed: pip install 'teo-rewriter[train]'\n")


@pytest.mark.process
def test_the_help_and_a_dry_run_import_no_torch(config: Path) -> None:
    code = (
        "import sys; from teo.cli.train import train, keys_help; from pathlib import Path; keys_help(); "
        f"train(Path({str(config)!r}), dry_run=True); "
        "sys.exit(sum(name in sys.modules for name in ('torch', 'transformers')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
