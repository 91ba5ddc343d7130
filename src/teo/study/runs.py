"""Runs of a study: what is not finished is trained and evaluated, and kept without the datasets' text.

RUNS/RUN/                      the model, its checkpoints and, in evaluation/VARIANT, its predictions
OUT/RUN/run.json               settings, dev EM and times of a run
OUT/RUN/DATASET-test-VARIANT.* metrics and rows of an evaluation; where they are, it is not made again
OUT/RUN/cases.json             what the model makes of the paper's examples
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from teo.data import load_rows
from teo.errors import ConfigError, InputError
from teo.evaluation.storing import store
from teo.files import write_json
from teo.study.experiments import CASES, Measurement, Run
from teo.training.config import TrainConfig, read_config
from teo.training.record import RECORD, GroupResult, flatten, require_same
from teo.training.run_folder import SHARED
from teo.training.settings import to_tree

SPLIT = "test"
_RUN = "run.json"
_WORK = "training"
_PLACES = ("output", "device", "overwrite", "model.stage1", "perturbation.predicted")
"""Keys that say where something lies or is computed: two runs that differ in them alone are the same."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Study:
    """Where a study starts from, and where it leaves what it makes."""

    base: str
    """Folder or hub name of the model that all runs start from; empty: that of each recipe."""
    data: Path
    """The folder that holds task, rewrite and res200k."""
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
        if not self.data.is_dir():
            raise InputError(f"data: expected a folder that holds task, rewrite or res200k, found none at {self.data}")

    def folder(self, run: Run) -> Path:
        """Return where a run's model is written."""
        return self.runs / run.name

    def kept(self, run: Run) -> Path:
        """Return where a run's results are stored."""
        return self.out / run.name

    def metrics(self, measurement: Measurement) -> Path:
        """Return the file of a stored evaluation, which need not be there yet."""
        if measurement.variant == CASES:
            return self.kept(measurement.run) / f"{CASES}.json"
        name = self.config(measurement.run).data[0].name
        return self.kept(measurement.run) / f"{name}-{SPLIT}-{measurement.variant}.json"

    def config(self, run: Run) -> TrainConfig:
        """Return a run's configuration: its recipe, the study's overrides, and what makes it this run."""
        if run.prob_p is not None and any(text.startswith("perturbation.prob_p=") for text in self.overrides):
            raise ConfigError("perturbation.prob_p: expected no override, since figure 3 sets its values; leave it out")
        data = self.data / run.dataset
        values: dict[str, object] = {"output": self.folder(run), "seed": run.seed, "data.path": data}
        if base := self.t5 if run.kind == "t5" else self.base:
            values["model.base"] = base
        if run.stage1_from is not None:
            values["model.stage1"] = self.folder(run.stage1_from)
        if run.prob_p is not None:
            values["perturbation.prob_p"] = run.prob_p
        # Written as JSON, numbers and text are TOML.
        laid = [f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in values.items()]
        return read_config(self.recipes / run.recipe, [*self.overrides, *laid])


def read_run(study: Study, run: Run) -> dict[str, Any]:
    """Return what is stored of a run; nothing where it was never finished, and other settings are refused."""
    file = study.kept(run) / _RUN
    if not file.is_file():
        return {}
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    before, now = stored["settings"], settings_of(study.config(run))
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            raise ConfigError(
                f"{key}: the results in {study.kept(run)} were made with {json.dumps(before.get(key))}, found "
                f"{json.dumps(now.get(key))}; give the same settings or another --out and --runs"
            )
    return stored


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that decide a run's result, flat, without the places of files."""
    flat = flatten(to_tree(config))
    flat = {key: value for key, value in flat.items() if key not in _PLACES and not key.endswith(".path")}
    return {**flat, "model.base": Path(str(flat["model.base"])).name}


def finish(study: Study, measurements: Sequence[Measurement], progress: TextIO | None = None) -> None:
    """Train and evaluate what is not finished."""
    for measurement in measurements:
        read_run(study, measurement.run)  # refuses other settings before anything is trained
    for measurement in measurements:
        if not study.metrics(measurement).is_file():
            ensure_model(study, measurement.run)
            _evaluate(study, measurement, progress)


def ensure_model(study: Study, run: Run) -> Path:
    """Return the folder of a run's model, trained now or before."""
    from teo.training.finetune import train  # here, because it takes seconds and a finished study needs no torch

    config, folder = study.config(run), study.folder(run)
    if run.stage1_from is not None:
        ensure_model(study, run.stage1_from)
    work = folder / _WORK
    if (folder / "teo.json").is_file():
        require_same(work, config)
        if read_run(study, run):
            return folder
        seconds, resumed = None, False
    else:
        resumed = work.is_dir()
        logger.info("%s: training (%s)", run.name, run.recipe)
        started = time.perf_counter()
        train(config, resume=resumed)
        seconds = round(time.perf_counter() - started, 1)
    record = json.loads((work / RECORD).read_text(encoding="utf-8"))
    groups = (SHARED,) if config.shared else config.roles
    em = {name: score for group in groups for name, score in GroupResult.read(work / group).em.items()}
    _write_run(
        study,
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


def _evaluate(study: Study, measurement: Measurement, progress: TextIO | None) -> None:
    run = measurement.run
    logger.info("%s: evaluating %s", run.name, measurement.variant)
    started = time.perf_counter()
    if measurement.variant == CASES:
        from teo.study.cases import rewrite_cases

        write_json(study.metrics(measurement), rewrite_cases(study.folder(run), run, study.config(run).device))
    else:
        _evaluate_test(study, measurement, progress)
    seconds = round(time.perf_counter() - started, 1)
    stored = read_run(study, run)
    times = {**stored["evaluation_seconds"], measurement.variant: seconds}
    _write_run(study, run, {**stored, "evaluation_seconds": times})


def _evaluate_test(study: Study, measurement: Measurement, progress: TextIO | None) -> None:
    """Evaluate a variant on the test set and store its metrics and rows."""
    from teo.evaluation.evaluate import Request, evaluate

    run, config = measurement.run, study.config(measurement.run)
    (data,) = config.data
    request = Request(
        data=data.name,
        path=Path(data.path),
        out=study.folder(run) / "evaluation" / measurement.variant,
        split=SPLIT,
        model=study.folder(run),
        variant=measurement.variant,
        batch_size=config.evaluation.batch_size,
        device=config.device,
        seed=run.seed,
        options=data.options,
    )
    evaluate(request, progress)
    store(study.kept(run), request.out)


def _write_run(study: Study, run: Run, value: Mapping[str, Any]) -> None:
    study.kept(run).mkdir(parents=True, exist_ok=True)
    write_json(study.kept(run) / _RUN, value)
