"""What the tables share: where their figures come from, and how a figure becomes a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from teo.evaluation.markdown import percent, plain, table
from teo.metrics.base import Interval
from teo.metrics.significance import Difference
from teo_lab.reproduce.experiments import Measurement, Run, System
from teo_lab.reproduce.runs import Workspace, read_run
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.stored import Published

_LABELS = {"bleu": "BLEU-", "rouge": "ROUGE-", "p": "P", "r": "R", "f": "F"}


@dataclass(frozen=True, slots=True)
class TableSource:
    """What tables are made from: the stored results, the paper's rows, and how many seeds count."""

    workspace: Workspace
    paper: Sequence[Published]
    seeds: int
    datasets: Sequence[str]

    def measured(self, dataset: str, kind: str, variant: str) -> SeedResults | None:
        """Return a system's evaluations over the seeds that are stored; None if there are none."""
        runs = [Run(dataset, kind, seed) for seed in range(self.seeds)]
        files = [self.workspace.metrics(Measurement(run, variant)) for run in runs]
        stored = [file for file in files if file.is_file()]
        return SeedResults.read(stored) if stored else None

    def measure_all(self, dataset: str, systems: Iterable[System]) -> dict[System, SeedResults]:
        """Return the systems that are stored, with their evaluations."""
        found = {system: self.measured(dataset, system.kind, system.variant) for system in systems}
        return {system: measured for system, measured in found.items() if measured is not None}

    def published(self, dataset: str, system: str) -> Published | None:
        """Return the paper's row of a system."""
        return next((row for row in self.paper if (row.dataset, row.system) == (dataset, system)), None)

    def published_em(self, dataset: str, system: str) -> float | None:
        """Return the EM that the paper prints for a system."""
        row = self.published(dataset, system)
        return None if row is None else row.metrics.get("em")


def run_table(source: TableSource, runs: Iterable[Run]) -> str:
    """Return what was trained, for how long, on what; a run that is not stored has no row."""
    rows = []
    for run in runs:
        for seed in range(source.seeds):
            own = Run(run.dataset, run.kind, seed)
            stored = read_run(source.workspace, own)
            if not stored:
                continue
            base, rows_read = plain(stored["settings"]["model.base"]), f"{stored['train_rows']:,}"
            known = [plain(own.name), plain(own.recipe), base, rows_read, plain(stored["device"])]
            spent = f"{sum(stored['evaluation_seconds'].values()) / 60:.1f}"
            rows.append([*known, minutes(stored), spent, percent(dev_em(stored))])
    header = ["run", "recipe", "base", "training rows", "device"]
    return table([*header, "minutes of training", "of evaluation", "dev EM"], rows, "lllrlrrr")


def minutes(stored: Mapping[str, Any]) -> str:
    """Return how long a run trained; a resumed one trained for longer than its last part."""
    if stored.get("seconds") is None:
        return "-"
    return f"{'over ' if stored['resumed'] else ''}{stored['seconds'] / 60:.1f}"


def dev_em(stored: Mapping[str, Any]) -> float | None:
    """Return dev EM of the role that writes rewrites, from what is stored of a run."""
    scores = [score for role, score in stored.get("dev_em", {}).items() if role != "stage1"]
    return float(scores[-1]) if scores else None


def difference_cells(difference: Difference | None) -> list[str]:
    """Return a difference in points, its interval and its p-value."""
    if difference is None:
        return ["-", "-", "-"]
    p = "< 0.001" if difference.p < 0.001 else f"{difference.p:.3f}"
    return [f"{100 * difference.value:+.1f}", interval_cell(difference.interval), p]


def interval_cell(interval: Interval | None) -> str:
    """Return an interval in percent."""
    return "-" if interval is None else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def seed_cell(measured: SeedResults) -> str:
    """Return EM of each seed if there are several."""
    return ", ".join(percent(em) for em in measured.ems) if len(measured.ems) > 1 else ""


def printed_cell(value: float | None) -> str:
    """Return a figure as the paper prints it."""
    return "-" if value is None else f"{value:.1f}"


def metric_label(name: str) -> str:
    """Return a metric's name as a heading."""
    kind = name.rstrip("123456789L")
    return f"{_LABELS[kind]}{name.removeprefix(kind)}"


def left_out(systems: Iterable[System], ours: Mapping[System, SeedResults]) -> list[str]:
    """Return a sentence that names the systems of which nothing is stored; none if all are there."""
    missing = [plain(system.name) for system in systems if system not in ours]
    return [f"Left out, since no evaluation is stored: {', '.join(missing)}."] if missing else []


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
