"""The sweep, and curves without matplotlib."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from teo.errors import ConfigError
from teo.training.config import TrainConfig
from teo.training.curves import draw_curves
from teo.training.settings import to_toml, to_tree
from teo.training.sweep import Sweep, run_sweep

ConfigMaker = Callable[..., TrainConfig]


def write(config: TrainConfig, folder: Path) -> Path:
    path = folder / "run.toml"
    path.write_text(to_toml(to_tree(config)), encoding="utf-8")
    return path


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
        ("perturbation.prob_p=0,2", "perturbation.prob_p: expected a number from 0 to 1, found 2"),
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
