"""The paper's tables as Markdown: published figures and ours side by side, intervals, paired tests, runs and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teo.data.stats import DatasetStats, dataset_stats
from teo.evaluation.markdown import percent, plain, table
from teo.metrics.base import Interval
from teo.metrics.significance import Difference
from teo.study.experiments import (
    DATASETS,
    PAPER_PROB_P,
    PROB_PS,
    TEO,
    Measurement,
    Run,
    System,
    Table,
    sweep_run,
    systems_of,
)
from teo.study.measured import Measured
from teo.study.published import PublishedRow
from teo.study.runs import Study, read_run

_LABELS = {"bleu": "BLEU-", "rouge": "ROUGE-", "p": "P", "r": "R", "f": "F"}


@dataclass(frozen=True, slots=True)
class Source:
    """What tables are made from: the study's stored results, the paper's rows, and how many seeds count."""

    study: Study
    paper: Sequence[PublishedRow]
    seeds: int
    datasets: Sequence[str]

    def measured(self, dataset: str, kind: str, variant: str) -> Measured:
        """Return a system's evaluations over the seeds."""
        runs = [Run(dataset, kind, seed) for seed in range(self.seeds)]
        return Measured.read([self.study.metrics(Measurement(run, variant)) for run in runs])

    def published(self, dataset: str, system: str) -> PublishedRow | None:
        """Return the paper's row of a system."""
        return next((row for row in self.paper if (row.dataset, row.system) == (dataset, system)), None)

    def published_em(self, dataset: str, system: str) -> float | None:
        """Return the EM that the paper prints for a system."""
        row = self.published(dataset, system)
        return None if row is None else row.metrics.get("em")


def format_table(spec: Table, source: Source, command: str) -> str:
    """Return a table as a page of Markdown."""
    forms = {"systems": _systems, "flow": _flow, "statistics": _statistics, "sweep": _sweep}
    datasets = [name for name in spec.datasets if name in source.datasets]
    parts = [f"# {spec.title}", *forms[spec.form](spec, source, datasets), f"Made by `{command}`."]
    return "\n\n".join(parts) + "\n"


def _systems(spec: Table, source: Source, datasets: Sequence[str]) -> Iterable[str]:
    (dataset,) = datasets
    systems = systems_of(dataset, t5=bool(source.study.t5))
    ours = {system: source.measured(dataset, system.kind, system.variant) for system in systems}
    rows = []
    beside = {system.published for system in systems}
    for row in source.paper:
        if row.dataset == dataset and row.system not in beside:
            rows.append(_published_row(row, spec))
    for system, measured in ours.items():
        if row_beside := source.published(dataset, system.published):
            rows.append(_published_row(row_beside, spec))
        values = [percent(measured.mean(name)) for name in spec.metrics]
        name = f"**{plain(system.name)}**"
        rows.append([name, percent(measured.mean("em")), _shown(measured.interval), _seeds(measured), *values])
    header = ["system", "EM", "95% interval", "EM by seed", *(_label(name) for name in spec.metrics)]
    yield (
        f"{ours[TEO].n} test rows, in percent. **Bold** rows are ours, means over {_count(source.seeds, 'seed')}; "
        "each stands below the paper's row of that system. Intervals are over rows, not over seeds."
    )
    yield table(header, rows, "lr" + "l" * 2 + "r" * len(spec.metrics))
    yield "## TEO against the others"
    yield _tests(dataset, ours, source)
    yield "## Runs"
    yield _runs(source, dict.fromkeys(Run(dataset, system.kind) for system in systems))


def _published_row(row: PublishedRow, spec: Table) -> list[str]:
    return [
        plain(row.system),
        _printed(row.metrics.get("em")),
        "",
        "",
        *(_printed(row.metrics.get(m)) for m in spec.metrics),
    ]


def _tests(dataset: str, ours: Mapping[System, Measured], source: Source) -> str:
    """Return TEO's EM minus each other system's, with the paper's difference."""
    rows = []
    paper = source.published_em(dataset, TEO.published)
    for system, measured in ours.items():
        if system == TEO:
            continue
        other = source.published_em(dataset, system.published)
        printed = "-" if paper is None or other is None else f"{paper - other:+.1f}"
        rows.append([f"TEO - {plain(system.name)}", *_difference(ours[TEO].minus(measured)), printed])
    note = "Differences of EM in points; the interval is that of the paired bootstrap, p of approximate randomisation."
    return note + "\n\n" + table(["", "ours", "95% interval", "p", "paper"], rows, "lrlrr")


def _flow(spec: Table, source: Source, datasets: Sequence[str]) -> Iterable[str]:
    rows: list[list[str]] = []
    for dataset in datasets:
        measured = source.measured(dataset, TEO.kind, TEO.variant)
        if row := source.published(dataset, TEO.published):
            printed = [_printed(row.metrics.get(name)) for name in ("stage1_em", "e2c", "c2e", "em")]
            rows.append([DATASETS[dataset], "paper", "", *printed])
        flow = [percent(measured.flow(name)) for name in ("stage1_em", "e2c", "c2e")]
        rows.append([f"**{DATASETS[dataset]}**", "ours", str(measured.n), *flow, percent(measured.mean("em"))])
    yield (
        f"In percent, means over {_count(source.seeds, 'seed')}. E2C: wrong operations that stage 2 makes right; "
        "C2E: right operations that it makes wrong."
    )
    yield table(["dataset", "", "n", "stage-1 EM", "E2C", "C2E", "final EM"], rows, "llrrrrr")
    yield "## Runs"
    yield _runs(source, [Run(dataset, TEO.kind) for dataset in datasets])


