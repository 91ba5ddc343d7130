"""Runs of a table: what is not finished is trained and evaluated, and stored without the datasets' text.

RUNS/RUN/                      the model, its checkpoints and, in evaluation/VARIANT, its predictions
OUT/RUN/run.json               settings, dev EM and times of a run
OUT/RUN/DATASET-test-VARIANT.* metrics and rows of an evaluation; if they are there, it is not made again
OUT/RUN/cases.json             what the model makes of the paper's examples
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from teo.data import load_rows
from teo.errors import ConfigError, InputError
from teo.files import write_json
from teo.training.config import TrainConfig, read_config
from teo.training.record import RECORD, GroupResult, flatten, require_same
from teo.training.settings import to_tree
from teo_lab.reproduce.experiments import CASES, Measurement, Run
from teo_lab.reproduce.stored_rows import store

SPLIT = "test"
RUN = "run.json"
_WORK = "training"
_PLACES = ("output", "device", "overwrite", "model.stage1", "perturbation.predicted")
"""Keys that say where something lies or is computed: two runs that differ in them alone are the same."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the runs start from, and where they leave what they make."""

    base: str
    """Folder or hub name of the model that all runs start from; empty: that of each recipe."""
    data: Path | None
    """The folder that holds task, rewrite and res200k; None: they are not needed for what is stored."""
    runs: Path
    """Models and predictions go here."""
    out: Path
    """Tables and stored evaluations go here."""
    recipes: Path
    t5: str = ""
    """The model that TEO-T5 starts from; empty: no such row."""
    overrides: tuple[str, ...] = ()
    """`key=value` laid over every recipe."""

    def __post_init__(self) -> None:
        if self.data is not None and not self.data.is_dir():
            raise InputError(f"data: expected a folder that holds task, rewrite or res200k, found none at {self.data}")

    def has_data(self, dataset: str) -> bool:
        """Tell whether a dataset's files are there."""
        return self.data is not None and (self.data / dataset).exists()

    def folder(self, run: Run) -> Path:
        """Return where a run's model is written."""
        return self.runs / run.name

    def stored_in(self, run: Run) -> Path:
        """Return where a run's results are stored."""
        return self.out / run.name

    def metrics(self, measurement: Measurement) -> Path:
        """Return the file of a stored evaluation, which need not be there yet."""
        if measurement.variant == CASES:
            return self.stored_in(measurement.run) / f"{CASES}.json"
        name = self.config(measurement.run).data[0].name
        return self.stored_in(measurement.run) / f"{name}-{SPLIT}-{measurement.variant}.json"

    def config(self, run: Run) -> TrainConfig:
        """Return a run's configuration: its recipe and kind, the workspace's overrides, and what makes it this run."""
        if run.prob_p is not None and any(text.startswith("perturbation.prob_p=") for text in self.overrides):
            raise ConfigError("perturbation.prob_p: expected no override, since figure 3 sets its values; leave it out")
        values: dict[str, object] = {"output": self.folder(run), "seed": run.seed}
        if self.data is not None:
            values["data.path"] = self.data / run.dataset
        if base := self.t5 if run.kind == "t5" else self.base:
            values["model.base"] = base
        if run.stage1_from is not None:
            values["model.stage1"] = self.folder(run.stage1_from)
        # Written as JSON, numbers and text are TOML.
        laid = [f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in values.items()]
        return read_config(self.recipes / run.recipe, [*run.overrides, *self.overrides, *laid])


def read_run(workspace: Workspace, run: Run) -> dict[str, Any]:
    """Return what is stored of a run; nothing if it was never finished, and other settings are refused."""
    file = workspace.stored_in(run) / RUN
    if not file.is_file():
        return {}
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    now = settings_of(workspace.config(run))
    # A setting that was not there when the results were made had the recipe's value; one that is gone decides nothing.
    before = {**settings_of(replace(workspace, overrides=()).config(run)), **stored["settings"]}
    for key in sorted(now):
        if before.get(key) != now[key]:
            raise ConfigError(
                f"{key}: the results in {workspace.stored_in(run)} were made with {json.dumps(before.get(key))}, found "
                f"{json.dumps(now[key])}; give the same settings or another --out and --runs"
            )
    return stored


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that decide a run's result, flat, without the places of files."""
    flat = flatten(to_tree(config))
    flat = {key: value for key, value in flat.items() if key not in _PLACES and not key.endswith(".path")}
    return {**flat, "model.base": Path(str(flat["model.base"])).name}


