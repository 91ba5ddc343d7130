"""reproduce(study, name): train, evaluate and print a table of the paper beside the paper's own figures.

tables -> measurements -> what is not finished is trained and evaluated -> Markdown in the study's folder
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from teo.errors import InputError
from teo.files import write_text
from teo.study.experiments import DATASETS, Measurement, Run, Table, find_tables, list_measurements
from teo.study.published import read_paper
from teo.study.runs import Study, finish, read_run
from teo.study.tables import Source, format_table, minutes

logger = logging.getLogger(__name__)


def reproduce(study: Study, name: str, published: Path, *, seeds: int = 1, command: str = "teo reproduce") -> str:
    """Return the tables of a name as Markdown, each also written to the study's folder; what is finished stays."""
    tables, datasets = choose(study, name, seeds)
    paper = read_paper(published)  # before hours of training
    finish(study, list_measurements(tables, datasets, seeds=seeds, t5=bool(study.t5)))
    study.out.mkdir(parents=True, exist_ok=True)
    pages = []
    for table in tables:
        page = format_table(table, Source(study, paper, seeds, datasets), command)
        write_text(study.out / f"{table.name}.md", page)
        pages.append(page)
    return "\n".join(pages)


def describe_plan(study: Study, name: str, *, seeds: int = 1) -> str:
    """Return what `reproduce` would train and evaluate, and how long the finished parts took."""
    tables, datasets = choose(study, name, seeds)
    measurements = list_measurements(tables, datasets, seeds=seeds, t5=bool(study.t5))
    by_run: dict[Run, list[Measurement]] = {}
    for measurement in measurements:
        lender = measurement.run.stage1_from
        if lender is not None:
            by_run.setdefault(lender, [])
        by_run.setdefault(measurement.run, []).append(measurement)
    lines = [f"{', '.join(table.name for table in tables)}: {len(by_run)} runs, {len(measurements)} evaluations"]
    for run, wanted in by_run.items():
        lines += _describe_run(study, run, wanted)
    return "\n".join(lines) + "\n"


def choose(study: Study, name: str, seeds: int) -> tuple[list[Table], list[str]]:
    """Return the tables and the datasets that they can be made of; a table that lacks its only dataset is refused."""
    if seeds < 1:
        raise InputError(f"seeds: expected a number from 1 on, found {seeds}")
    datasets = [dataset for dataset in DATASETS if (study.data / dataset).exists()]
    tables = find_tables(name)
    able = [table for table in tables if any(dataset in datasets for dataset in table.datasets)]
    if not able:
        wanted = " or ".join(str(study.data / dataset) for dataset in tables[0].datasets)
        raise InputError(f"data: expected {wanted}, found no such folder; see teo data download")
    absent = [dataset for table in tables for dataset in table.datasets if dataset not in datasets]
    for dataset in dict.fromkeys(absent):
        logger.warning("%s: not there, so its rows and tables are left out", study.data / dataset)
    return able, datasets


def _describe_run(study: Study, run: Run, wanted: Sequence[Measurement]) -> list[str]:
    stored = read_run(study, run)
    config = study.config(run)
    lender = run.stage1_from
    state = "trained" if stored or (study.folder(run) / "teo.json").is_file() else "to train"
    took = f", {minutes(stored)} minutes" if stored.get("seconds") is not None else ""
    shared = f", stage 1 of {lender.name}" if lender else ""
    lines = [f"{run.name}: {state}{took} ({run.recipe} from {config.model.base}{shared})"]
    for measurement in wanted:
        done = study.metrics(measurement).is_file()
        seconds = stored.get("evaluation_seconds", {}).get(measurement.variant)
        spent = f", {seconds} seconds" if seconds is not None else ""
        lines.append(f"  {measurement.variant}: {'evaluated' if done else 'to evaluate'}{spent}")
    return lines