def _statistics(spec: Table, source: Source, datasets: Sequence[str]) -> Iterable[str]:
    read = {}
    for dataset in datasets:
        (data,) = source.study.config(Run(dataset, TEO.kind)).data
        options: dict[str, Any] = dict(data.options)
        read[dataset] = dataset_stats(data.name, data.path, **options)
    return format_statistics(read)


def format_statistics(datasets: Mapping[str, DatasetStats]) -> Iterable[str]:
    """Return the paper's table 9 with our counts below its own, and why they differ."""
    rows: list[list[str]] = []
    notes = []
    for dataset, stats in datasets.items():
        counts = stats.splits["all"].to_dict()
        sizes = " / ".join(f"{part.rows:,}" for name, part in stats.splits.items() if name != "all")
        lengths = [f"{counts[f'avg_{piece}_units']:.1f}" for piece in ("context", "current", "rewrite")]
        if paper := stats.paper:
            printed = [paper.rows, paper.context, paper.current, paper.rewrite]
            operations = [f"{paper.insertions:,}", f"{paper.replacements:,}"]
            rows.append([DATASETS[dataset], "paper", *map(str, printed), *operations])
        ours = [f"{counts['insertions']:,}", f"{counts['replacements']:,}"]
        rows.append([f"**{DATASETS[dataset]}**", "ours", sizes or f"{counts['rows']:,}", *lengths, *ours])
        notes += [f"- {DATASETS[dataset]}. {note}" for note in stats.notes]
    header = ["dataset", "", "train / dev / test", "context", "current", "rewrite", "insertions", "replacements"]
    yield "Lengths are averages over all rows, in units of teo: Chinese characters, words elsewhere."
    yield table(header, rows, "lllrrrrr")
    if notes:
        yield "\n".join(notes)


def _sweep(spec: Table, source: Source, datasets: Sequence[str]) -> Iterable[str]:
    (dataset,) = datasets
    runs = {value: sweep_run(value, dataset, 0) for value in PROB_PS}
    ours = {value: source.measured(dataset, run.kind, TEO.variant) for value, run in runs.items()}
    rows = []
    for value, measured in ours.items():
        dev = [_dev_em(source.study, Run(dataset, runs[value].kind, seed)) for seed in range(source.seeds)]
        known = [score for score in dev if score is not None]
        same = value == PAPER_PROB_P
        test = ["", "", ""] if same else _difference(measured.minus(ours[PAPER_PROB_P]))
        em = [percent(measured.mean("em")), _shown(measured.interval), _seeds(measured)]
        rows.append([f"{value:g}", percent(sum(known) / len(known) if known else None), *em, *test])
    header = ["prob_p", "dev EM", "test EM", "95% interval", "EM by seed", f"minus prob_p {PAPER_PROB_P}", "95%", "p"]
    yield (
        f"{ours[PAPER_PROB_P].n} test rows, in percent, means over {_count(source.seeds, 'seed')}; one stage 1 serves "
        f"every value. The paper prints a curve without figures and chooses {PAPER_PROB_P}."
    )
    yield table([plain(name) for name in header], rows, "lrrllrlr")
    if _draw(ours, source.study.out / f"{spec.name}.png"):
        yield f"![EM against prob_p]({spec.name}.png)"
    yield "## Runs"
    yield _runs(source, dict.fromkeys(runs.values()))


def _draw(ours: Mapping[float, Measured], path: Path) -> bool:
    from teo.training.curves import draw_sweep

    points = [(value, measured.mean("em") or 0.0) for value, measured in ours.items()]
    return draw_sweep(points, path, "prob_p", "test exact match")


def _runs(source: Source, runs: Iterable[Run]) -> str:
    """Return what was trained, for how long, on what."""
    rows = []
    for run in runs:
        for seed in range(source.seeds):
            own = Run(run.dataset, run.kind, seed)
            stored = read_run(source.study, own)
            base, rows_read = plain(stored["settings"]["model.base"]), f"{stored['train_rows']:,}"
            known = [plain(own.name), plain(stored["recipe"]), base, rows_read, plain(stored["device"])]
            rows.append([*known, minutes(stored), percent(_dev_em(source.study, own))])
    header = ["run", "recipe", "base", "training rows", "device", "minutes of training", "dev EM"]
    return table(header, rows, "lllrlrr")


def minutes(stored: Mapping[str, Any]) -> str:
    """Return how long a run trained; a resumed one trained for longer than its last part."""
    if stored.get("seconds") is None:
        return "-"
    return f"{'over ' if stored['resumed'] else ''}{stored['seconds'] / 60:.1f}"


def _dev_em(study: Study, run: Run) -> float | None:
    """Return dev EM of the role that writes rewrites."""
    scores = [score for role, score in read_run(study, run)["dev_em"].items() if role != "stage1"]
    return float(scores[-1]) if scores else None


def _difference(difference: Difference | None) -> list[str]:
    if difference is None:
        return ["-", "-", "-"]
    p = "< 0.001" if difference.p < 0.001 else f"{difference.p:.3f}"
    return [f"{100 * difference.value:+.1f}", _shown(difference.interval), p]


def _shown(interval: Interval | None) -> str:
    return "-" if interval is None else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _seeds(measured: Measured) -> str:
    return ", ".join(percent(em) for em in measured.ems) if len(measured.ems) > 1 else ""


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _label(name: str) -> str:
    kind = name.rstrip("123456789L")
    return f"{_LABELS[kind]}{name.removeprefix(kind)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
