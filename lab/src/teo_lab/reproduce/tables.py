"""The paper's tables as Markdown: published figures and ours side by side, intervals, paired tests, runs and times."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.data.stats import DatasetStats, dataset_stats
from teo.errors import MissingExtraError
from teo.evaluation.markdown import percent, plain, table
from teo.evaluation.plots import make_figure, save_figure
from teo_lab.reproduce.architectures import format_architectures
from teo_lab.reproduce.experiments import (
    DATASETS,
    PAPER_PROB_P,
    PROB_PS,
    TEO,
    Run,
    System,
    Table,
    sweep_run,
    systems_of,
)
from teo_lab.reproduce.result_rows import format_cases, format_cells, format_errors
from teo_lab.reproduce.runs import read_run
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.stored import Published
from teo_lab.reproduce.table_cells import (
    TableSource,
    counted,
    dev_em,
    difference_cells,
    interval_cell,
    left_out,
    metric_label,
    printed_cell,
    run_table,
    seed_cell,
)

logger = logging.getLogger(__name__)


def format_table(spec: Table, source: TableSource, command: str) -> str:
    """Return a table as a page of Markdown."""
    formats = {
        "systems": _systems,
        "flow": _flow,
        "statistics": _statistics,
        "sweep": _sweep,
        "architectures": format_architectures,
        "cells": format_cells,
        "errors": format_errors,
        "cases": format_cases,
    }
    datasets = [name for name in spec.datasets if name in source.datasets]
    parts = [f"# {spec.title}", *formats[spec.layout](spec, source, datasets), f"Made by `{command}`."]
    return "\n\n".join(parts) + "\n"


def _systems(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    (dataset,) = datasets
    systems = systems_of(dataset, t5=bool(source.workspace.t5))
    ours = source.measure_all(dataset, systems)
    rows = []
    beside = {system.published for system in systems}
    for row in source.paper:
        if row.dataset == dataset and row.system not in beside:
            rows.append(_published_row(row, spec))
    for system in systems:
        if row_beside := source.published(dataset, system.published):
            rows.append(_published_row(row_beside, spec))
        if system not in ours:
            continue
        measured = ours[system]
        values = [percent(measured.mean(name)) for name in spec.metrics]
        em = [percent(measured.mean("em")), interval_cell(measured.interval), seed_cell(measured)]
        rows.append([f"**{plain(system.name)}**", *em, *values])
    header = ["system", "EM", "95% interval", "EM by seed", *(metric_label(name) for name in spec.metrics)]
    rows_read = next((f"{measured.n} test rows, in" for measured in ours.values()), "In")
    yield (
        f"{rows_read} percent. **Bold** rows are ours, means over {counted(source.seeds, 'seed')}; "
        "each stands below the paper's row of that system. Intervals are over rows, not over seeds."
    )
    yield from left_out(systems, ours)
    yield table(header, rows, "lr" + "l" * 2 + "r" * len(spec.metrics))
    if TEO in ours:
        yield "## TEO against the others"
        yield _tests(dataset, ours, source)
    yield "## Runs"
    yield run_table(source, dict.fromkeys(Run(dataset, system.kind) for system in systems))


def _published_row(row: Published, spec: Table) -> list[str]:
    return [
        plain(row.system),
        printed_cell(row.metrics.get("em")),
        "",
        "",
        *(printed_cell(row.metrics.get(m)) for m in spec.metrics),
    ]


def _tests(dataset: str, ours: Mapping[System, SeedResults], source: TableSource) -> str:
    """Return TEO's EM minus each other system's, with the paper's difference."""
    rows = []
    paper = source.published_em(dataset, TEO.published)
    for system, measured in ours.items():
        if system == TEO:
            continue
        other = source.published_em(dataset, system.published)
        printed = "-" if paper is None or other is None else f"{paper - other:+.1f}"
        rows.append([f"TEO - {plain(system.name)}", *difference_cells(ours[TEO].minus(measured)), printed])
    note = "Differences of EM in points; the interval is that of the paired bootstrap, p of approximate randomisation."
    return note + "\n\n" + table(["", "ours", "95% interval", "p", "paper"], rows, "lrlrr")


