"""`python -m teo.training`, the sweep, and that training needs torch and transformers but none of the extras."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from teo.errors import ConfigError
from teo.training.__main__ import main
from teo.training.config import TrainConfig
from teo.training.curves import draw_curves
from teo.training.settings import to_toml, to_tree
from teo.training.sweep import Sweep, run_sweep

ConfigMaker = Callable[..., TrainConfig]


def write(config: TrainConfig, folder: Path) -> Path:
    path = folder / "run.toml"
    path.write_text(to_toml(to_tree(config)), encoding="utf-8")
    return path


def test_the_command_trains_and_answers_with_one_json_line(
    make_config: ConfigMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(make_config(roles=["direct"]), tmp_path)
    assert main([str(path), "optimisation.epochs=1", "writing.log_steps=2"]) == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer == {"model": str(tmp_path / "model"), "dev_em": {"direct": 0.0}}
    assert "direct: epoch 1.00 step 6: loss" in captured.err, "the log is on stderr"


def test_a_dry_run_prints_the_resolved_configuration(
    make_config: ConfigMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(make_config(), tmp_path)
    assert main([str(path), "perturbation.prob_p=0.25", "--dry-run"]) == 0
    assert "prob_p = 0.25" in capsys.readouterr().out
    assert not (tmp_path / "model").exists()


def test_mistakes_are_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.toml")]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"teo: {tmp_path / 'none.toml'}: no such file; give the path of a configuration in TOML\n"
    assert captured.out == ""


def test_the_keys_are_printed_with_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--keys"]) == 0
    out = capsys.readouterr().out
    assert "perturbation.prob_p = 0.6  (a number)\n    Probability that an operation is perturbed" in out


def test_a_sweep_trains_stage_1_once_and_draws_em_against_the_value(make_config: ConfigMaker, tmp_path: Path) -> None:
    path = write(make_config(optimisation={"epochs": 1}), tmp_path)
    points = run_sweep(path, [], Sweep.parse("perturbation.prob_p=0,0.6"))
    assert [point["value"] for point in points] == ["0", "0.6"]
    folder = tmp_path / "model"
    assert json.loads((folder / "sweep.json").read_text())["points"] == points
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    runs = [folder / f"perturbation.prob_p={value}" for value in ("0", "0.6")]
    weights = [(run / "stage1" / "model.safetensors").read_bytes() for run in runs]
    assert weights[0] == weights[1], "perturbation concerns stage 2 alone"
    assert not (runs[1] / "training" / "stage1").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("perturbation.prob_p", "--sweep: expected key=a,b,c such as perturbation.prob_p=0,0.3,0.6"),
        ("perturbation.prob_p=", "--sweep: expected key=a,b,c"),
        ("order=position,insertions-first", "--sweep: order: expected numbers, which can be drawn; found position"),
        ("perturbation.prob_q=0,1", "perturbation.prob_q: unknown key; the nearest known one is perturbation.prob_"),
        ("perturbation.prob_p=0,2", "perturbation.prob_p: expected a probability from 0 to 1, found 2.0"),
    ],
)
def test_a_wrong_sweep_is_named_before_anything_is_trained(
    make_config: ConfigMaker, tmp_path: Path, text: str, message: str
) -> None:
    path = write(make_config(), tmp_path)
    with pytest.raises(ConfigError) as error:
        run_sweep(path, [], Sweep.parse(text))
    assert message in str(error.value)
    assert not (tmp_path / "model").exists()


def test_without_matplotlib_curves_are_skipped_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    caplog.set_level("INFO", logger="teo")
    assert not draw_curves([{"step": 1, "loss": 1.0}], tmp_path / "x.png", "x")
    assert "x.png: not drawn, since matplotlib is not installed (pip install 'teo[plots]')" in caplog.text


BARE = """
import sys
for name in ("typer", "pydantic", "rapidfuzz", "matplotlib", "matplotlib.figure", "onnxruntime", "tensorboard"):
    sys.modules[name] = None  # what importing them gives where they are not installed: ModuleNotFoundError
from teo.training.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_training_needs_none_of_the_other_extras(make_config: ConfigMaker, tmp_path: Path) -> None:
    path = write(make_config(optimisation={"epochs": 1}, writing={"plots": True}), tmp_path)
    done = subprocess.run([sys.executable, "-c", BARE, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "model" / "teo.json").is_file()
    assert "not drawn, since matplotlib is not installed" in done.stderr