def describe_recipe(run: Run) -> str:
    """Return the recipe of a run and what it changes there, as `teo train` takes them."""
    return " ".join([run.recipe, *run.overrides])


def finish(workspace: Workspace, measurements: Sequence[Measurement], progress: TextIO | None = None) -> None:
    """Train and evaluate what is not finished."""
    for measurement in measurements:
        read_run(workspace, measurement.run)  # refuses other settings before anything is trained
    for measurement in measurements:
        if not workspace.metrics(measurement).is_file():
            ensure_model(workspace, measurement.run)
            _evaluate(workspace, measurement, progress)


def ensure_model(workspace: Workspace, run: Run) -> Path:
    """Return the folder of a run's model, trained now or before."""
    # Here, because finished runs need no torch.
    from teo.training.finetune import train
    from teo.training.run_folder import SHARED

    config, folder = workspace.config(run), workspace.folder(run)
    if run.stage1_from is not None:
        ensure_model(workspace, run.stage1_from)
    work = folder / _WORK
    if (folder / "teo.json").is_file():
        require_same(work, config)
        if read_run(workspace, run):
            return folder
        seconds, resumed = None, False
    else:
        resumed = work.is_dir()
        logger.info("%s: training (%s)", run.name, describe_recipe(run))
        started = time.perf_counter()
        train(config, resume=resumed)
        seconds = round(time.perf_counter() - started, 1)
    record = json.loads((work / RECORD).read_text(encoding="utf-8"))
    groups = (SHARED,) if config.shared else config.roles
    em = {name: score for group in groups for name, score in GroupResult.read(work / group).em.items()}
    _write_run(
        workspace,
        run,
        {
            "recipe": run.recipe,
            "settings": settings_of(config),
            "train_rows": _count_train_rows(config),
            "dev_em": em,
            "seconds": seconds,
            "resumed": resumed,
            "evaluation_seconds": {},
            **{key: record[key] for key in ("device", "versions", "git_commit")},
        },
    )
    return folder


def _count_train_rows(config: TrainConfig) -> int:
    """Return how many rows a run was trained on; published figures may rest on more."""
    (data,) = config.data
    options: dict[str, Any] = dict(data.options)
    rows = len(load_rows(data.name, data.path, data.train, **options).rows)
    return min(rows, data.rows) if data.rows else rows


def _evaluate(workspace: Workspace, measurement: Measurement, progress: TextIO | None) -> None:
    run = measurement.run
    logger.info("%s: evaluating %s", run.name, measurement.variant)
    started = time.perf_counter()
    if measurement.variant == CASES:
        from teo_lab.reproduce.cases import rewrite_cases

        write_json(
            workspace.metrics(measurement), rewrite_cases(workspace.folder(run), run, workspace.config(run).device)
        )
    else:
        _evaluate_test(workspace, measurement, progress)
    seconds = round(time.perf_counter() - started, 1)
    stored = read_run(workspace, run)
    times = {**stored["evaluation_seconds"], measurement.variant: seconds}
    _write_run(workspace, run, {**stored, "evaluation_seconds": times})


def _evaluate_test(workspace: Workspace, measurement: Measurement, progress: TextIO | None) -> None:
    """Evaluate a variant on the test set and store its metrics and rows."""
    from teo.evaluation.evaluate import Request, evaluate

    run, config = measurement.run, workspace.config(measurement.run)
    (data,) = config.data
    request = Request(
        data=data.name,
        path=Path(data.path),
        out=workspace.folder(run) / "evaluation" / measurement.variant,
        split=SPLIT,
        model=workspace.folder(run),
        variant=measurement.variant,
        batch_size=config.evaluation.batch_size,
        device=config.device,
        seed=run.seed,
        options=data.options,
    )
    evaluate(request, progress)
    store(workspace.stored_in(run), request.out)


def _write_run(workspace: Workspace, run: Run, value: Mapping[str, Any]) -> None:
    workspace.stored_in(run).mkdir(parents=True, exist_ok=True)
    write_json(workspace.stored_in(run) / RUN, value)