def _flow(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    rows: list[list[str]] = []
    for dataset in datasets:
        measured = source.measured(dataset, TEO.kind, TEO.variant)
        if row := source.published(dataset, TEO.published):
            printed = [printed_cell(row.metrics.get(name)) for name in ("stage1_em", "e2c", "c2e", "em")]
            rows.append([DATASETS[dataset], "paper", "", *printed])
        if measured is None:
            continue
        flow = [percent(measured.flow(name)) for name in ("stage1_em", "e2c", "c2e")]
        rows.append([f"**{DATASETS[dataset]}**", "ours", str(measured.n), *flow, percent(measured.mean("em"))])
    yield (
        f"In percent, means over {counted(source.seeds, 'seed')}. E2C: wrong operations that stage 2 makes right; "
        "C2E: right operations that it makes wrong."
    )
    yield table(["dataset", "", "n", "stage-1 EM", "E2C", "C2E", "final EM"], rows, "llrrrrr")
    yield "## Runs"
    yield run_table(source, [Run(dataset, TEO.kind) for dataset in datasets])


def _statistics(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    read = {}
    for dataset in filter(source.workspace.has_data, datasets):
        (data,) = source.workspace.config(Run(dataset, TEO.kind)).data
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


def _sweep(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    (dataset,) = datasets
    runs = {value: sweep_run(value, dataset, 0) for value in PROB_PS}
    found = {value: source.measured(dataset, run.kind, TEO.variant) for value, run in runs.items()}
    ours = {value: measured for value, measured in found.items() if measured is not None}
    paper = ours.get(PAPER_PROB_P)
    rows = []
    for value, measured in ours.items():
        stored = [read_run(source.workspace, Run(dataset, runs[value].kind, seed)) for seed in range(source.seeds)]
        known = [score for score in map(dev_em, stored) if score is not None]
        test = difference_cells(measured.minus(paper)) if paper is not None and value != PAPER_PROB_P else ["", "", ""]
        em = [percent(measured.mean("em")), interval_cell(measured.interval), seed_cell(measured)]
        rows.append([f"{value:g}", percent(sum(known) / len(known) if known else None), *em, *test])
    header = ["prob_p", "dev EM", "test EM", "95% interval", "EM by seed", f"minus prob_p {PAPER_PROB_P}", "95%", "p"]
    rows_read = next((f"{measured.n} test rows, in" for measured in ours.values()), "In")
    yield (
        f"{rows_read} percent, means over {counted(source.seeds, 'seed')}; one stage 1 serves "
        f"every value. The paper prints a curve without figures and chooses {PAPER_PROB_P}."
    )
    if missing := [f"{value:g}" for value in PROB_PS if value not in ours]:
        yield f"Left out, since no evaluation is stored: prob\\_p {', '.join(missing)}."
    yield table([plain(name) for name in header], rows, "lrrllrlr")
    if ours and _draw(ours, source.workspace.out / f"{spec.name}.png"):
        yield f"![EM against prob_p]({spec.name}.png)"
    yield "## Runs"
    yield run_table(source, dict.fromkeys(runs.values()))


def _draw(ours: Mapping[float, SeedResults], path: Path) -> bool:
    """Draw EM against prob_p (the paper's figure 3); return whether matplotlib was there to do it."""
    try:
        figure, axes = make_figure("drawing EM against prob_p", 6, 4)
    except MissingExtraError as error:
        logger.info("%s is not drawn: %s", path.name, error)
        return False
    axes.plot(list(ours), [measured.mean("em") or 0.0 for measured in ours.values()], marker="o")
    axes.set(xlabel="prob_p", ylabel="test exact match")
    axes.grid(visible=True, alpha=0.3)
    save_figure(figure, path)
    return True
