"""reproduce_baselines(experiment): every baseline on every dataset, trained, evaluated, stored and printed.

RUNS/DATASET-BASELINE/                  the baseline, and in evaluation/SPLIT its predictions
OUT/DATASET-SPLIT-BASELINE.*            metrics and rows of an evaluation, without text; it is made once
OUT/baselines.json, OUT/baselines.md    how many rows each baseline can express, and the table with published figures
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.data.row import Row
from teo.errors import ConfigError, InputError
from teo.evaluation.evaluate import Request
from teo.evaluation.markdown import percent, table
from teo.files import write_json, write_text
from teo.training.settings import build, lay_over
from teo_lab.baselines.evaluate import evaluate_baseline
from teo_lab.baselines.folder import is_baseline
from teo_lab.baselines.labels import gold_spans, make_matrix
from teo_lab.baselines.matrix import MatrixBaseline
from teo_lab.baselines.storing import BASELINES, read_baseline
from teo_lab.baselines.training import BaselineTraining, train_baseline
from teo_lab.reproduce.experiments import DATASETS
from teo_lab.reproduce.stored import read_paper
from teo_lab.reproduce.stored_rows import store

SETTINGS: Mapping[str, BaselineTraining] = {
    "rewrite": BaselineTraining(),
    "task": BaselineTraining(epochs=40, batch_size=64),
}
"""The datasets of the baselines, and how a baseline is trained on each."""
SPLITS = ("dev", "test")
_METRICS = {"EM": "em", "BLEU-2": "bleu2", "BLEU-4": "bleu4", "ROUGE-2": "rouge2", "F1": "run_f1", "F2": "run_f2"}
_PUBLISHED = {"EM": "em", "BLEU-2": "bleu2", "BLEU-4": "bleu4", "ROUGE-2": "rouge2", "F1": "f1", "F2": "f2"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BaselineExperiment:
    """Where the baselines start from, and where what they make is left."""

    base: str
    data: Path
    """The folder that holds rewrite and task."""
    runs: Path
    out: Path
    published: Path
    overrides: tuple[str, ...] = ()
    """`key=value` laid over the settings of training."""
    limit: int | None = None
    """Only the first rows of each split, for a rehearsal."""

    def settings(self, dataset: str) -> BaselineTraining:
        """Return how baselines are trained on a dataset."""
        tree: dict[str, Any] = asdict(SETTINGS[dataset])
        for override in self.overrides:
            lay_over(tree, override)
        return build(BaselineTraining, tree, "baselines")

    def datasets(self) -> list[str]:
        """Return the datasets that are there; it is an error when none is."""
        found = [name for name in SETTINGS if (self.data / name).exists()]
        if not found:
            wanted = " or ".join(str(self.data / name) for name in SETTINGS)
            raise InputError(f"data: expected {wanted}, found no such folder; see teo data download")
        return found

    def rows(self, dataset: str, split: str) -> tuple[Row, ...]:
        """Return the rows of a split."""
        return load_rows(dataset, self.data / dataset, split).rows[: self.limit]

    def folder(self, dataset: str, baseline: str) -> Path:
        """Return where a baseline is written."""
        return self.runs / f"{dataset}-{baseline}"

    def metrics(self, dataset: str, split: str, baseline: str) -> Path:
        """Return the file of a stored evaluation, which need not be there yet."""
        return self.out / f"{dataset}-{split}-{baseline}.json"


def reproduce_baselines(experiment: BaselineExperiment) -> str:
    """Return the table of all baselines as Markdown, also written to a file; what is finished stays."""
    datasets = experiment.datasets()
    published = read_paper(experiment.published)  # before any training
    for dataset in datasets:
        for baseline in BASELINES:
            for split in SPLITS:
                if not _is_finished(experiment, dataset, split, baseline):
                    _ensure_baseline(experiment, dataset, baseline)
                    _evaluate(experiment, dataset, split, baseline)
    bounds = {
        dataset: {split: count_expressible(experiment.rows(dataset, split)) for split in ("train", *SPLITS)}
        for dataset in datasets
    }
    write_json(experiment.out / "baselines.json", {"expressible": bounds})
    pages = []
    for dataset in datasets:
        rows = [
            [row.system, *(_printed(row.metrics.get(name)) for name in _PUBLISHED.values()), *["-"] * 4]
            for row in published
            if row.dataset == dataset and row.system in ("RUN", "RAU", "MIUR", "Locate-Fill")
        ]
        rows += [_row(experiment, dataset, baseline, bounds[dataset]["test"][baseline]) for baseline in BASELINES]
        head = ("system", *_METRICS, "can express", "dev EM", "ms a dialogue", "training, s")
        pages.append(f"## {DATASETS[dataset]}\n\n{table(head, rows, 'l' + 'r' * (len(head) - 1))}\n")
    page = "\n".join(pages)
    write_text(experiment.out / "baselines.md", page)
    return page


def describe_baselines(experiment: BaselineExperiment) -> str:
    """Return what `reproduce_baselines` would train and evaluate."""
    lines = []
    for dataset in experiment.datasets():
        for baseline in BASELINES:
            left = [split for split in SPLITS if not _is_finished(experiment, dataset, split, baseline)]
            trained = is_baseline(experiment.folder(dataset, baseline))
            state = "trained" if trained or not left else "to train"
            lines.append(f"{dataset}-{baseline}: {state}; to evaluate: {', '.join(left) or 'nothing'}")
    return "\n".join(lines) + "\n"


def count_expressible(rows: Sequence[Row]) -> dict[str, float]:
    """Return the share of rows whose rewrite each baseline can express: the highest EM that it could reach."""
    matrices = [make_matrix(row.dialogue, gold_spans(row.dialogue, row.rewrite)) for row in rows]
    told = sum(matrix is not None for matrix in matrices) / len(rows)
    return {name: told if kind is MatrixBaseline else 1.0 for name, kind in BASELINES.items()}


def _is_finished(experiment: BaselineExperiment, dataset: str, split: str, baseline: str) -> bool:
    """Tell whether an evaluation is stored; one of other settings is refused."""
    file = experiment.metrics(dataset, split, baseline)
    if not file.is_file():
        return False
    trained = json.loads(file.read_text(encoding="utf-8"))["run"]["training"]
    _require_same(experiment, dataset, trained, file)
    return True


def _require_same(experiment: BaselineExperiment, dataset: str, trained: Mapping[str, Any], stored: Path) -> None:
    wanted = {"base": Path(experiment.base).name, **asdict(experiment.settings(dataset))}
    found = {"base": trained["base"], **trained["settings"]}
    for key, value in wanted.items():
        if key != "device" and value != found.get(key):
            raise ConfigError(
                f"{key}: {stored} was made with {json.dumps(found.get(key))}, found {json.dumps(value)}; "
                "give the same settings or another --out and --runs"
            )


def _ensure_baseline(experiment: BaselineExperiment, dataset: str, baseline: str) -> None:
    folder = experiment.folder(dataset, baseline)
    if is_baseline(folder):
        _require_same(experiment, dataset, read_baseline(folder)["training"], folder)
        return
    logger.info("%s on %s: training", baseline, dataset)
    train, dev = experiment.rows(dataset, "train"), experiment.rows(dataset, "dev")
    train_baseline(baseline, experiment.base, train, dev, folder, experiment.settings(dataset))


def _evaluate(experiment: BaselineExperiment, dataset: str, split: str, baseline: str) -> None:
    logger.info("%s on %s: evaluating %s", baseline, dataset, split)
    folder = experiment.folder(dataset, baseline)
    request = Request(
        data=dataset,
        path=experiment.data / dataset,
        out=folder / "evaluation" / split,
        split=split,
        model=folder,
        limit=experiment.limit,
        batch_size=256,
        device=experiment.settings(dataset).device,
    )
    evaluate_baseline(request)
    store(experiment.out, request.out)


def _row(experiment: BaselineExperiment, dataset: str, baseline: str, bound: float) -> list[str]:
    dev, test = (
        json.loads(experiment.metrics(dataset, split, baseline).read_text(encoding="utf-8")) for split in SPLITS
    )
    return [
        f"**{baseline}, after {BASELINES[baseline].after}**",
        *(percent(test[name]) for name in _METRICS.values()),
        percent(bound),
        percent(dev["em"]),
        f"{test['run']['latency']['median_ms']:.1f}",
        f"{test['run']['training']['seconds']:.0f}",
    ]


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
