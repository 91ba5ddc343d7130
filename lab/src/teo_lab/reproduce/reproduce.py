"""reproduce(workspace, name): train, evaluate and print a table of the paper beside the paper's own figures.

tables -> measurements -> what is not finished is trained and evaluated -> Markdown in the workspace's folder
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from teo.errors import InputError
from teo.files import write_text
from teo_lab.reproduce.experiments import DATASETS, Measurement, Run, Table, find_tables, list_measurements
from teo_lab.reproduce.runs import Workspace, describe_recipe, finish, read_run
from teo_lab.reproduce.stored import read_paper
from teo_lab.reproduce.stored_runs import stored_runs
from teo_lab.reproduce.table_cells import TableSource, minutes
from teo_lab.reproduce.tables import format_table

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """What is trained and evaluated now; the rest is printed if it is stored."""

    datasets: Sequence[str] = ()
    """These datasets alone; none: all that are there."""
    kinds: Sequence[str] = ()
    """These runs alone, by kind; none: all."""
    stored: bool = False
    """Nothing: the tables are made of what is stored."""

    def __post_init__(self) -> None:
        for dataset in self.datasets:
            if dataset not in DATASETS:
                raise InputError(f"dataset: expected {', '.join(DATASETS)}, found '{dataset}'")

    def choose(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Return the measurements to make now; a kind that none of them has is refused."""
        known = list(dict.fromkeys(measurement.run.kind for measurement in measurements))
        if unknown := [kind for kind in self.kinds if kind not in known]:
            raise InputError(f"only: expected {', '.join(known)}; found '{unknown[0]}'")
        wanted = [] if self.stored else measurements
        return [measurement for measurement in wanted if not self.kinds or measurement.run.kind in self.kinds]


EVERYTHING = Part()


def reproduce(
    workspace: Workspace,
    name: str,
    published: Path,
    *,
    seeds: int = 1,
    command: str = "teo-lab reproduce",
    part: Part = EVERYTHING,
) -> str:
    """Return the tables of a name as Markdown, each also written to the workspace's folder; what is finished stays.

    A table of which nothing is stored is not written.
    """
    tables, datasets = choose(workspace, name, seeds, part)
    paper = read_paper(published)  # before hours of training
    finish(workspace, part.choose(list_measurements(tables, datasets, seeds=seeds, t5=bool(workspace.t5))))
    pages = []
    for table in tables:
        needed = list_measurements([table], datasets, seeds=seeds, t5=bool(workspace.t5))
        if needed and not any(workspace.metrics(measurement).is_file() for measurement in needed):
            logger.warning("%s: nothing that it needs is stored, so it is left out", table.name)
            continue
        workspace.out.mkdir(parents=True, exist_ok=True)
        page = format_table(table, TableSource(workspace, paper, seeds, datasets), command)
        write_text(workspace.out / f"{table.name}.md", page)
        pages.append(page)
    if not pages:
        raise InputError(
            f"{name}: expected a stored evaluation in {workspace.out}, found none; run it without --stored"
        )
    return "\n".join(pages)


def describe_plan(workspace: Workspace, name: str, *, seeds: int = 1, part: Part = EVERYTHING) -> str:
    """Return what `reproduce` would train and evaluate, and how long the finished parts took."""
    tables, datasets = choose(workspace, name, seeds, part)
    measurements = part.choose(list_measurements(tables, datasets, seeds=seeds, t5=bool(workspace.t5)))
    by_run: dict[Run, list[Measurement]] = {}
    for measurement in measurements:
        lender = measurement.run.stage1_from
        if lender is not None:
            by_run.setdefault(lender, [])
        by_run.setdefault(measurement.run, []).append(measurement)
    lines = [f"{', '.join(table.name for table in tables)}: {len(by_run)} runs, {len(measurements)} evaluations"]
    for run, wanted in by_run.items():
        lines += _describe_run(workspace, run, wanted)
    return "\n".join(lines) + "\n"


def choose(workspace: Workspace, name: str, seeds: int, part: Part = EVERYTHING) -> tuple[list[Table], list[str]]:
    """Return the tables and the datasets that they can be made of; a table that lacks its only dataset is refused."""
    if seeds < 1:
        raise InputError(f"seeds: expected a number from 1 on, found {seeds}")
    asked = part.datasets or tuple(DATASETS)
    counted = [dataset for dataset in DATASETS if dataset in asked and workspace.has_data(dataset)]
    stored = {run.dataset for run in stored_runs(workspace.out)} if part.stored else set()
    datasets = [dataset for dataset in DATASETS if dataset in counted or (dataset in asked and dataset in stored)]
    tables = find_tables(name)
    able = [table for table in tables if set(table.datasets) & set(counted if table.counts_data else datasets)]
    if not able:
        raise InputError(_what_lacks(workspace, tables[0], asked, part))
    for table in tables:
        if table not in able and table.counts_data:
            logger.warning("%s: it counts the datasets, and none is there, so it is left out; give --data", table.name)
    absent = [dataset for table in tables for dataset in table.datasets if dataset in asked]
    absent = [dataset for dataset in absent if dataset not in datasets]
    for dataset in dict.fromkeys(absent):
        logger.warning(
            "%s: not there, so its rows and tables are left out", (workspace.data or workspace.out) / dataset
        )
    return able, datasets


def _what_lacks(workspace: Workspace, table: Table, asked: Sequence[str], part: Part) -> str:
    """Return what a table would need of the datasets that are asked for."""
    wanted = [dataset for dataset in table.datasets if dataset in asked]
    if not wanted:
        return f"dataset: expected one of {', '.join(table.datasets)} for {table.name}, found {', '.join(asked)}"
    if part.stored and not table.counts_data:
        return (
            f"stored: expected results of {' or '.join(wanted)} in {workspace.out}, found none; name their folder by "
            "--base or --out"
        )
    if workspace.data is None:
        return f"data: expected --data with the folder that holds {' or '.join(wanted)}, found none"
    folders = " or ".join(str(workspace.data / dataset) for dataset in wanted)
    return f"data: expected {folders}, found no such folder; see teo data download"


def _describe_run(workspace: Workspace, run: Run, wanted: Sequence[Measurement]) -> list[str]:
    stored = read_run(workspace, run)
    config = workspace.config(run)
    lender = run.stage1_from
    state = "trained" if stored or (workspace.folder(run) / "teo.json").is_file() else "to train"
    took = f", {minutes(stored)} minutes" if stored.get("seconds") is not None else ""
    shared = f", stage 1 of {lender.name}" if lender else ""
    lines = [f"{run.name}: {state}{took} ({describe_recipe(run)} from {config.model.base}{shared})"]
    for measurement in wanted:
        done = workspace.metrics(measurement).is_file()
        seconds = stored.get("evaluation_seconds", {}).get(measurement.variant)
        spent = f", {seconds} seconds" if seconds is not None else ""
        lines.append(f"  {measurement.variant}: {'evaluated' if done else 'to evaluate'}{spent}")
    return lines
