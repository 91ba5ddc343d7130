"""Runs: what they write, how they resume, and the one line that each mistake gives."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from teo.errors import ConfigError, DataError, InputError, ModelError, TeoError
from teo.loading import ModelFolder
from teo.runtime.torch_generator import TorchGenerator
from teo.training.config import TrainConfig
from teo.training.finetune import Run, train
from teo.training.loop import CHECKPOINT, Loop
from teo.training.record import TrainResult
from teo.training.rows import read_operations

pytestmark = pytest.mark.train

ConfigMaker = Callable[..., TrainConfig]


class Killed(BaseException):
    """Stands for a kill: nothing that catches errors catches it."""


def train_until(config: TrainConfig, step: int, monkeypatch: pytest.MonkeyPatch, group: str = "stage1") -> None:
    """Train and stop dead before an update of a set of weights."""
    original = Loop._update

    def update_or_die(self: Loop, at: int, *args: Any) -> Any:
        if at == step and self.output.name == group:
            raise Killed
        return original(self, at, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_update", update_or_die)
        with pytest.raises(Killed):
            train(config)


def weights(result: TrainResult, name: str) -> dict[str, torch.Tensor]:
    return load_file(result.folder / name / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_writes_a_model_folder_and_its_record(make_config: ConfigMaker) -> None:
    config = make_config(languages=["en"], writing={"plots": True})
    result = train(config)
    folder = ModelFolder.load(result.folder)
    assert folder.variant == "teo"
    assert folder.source_limit == 64
    assert folder.languages == ("en",)
    record = json.loads((result.folder / "training" / "record.json").read_text())
    assert record["config"]["optimisation"]["epochs"] == 2
    assert {"torch", "transformers", "python", "teo"} <= record["versions"].keys()
    assert {Path(file["file"]).name for file in record["data"]} == {"train.jsonl", "dev.jsonl", "test.jsonl"}
    assert all(len(file["sha256"]) == 64 for file in record["data"])
    assert "git_commit" in record
    assert (result.folder / "training" / "stage1.png").stat().st_size > 1000
    assert [step for step, _ in result.groups["stage1"].losses] == list(range(1, 13)), "a loss for every update"
    assert not list((result.folder / "training").rglob(CHECKPOINT)), "checkpoints go once the model is written"
    assert not list(result.folder.rglob("*.part"))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (9, "inside an epoch, from the end of the one before"),
        (6, "right at the start of an epoch"),
        (3, "before any checkpoint"),
    ],
)
def test_a_resumed_run_has_the_losses_and_weights_of_one_that_was_never_stopped(
    make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch, step: int, reason: str
) -> None:
    fit = {"ema": 0.9, "epochs": 3}
    config = make_config(optimisation=fit)
    whole = train(make_config(output=f"{config.output}-whole", optimisation=fit))
    train_until(config, step, monkeypatch)
    resumed = train(config, resume=True)
    for name in ("stage1", "stage2"):
        assert resumed.groups[name].losses == whole.groups[name].losses, reason
        assert same(weights(resumed, name), weights(whole, name)), reason
    assert resumed.em == whole.em


def test_a_run_killed_in_stage_2_does_not_train_stage_1_again(
    make_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(output=str(tmp_path / "killed"))
    train_until(config, 8, monkeypatch, group="stage2")
    before = (tmp_path / "killed" / "stage1" / "model.safetensors").stat().st_mtime_ns
    resumed = train(config, resume=True)
    assert (tmp_path / "killed" / "stage1" / "model.safetensors").stat().st_mtime_ns == before
    assert resumed.groups["stage2"].losses == train(make_config(output=str(tmp_path / "whole"))).groups["stage2"].losses


def test_what_a_kill_left_half_written_is_deleted(
    make_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config()
    train_until(config, 9, monkeypatch)
    work = tmp_path / "model" / "training" / "stage1"
    (work / ".teo-0123456789ab.pt").write_bytes(b"half")
    (work / "best.part").mkdir()
    with (work / "log.jsonl").open("a") as log:
        log.write('{"step": 10, "mi')
    result = train(config, resume=True)
    assert [step for step, _ in result.groups["stage1"].losses] == list(range(1, 13)), "every update logged once"
    assert not [*work.glob(".teo-*"), *work.glob("*.part")]


def test_means_of_the_log_are_resumed_too(make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"roles": ["direct"], "optimisation": {"epochs": 3}, "writing": {"log_every": 4}}
    config = make_config(**changes)
    whole = train(make_config(output=f"{config.output}-whole", **changes))
    train_until(config, 7, monkeypatch, group="direct")
    assert train(config, resume=True).groups["direct"].history == whole.groups["direct"].history


@pytest.mark.slow
def test_a_run_that_is_killed_outright_resumes(make_config: ConfigMaker, tmp_path: Path) -> None:
    whole = train(make_config(output=str(tmp_path / "whole"), roles=["direct"], optimisation={"epochs": 6}))
    config = tmp_path / "whole" / "training" / "config.toml"
    command = [sys.executable, "-m", "teo", "train", str(config), f"output={tmp_path / 'killed'}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    work = tmp_path / "killed" / "training" / "direct"
    until = time.monotonic() + 60
    while not (work / CHECKPOINT).is_file() and first.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["dev_em"] == whole.em, "data on stdout, one JSON line"
    history = json.loads((work / "result.json").read_text())["history"]
    assert [(entry["step"], entry["loss"]) for entry in history if "loss" in entry] == whole.groups["direct"].losses


def test_all_roles_can_share_one_set_of_weights(make_config: ConfigMaker) -> None:
    result = train(make_config(shared=True, roles=["stage1", "stage2", "direct", "fast"]))
    folder = ModelFolder.load(result.folder)
    assert {role.folder for role in folder.roles.values()} == {"weights"}
    assert folder.roles["stage1"].prompt == ("[E]",)
    assert folder.roles["fast"].prompt == ("[F]",)
    assert set(result.em) == {"stage1", "stage2", "direct", "fast"}


@pytest.mark.parametrize(
    ("roles", "variant"),
    [(["direct"], "direct"), (["fused"], "fused"), (["fast"], "fast"), (["stage1", "rfis"], "rfis")],
)
def test_every_variant_trains(make_config: ConfigMaker, roles: list[str], variant: str) -> None:
    result = train(make_config(roles=roles, optimisation={"epochs": 1}))
    assert ModelFolder.load(result.folder).variant == variant
    assert set(result.em) == set(roles)
    TorchGenerator.from_pretrained(result.folder / roles[-1], device="cpu")


def test_stage_2_can_be_trained_on_what_stage_1_predicts(make_config: ConfigMaker) -> None:
    result = train(make_config(perturbation={"operations": "predicted"}, optimisation={"epochs": 1}))
    predicted = read_operations(result.folder / "training" / "operations.train.jsonl")
    assert len(predicted) == 48
    assert "stage2" in result.em


def test_a_trained_stage_1_can_be_taken_as_it_is(make_config: ConfigMaker, tmp_path: Path) -> None:
    first = train(make_config(output=str(tmp_path / "first"), roles=["stage1"]))
    second = train(make_config(output=str(tmp_path / "second"), model={"stage1": str(first.folder)}))
    assert same(weights(first, "stage1"), weights(second, "stage1"))
    assert set(ModelFolder.load(second.folder).roles) == {"stage1", "stage2"}
    third = make_config(output=str(tmp_path / "third"), roles=["direct"])
    train(third)
    with pytest.raises(ModelError, match="expected a stage 1 with weights of its own, found direct"):
        train(make_config(output=str(tmp_path / "fourth"), model={"stage1": third.output}))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"r_drop": 1.0}, "R-Drop"),
        ({"warmup": 0.5, "workers": 1}, "a warm-up, with batches from a worker"),
    ],
)
def test_every_option_of_the_fitting_trains(make_config: ConfigMaker, settings: dict[str, Any], reason: str) -> None:
    result = train(make_config(roles=["direct"], optimisation={**settings, "epochs": 8, "learning_rate": 3e-3}))
    losses = [loss for _, loss in result.groups["direct"].losses]
    assert sum(losses[-3:]) < sum(losses[:3]) * 0.9, f"{reason}: the loss falls"


def test_the_best_checkpoint_by_dev_em_is_kept(make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.25, 0.75, 0.75, 0.5])
    seen: list[dict[str, torch.Tensor]] = []

    def evaluate(self: Any, model: torch.nn.Module, codec: Any) -> dict[str, float]:
        seen.append({name: weight.detach().clone() for name, weight in model.named_parameters()})
        score = next(scores)
        return {"em": score, "em_direct": score}

    monkeypatch.setattr("teo.training.dev.DevSet.evaluate", evaluate)
    result = train(make_config(roles=["direct"], optimisation={"epochs": 4}))
    assert result.em == {"direct": 0.75}
    kept = weights(result, "direct")
    assert all(torch.equal(kept[name], seen[1][name]) for name in kept if name in seen[1]), "the first of equals"


def test_the_average_is_what_is_evaluated_and_saved(make_config: ConfigMaker, tmp_path: Path) -> None:
    averaged = train(make_config(output=str(tmp_path / "a"), roles=["direct"], optimisation={"ema": 0.99}))
    plain = train(make_config(output=str(tmp_path / "b"), roles=["direct"]))
    assert averaged.groups["direct"].losses == plain.groups["direct"].losses, "the average does not change training"
    assert not same(weights(averaged, "direct"), weights(plain, "direct"))


def test_a_run_without_dev_rows_keeps_the_last_weights(make_config: ConfigMaker) -> None:
    result = train(make_config(roles=["direct"], data={"dev": ""}))
    assert result.em == {}
    assert (result.folder / "direct" / "model.safetensors").is_file()


def test_several_datasets_are_mixed(make_config: ConfigMaker, rows_folder: Path) -> None:
    data = [{"path": str(rows_folder), "repeat": 2}, {"path": str(rows_folder), "rows": 8, "dev_rows": 3}]
    run = Run(make_config(data=data))
    assert len(run.rows.train) == 56
    assert sum(run.rows.repeats) == 104
    assert len(run.rows.dev) == 11
    assert len({row.id for row in run.rows.train}) == 56, "ids tell the datasets apart"


def test_the_log_has_plain_lines(make_config: ConfigMaker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="teo")
    train(make_config(roles=["direct"], optimisation={"epochs": 1}))
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "direct: 48 examples," in text
    assert "direct: epoch 1.00 step 6: loss " in text
    assert "dev EM 0." in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA GPU")
def test_cuda_that_is_not_there_is_one_clear_line(make_config: ConfigMaker) -> None:
    with pytest.raises(InputError, match=r"^device: 'cuda' was asked for, but torch finds 0 CUDA devices; use "):
        train(make_config(device="cuda"))


def test_a_dataset_of_another_form_is_one_clear_line(make_config: ConfigMaker, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("a\tb\tc\n")
    with pytest.raises(DataError) as error:
        train(make_config(data={"path": str(path)}))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_output_folder_with_a_run_is_refused(make_config: ConfigMaker) -> None:
    config = make_config(roles=["direct"], optimisation={"epochs": 1})
    train(config)
    with pytest.raises(
        ConfigError, match="already holds a run; resume it with --resume, start again with overwrite=true"
    ):
        train(config)
    with pytest.raises(ConfigError, match=r"optimisation\.epochs: the run to resume was started with 1, found 2"):
        train(make_config(roles=["direct"]), resume=True)
    assert train(config, resume=True).em == train(make_config(roles=["direct"], overwrite=True)).em


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"path": "mien"}}, "mien"),
        ({"model": {"base": "facebok"}}, "facebok: "),
        ({"model": {"dropout": 0.1}}, "model.dropout: only our own backbone can change it"),
        ({"model": {"frozen_layers": 1}}, "model.frozen_layers: only our own backbone has them"),
        ({"roles": ["stage2"], "model": {"stage1": "gone"}}, "gone"),
        ({"roles": ["stage2"], "perturbation": {"predicted": "gone.jsonl"}}, "gone.jsonl: no such file"),
        ({"model": {"base": "OUTPUT/direct"}}, "output: expected another folder than that of the source"),
    ],
    ids=["data", "base", "dropout", "frozen layers", "stage1", "operations", "its own base"],
)
def test_a_mistake_does_not_cost_the_model_that_is_to_be_overwritten(
    make_config: ConfigMaker, changes: dict[str, Any], message: str
) -> None:
    config = make_config(roles=["direct"], optimisation={"epochs": 1})
    result = train(config)
    before = sorted(result.folder.rglob("*"))
    if changes.get("model", {}).get("base") == "OUTPUT/direct":
        changes = {"model": {"base": f"{result.folder}/direct"}}
    with pytest.raises(TeoError, match=re.escape(message)):
        train(make_config(**{"roles": ["direct"], **changes, "overwrite": True}))
    assert sorted(result.folder.rglob("*")) == before
    assert ModelFolder.load(result.folder).variant == "direct"
    train(make_config(roles=["fast"], optimisation={"epochs": 1}, overwrite=True))
    assert not (result.folder / "direct").exists(), "a start without a mistake does replace it"


@pytest.mark.parametrize("name", ["training", "weights", "direct"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_folders_that_are_not_a_runs_are_never_deleted(
    make_config: ConfigMaker, tmp_path: Path, name: str, overwrite: bool
) -> None:
    notes = tmp_path / "model" / name / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.touch()
    found = notes if name == "training" else notes.parent
    with pytest.raises(ConfigError, match=re.escape(f"expected a new folder or that of a run, found {found} in it")):
        train(make_config(roles=["direct"], overwrite=overwrite))
    assert notes.exists()


def test_a_start_that_failed_on_a_wrong_base_leaves_no_run(make_config: ConfigMaker) -> None:
    with pytest.raises(ModelError):
        train(make_config(roles=["direct"], model={"base": "facebok"}, optimisation={"epochs": 1}))
    assert "direct" in train(make_config(roles=["direct"], optimisation={"epochs": 1})).em


def test_changed_data_is_not_resumed(
    make_config: ConfigMaker, rows_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(rows_folder, mine)
    config = make_config(roles=["direct"], data={"path": str(mine)}, optimisation={"epochs": 1})
    train_until(config, 3, monkeypatch, group="direct")
    (mine / "train.jsonl").write_text((mine / "dev.jsonl").read_text())
    (mine / "test.jsonl").rename(mine / "other.jsonl")
    for name, found in (("other", "a new file"), ("test", "no such file"), ("train", "other data")):
        with pytest.raises(
            ConfigError, match=rf"{name}\.jsonl: expected the data that the run .*, found {found}; put it"
        ):
            train(config, resume=True)
        (mine / "other.jsonl").unlink(missing_ok=True)
        if name != "other":
            shutil.copy(rows_folder / f"{name}.jsonl", mine)
    assert "direct" in train(config, resume=True).em


def test_a_run_in_the_folder_of_its_data_is_resumed(
    make_config: ConfigMaker, rows_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(rows_folder, tmp_path / "mine")
    changes = {"data": {"path": str(tmp_path / "mine")}, "output": str(tmp_path / "mine"), "roles": ["direct"]}
    config = make_config(**changes)
    train_until(config, 9, monkeypatch, group="direct")
    assert "direct" in train(config, resume=True).em, "what the run makes is not its data"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"config": {}, "data": [3]}'])
def test_a_broken_record_is_one_clear_line(make_config: ConfigMaker, tmp_path: Path, text: str) -> None:
    record = tmp_path / "model" / "training" / "record.json"
    record.parent.mkdir(parents=True)
    record.write_text(text)
    with pytest.raises(
        ConfigError, match=r"record\.json: expected the record of the run to resume, found none that is"
    ):
        train(make_config(roles=["direct"]), resume=True)


def test_a_run_that_diverged_between_two_lines_of_the_log_is_not_saved(make_config: ConfigMaker) -> None:
    fit = {"learning_rate": 1e30, "clip": 1e30, "epochs": 2}
    config = make_config(roles=["direct"], optimisation=fit, writing={"log_every": 1000})
    with pytest.raises(TeoError, match=r"the loss or its gradient is not finite at update 6; lower the learning rate"):
        train(config)
    work = Path(config.output) / "training" / "direct"
    assert not (work / "best").exists()
    assert not (work / CHECKPOINT).exists()
    late = {"data": {"dev": ""}, "writing": {"log_every": 1000, "checkpoint_epochs": 0}}
    with pytest.raises(TeoError, match="not finite at update 12"):
        train(make_config(roles=["direct"], optimisation=fit, output=f"{config.output}-late", **late))


RANDOM: dict[str, Any] = {
    "base": "random",
    "random": {"family": "teo", "width": 16, "layers": 1, "heads": 2, "dropout": 0.1},
}


@pytest.mark.parametrize("family", ["bart", "teo"])
def test_a_random_model_that_was_killed_before_a_checkpoint_starts_from_the_same_weights(
    make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    model = {"base": "random", "layout": 2, "random": {**RANDOM["random"], "family": family}}
    changes = {"roles": ["direct"], "model": model, "optimisation": {"epochs": 1}}
    config = make_config(**changes)
    whole = train(make_config(**changes, output=f"{config.output}-whole"))
    train_until(config, 3, monkeypatch, group="direct")
    assert same(weights(train(config, resume=True), "direct"), weights(whole, "direct"))


def test_the_runs_dropout_is_that_of_every_set_of_weights(make_config: ConfigMaker, tmp_path: Path) -> None:
    fit = {"epochs": 1}
    first = train(make_config(roles=["stage1"], model={**RANDOM, "dropout": 0.2}, optimisation=fit))
    model = {**RANDOM, "stage1": str(first.folder), "dropout": 0.3}
    second = train(make_config(output=str(tmp_path / "second"), roles=["stage2"], model=model, optimisation=fit))
    same_as_made = {"base": "random", "random": {**RANDOM["random"], "family": "bart"}, "dropout": 0.1}
    train(make_config(output=str(tmp_path / "third"), roles=["direct"], model=same_as_made, optimisation=fit))
    folders = {0.2: first.folder / "stage1", 0.3: second.folder / "stage2"}
    for dropout, folder in folders.items():
        assert json.loads((folder / "config.json").read_text())["dropout"] == dropout


def test_predicted_operations_need_a_stage_1(make_config: ConfigMaker) -> None:
    with pytest.raises(ConfigError, match="expected a JSONL file, since no stage 1 is finished before stage 2 here"):
        train(make_config(roles=["stage2"], perturbation={"operations": "predicted"}))


@pytest.mark.parametrize("when", ["best", "checkpoint"])
@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("Error while serializing: I/O error: Os { code: 28, kind: StorageFull }"),
    ],
    ids=["OSError", "writer"],
)
def test_a_full_disk_is_one_clear_line_and_leaves_nothing_corrupt(
    make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch, when: str, error: Exception
) -> None:
    config = make_config(roles=["direct"])
    output = Path(config.output)
    from transformers import PreTrainedModel

    saved: list[Path] = []

    def write_half(original: Callable[..., None], model: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        saved.append(Path(path))
        if len(saved) < 2:
            original(model, path, *args, **kwargs)
            return
        file = Path(path) / "model.safetensors" if Path(path).is_dir() else Path(path)
        file.write_bytes(b"half")
        raise error

    with monkeypatch.context() as patch:
        writer = (PreTrainedModel, "save_pretrained") if when == "best" else (torch, "save")
        original = getattr(*writer)
        patch.setattr(*writer, lambda *args, **kwargs: write_half(original, *args, **kwargs))
        scores = iter([0.1, 0.2])  # the second dev EM is higher, so that it is saved
        patch.setattr("teo.training.dev.DevSet.evaluate", lambda *_: {"em": (s := next(scores)), "em_direct": s})
        with pytest.raises(TeoError) as failure:
            train(config)
    message = str(failure.value)
    assert "could not be saved (the disk is full)" in message
    assert "resume it with --resume" in message
    assert "\n" not in message
    assert not (output / "teo.json").exists(), "no folder that looks like a model"
    assert not list(output.rglob("*.part"))
    assert not list(output.rglob(".teo-*"))
    assert torch.load(output / "training" / "direct" / CHECKPOINT)["clock"]["step"] == 6, "no half checkpoint"
    assert train(config, resume=True).em.keys() == {"direct"}, "with room again, the run is resumed"


def test_on_a_terminal_updates_are_counted_and_stdout_stays_empty(
    make_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    train(make_config(roles=["direct"], optimisation={"epochs": 1}))
    captured = capsys.readouterr()
    assert "6/6" in captured.err
    assert captured.out == "", "stdout is for data"


def test_away_from_a_terminal_nothing_is_counted(make_config: ConfigMaker, capsys: pytest.CaptureFixture[str]) -> None:
    train(make_config(roles=["direct"], optimisation={"epochs": 1}))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "6/6" not in captured.err
    assert "\r" not in captured.err
