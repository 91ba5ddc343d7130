"""Two processes on the CPU, started by accelerate: they share the work and give one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from teo.loading import ModelFolder
from teo.training.config import TrainConfig
from teo.training.settings import to_toml, to_tree


@pytest.mark.slow
def test_two_processes_run_and_learn(make_config: Callable[..., TrainConfig], tmp_path: Path) -> None:
    # Without `--multi_gpu` accelerate starts one process only on the CPU (it wants MPI for more).
    fit = {"epochs": 40, "learning_rate": 1e-2, "ema": 0.9}
    config = make_config(roles=["stage1", "stage2"], optimisation=fit, evaluation={"every": 20})
    path = tmp_path / "run.toml"
    path.write_text(to_toml(to_tree(config)))
    options = {
        "main_process_port": 0,
        "num_processes": 2,
        "num_machines": 1,
        "mixed_precision": "no",
        "dynamo_backend": "no",
    }
    launch = ["launch", "--multi_gpu", *(f"--{name}={value}" for name, value in options.items())]
    process = subprocess.Popen(
        [sys.executable, "-m", "accelerate.commands.accelerate_cli", *launch, "-m", "teo", "train", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        out, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher ends its processes with it
        out, err = process.communicate()
    assert process.returncode == 0, err[-2000:]
    assert len(out.splitlines()) == 1, "one of the processes answers"
    folder = Path(json.loads(out)["model"])
    assert json.loads((folder / "training" / "record.json").read_text())["processes"] == 2
    assert set(ModelFolder.load(folder).roles) == {"stage1", "stage2"}
    history = json.loads((folder / "training" / "stage2" / "result.json").read_text())["history"]
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert len(losses) == 120, "48 rows in batches of 8 on two processes: 3 updates an epoch"
    assert losses[-1] < losses[0] / 2
