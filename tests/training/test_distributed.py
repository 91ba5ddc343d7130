"""Two processes on the CPU, started by accelerate: they share the work and give one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from teo.loading import ModelFolder
from teo.training.config import TrainConfig
from teo.training.processes import average_gradients, from_first
from teo.training.settings import to_toml, to_tree


def launch_two(*arguments: str) -> str:
    """What two processes of the command print, started by accelerate.

    Without `--multi_gpu` accelerate starts one process only on the CPU (it wants MPI for more).
    """
    options = {
        "main_process_port": 0,
        "num_processes": 2,
        "num_machines": 1,
        "mixed_precision": "no",
        "dynamo_backend": "no",
    }
    launch = ["launch", "--multi_gpu", *(f"--{name}={value}" for name, value in options.items())]
    process = subprocess.Popen(
        [sys.executable, "-m", "accelerate.commands.accelerate_cli", *launch, "-m", "teo", *arguments],
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
    return out


@pytest.mark.slow
def test_two_processes_run_and_learn(make_config: Callable[..., TrainConfig], tmp_path: Path) -> None:
    fit = {"epochs": 40, "learning_rate": 1e-2, "ema": 0.9}
    config = make_config(roles=["stage1", "stage2"], optimisation=fit, evaluation={"every": 20})
    path = tmp_path / "run.toml"
    path.write_text(to_toml(to_tree(config)))
    out = launch_two("train", str(path))
    assert len(out.splitlines()) == 1, "one of the processes answers"
    folder = Path(json.loads(out)["model"])
    assert json.loads((folder / "training" / "record.json").read_text())["processes"] == 2
    assert set(ModelFolder.load(folder).roles) == {"stage1", "stage2"}
    history = json.loads((folder / "training" / "stage2" / "result.json").read_text())["history"]
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert len(losses) == 120, "48 rows in batches of 8 on two processes: 3 updates an epoch"
    assert losses[-1] < losses[0] / 2


PRETRAINING = """
shards = {{ "{shard}" = 1.0 }}
output = "{output}"
vocabulary = 600
frequent = 5
workers = 0
buckets = [{{ source = 48, target = 96, rows = 4 }}]
size = {{ d_model = 32, encoder_layers = 1, decoder_layers = 1, heads = 2, d_ff = 64 }}
loop = {{ steps = {steps}, learning_rate = 3e-3, warmup = 5, minutes = 10, log_every = 5, save_every = 10 }}
"""


@pytest.mark.slow
def test_two_processes_pretrain_one_model_and_go_on(tmp_path: Path) -> None:
    shard, config = tmp_path / "shard.jsonl", tmp_path / "pretrain.toml"
    turns = ["Do you know the film Batman?", "Yes, the film Batman is great.", "Who acted in the film Batman?", "Ben."]
    shard.write_text("".join(json.dumps({"turns": [f"{turn} {k}" for turn in turns]}) + "\n" for k in range(40)))
    for steps in (20, 40):
        config.write_text(PRETRAINING.format(shard=shard, output=tmp_path / "run", steps=steps))
        out = launch_two("pretrain", str(config))
        assert out == f"{tmp_path / 'run' / 'model'}\n", "one of the processes answers"
    assert json.loads((tmp_path / "run" / "record.json").read_text())["processes"] == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, 45, 5)), (
        "one of the processes logs; the second run goes on"
    )
    assert lines[-1]["decoder_loss"] < lines[0]["decoder_loss"]


def average_in(rank: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    model = torch.nn.ModuleDict(
        {"used": torch.nn.Linear(2, 1, bias=False), "seldom": torch.nn.Linear(1, 1, bias=False)}
    )
    model["used"].weight.grad = torch.full((1, 2), float(rank + 1))
    if rank:
        model["seldom"].weight.grad = torch.ones(1, 1)
    average_gradients(model)
    assert model["used"].weight.grad.tolist() == [[1.5, 1.5]]
    assert model["seldom"].weight.grad.tolist() == [[0.5]], "none counts as zero"
    assert from_first(float(rank + 7), torch.device("cpu")) == 7.0
    torch.distributed.destroy_process_group()


def test_gradients_are_the_mean_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The other processes import this module by its name, from the folder that holds the tests.
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    torch.multiprocessing.spawn(average_in, (str(tmp_path),), nprocs=2)
