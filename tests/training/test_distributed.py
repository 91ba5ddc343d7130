"""Two processes on the CPU, started by torchrun: they share the work and give one model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from launching import launch_two
from teo.loading import ModelFolder
from teo.training.config import TrainConfig
from teo.training.processes import average_gradients, copy_from_first, from_first
from teo.training.settings import to_toml, to_tree


@pytest.mark.slow
def test_two_processes_run_and_learn(make_config: Callable[..., TrainConfig], tmp_path: Path) -> None:
    fit = {"epochs": 40, "learning_rate": 1e-2, "ema": 0.9}
    config = make_config(roles=["stage1", "stage2"], optimisation=fit, evaluation={"every": 20})
    path = tmp_path / "run.toml"
    path.write_text(to_toml(to_tree(config)))
    out = launch_two("teo", "train", str(path))
    assert len(out.splitlines()) == 1, "one of the processes answers"
    folder = Path(json.loads(out)["model"])
    assert json.loads((folder / "training" / "record.json").read_text())["processes"] == 2
    assert set(ModelFolder.load(folder).roles) == {"stage1", "stage2"}
    history = json.loads((folder / "training" / "stage2" / "result.json").read_text())["history"]
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert len(losses) == 120, "48 rows in batches of 8 on two processes: 3 updates an epoch"
    assert losses[-1] < losses[0] / 2


def average_in(rank: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    model = torch.nn.ModuleDict(
        {"used": torch.nn.Linear(2, 1, bias=False), "seldom": torch.nn.Linear(1, 1, bias=False)}
    )
    model["used"].weight.grad = torch.full((1, 2), float(rank + 1))
    if rank:
        model["seldom"].weight.grad = torch.ones(1, 1)
    model["used"].weight.data.fill_(float(rank + 3))
    copy_from_first(model)
    assert model["used"].weight.tolist() == [[3.0, 3.0]], "all start from the first one's weights"
    average_gradients(model)
    assert model["used"].weight.grad.tolist() == [[1.5, 1.5]]
    assert model["seldom"].weight.grad.tolist() == [[0.5]], "none counts as zero"
    assert from_first(float(rank + 7), torch.device("cpu")) == 7.0
    torch.distributed.destroy_process_group()


@pytest.mark.process
def test_gradients_are_the_mean_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The other processes import this module by its name, from the folder that holds the tests.
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    torch.multiprocessing.spawn(average_in, (str(tmp_path),), nprocs=2)
