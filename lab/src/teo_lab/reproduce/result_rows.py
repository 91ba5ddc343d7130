"""Figure 2, section 4.9 and the examples on pages: what becomes of single rows in the two separate stages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from teo.data.stats import dataset_stats
from teo.evaluation.markdown import percent, plain, table
from teo.units import is_exact_match
from teo_lab.reproduce.cases import EXAMPLES
from teo_lab.reproduce.experiments import (
    ARCHITECTURES,
    CASE_KINDS,
    CASES,
    DATASETS,
    DIRECT,
    TEO,
    Measurement,
    Run,
    Table,
)
from teo_lab.reproduce.stored_rows import read_operations_right, read_right
from teo_lab.reproduce.table_cells import TableSource

PAPER_MENDED: Mapping[str, float] = {"task": 8.0, "rewrite": 5.1, "res200k": 1.4}
"""Section 4.4: percent of all rows with wrong operations and a right rewrite."""
PAPER_INSERTION_SHARE: Mapping[str, float] = {"rewrite": 79.3}
"""Section 4.9: percent of insertions among the operations at fault."""
PAPER_REPLACEMENT_EM: Mapping[str, float] = {"task": 28.6, "rewrite": 83.0, "res200k": 0.0}
"""Section 4.9: EM of rows that need a replacement."""
PAPER_REPLACEMENT_SHARE: Mapping[str, float] = {"task": 12.42, "res200k": 0.15}
"""Section 4.9: percent of replacements among the operations."""


def format_cells(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    """Yield figure 2 as a table, and what stage 2 does with wrong operations."""
    cells, mending, missing = [], [], []
    for dataset in datasets:
        metrics = read_metrics(source, dataset)
        if not metrics:
            missing.append(DATASETS[dataset])
            continue
        flow = metrics["stage_flow"]
        names = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")
        shares = [f"{percent(flow[name] / flow['n'])} ({flow[name]:,})" for name in names]
        cells.append([DATASETS[dataset], f"{flow['n']:,}", *shares, f"{PAPER_MENDED[dataset]:.1f}"])
        mending.append([DATASETS[dataset], *_mending(source, dataset, flow)])
    yield "Seed 0 of the two separate stages. Percent of the test rows, and their number."
    yield from _missing(missing)
    head = ["dataset", "rows", "both right", "operations right, rewrite wrong", "operations wrong, rewrite right"]
    yield table([*head, "both wrong", "paper: operations wrong, rewrite right"], cells, "lrrrrrr")
    yield "## What becomes of wrong operations"
    yield (
        "Percent of the rows with wrong operations. Followed: the rewrite has exactly the operations that stage 1 "
        "proposed. Harmless: the operations are not the derived ones, but at some place they make the reference. "
        "Direct right: the model without operations rewrites the row right, so that the row can be mended."
    )
    header = ["dataset", "rows with wrong operations", "mended (E2C)", "followed", "harmless", "direct right"]
    yield table(header, mending, "lrrrrr")


def format_errors(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    """Yield section 4.9: shares of the operations, what they are worth, and which are at fault."""
    rows, missing = [], []
    for dataset in datasets:
        metrics = read_metrics(source, dataset)
        if not metrics:
            missing.append(DATASETS[dataset])
            continue
        groups, errors = metrics["breakdown"], metrics["errors"]
        complete = errors["complete_operations"]
        em = [percent(groups[name]["em"]) for name in ("complete", "insertion_only", "replacement_only", "both")]
        at_fault = f"{complete['insertion']:,} / {complete['replacement']:,}"
        shares = [_replacements(source, dataset), percent(errors["insertion_share"])]
        rows.append([f"**{DATASETS[dataset]}**", "ours", *shares, *em, at_fault])
        paper = [PAPER_REPLACEMENT_SHARE, PAPER_INSERTION_SHARE]
        printed = [f"{known[dataset]:g}" if dataset in known else "-" for known in paper]
        known_em = ["77.5" if dataset == "res200k" else "-", "-", f"{PAPER_REPLACEMENT_EM[dataset]:g}", "-"]
        rows.append([DATASETS[dataset], "paper", *printed, *known_em, "-"])
    yield (
        "Seed 0 of the two separate stages, in percent. EM by what the utterance needs: nothing, insertions only, "
        "replacements only, both. The last column: complete utterances that were changed, by kind of operation."
    )
    yield from _missing(missing)
    header = ["dataset", "", "replacements among the operations", "insertions among the operations at fault"]
    header += ["EM: complete", "insertions", "replacements", "both", "complete, insertion / replacement"]
    yield table(header, rows, "llrrrrrrr")


def format_cases(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    """Yield a table for each example: the reference and what each architecture proposes and writes."""
    yield (
        "English examples are rewritten by the models of TASK, Chinese ones by those of REWRITE, seed 0. The paper "
        "translates table 6 from REWRITE, and table 1 is not from TASK: both are unlike what the model was trained on."
    )
    for case in (case for case in EXAMPLES if case.dataset in datasets):
        rows = [["reference", _shown(case.operations), plain(case.reference), ""]]
        missing = []
        for kind in CASE_KINDS:
            name = next(system.name for system in ARCHITECTURES if system.kind == kind)
            file = source.workspace.metrics(Measurement(Run(case.dataset, kind), CASES))
            if not file.is_file():
                missing.append(name)
                continue
            stored = json.loads(file.read_text(encoding="utf-8"))[case.title]
            right = "right" if is_exact_match(stored["rewrite"], case.reference) else "wrong"
            rows.append([name, _shown(stored["operations"]), plain(stored["rewrite"]), right])
        yield f"## {case.title}"
        yield "\n".join(f"- {plain(turn)}" for turn in (*case.dialogue.history, case.dialogue.utterance))
        if missing:
            yield f"Left out, since nothing is stored: {', '.join(missing)}."
        yield table(["architecture", "operations", "rewrite", ""], rows)


def read_metrics(source: TableSource, dataset: str) -> dict[str, Any]:
    """Return the stored metrics of the two separate stages under seed 0; empty if there are none."""
    file = source.workspace.metrics(Measurement(Run(dataset, TEO.kind), TEO.variant))
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _mending(source: TableSource, dataset: str, flow: Mapping[str, Any]) -> list[str]:
    wrong = flow["wrong_right"] + flow["wrong_wrong"]
    shares = [flow[name] / wrong if wrong else None for name in ("wrong_right", "wrong_followed", "wrong_harmless")]
    direct = source.workspace.metrics(Measurement(Run(dataset, DIRECT.kind), DIRECT.variant))
    mendable = None
    if direct.is_file() and wrong:
        teo = source.workspace.metrics(Measurement(Run(dataset, TEO.kind), TEO.variant))
        right = read_right(direct)
        mendable = sum(right[key] for key, known in read_operations_right(teo).items() if not known) / wrong
    return [f"{wrong:,}", *map(percent, shares), percent(mendable)]


def _replacements(source: TableSource, dataset: str) -> str:
    """Return the share of replacements among all operations of a dataset; a dash if its files are not there."""
    if not source.workspace.has_data(dataset):
        return "-"
    (data,) = source.workspace.config(Run(dataset, TEO.kind)).data
    options: dict[str, Any] = dict(data.options)
    counts = dataset_stats(data.name, data.path, **options).splits["all"].to_dict()
    total = counts["insertions"] + counts["replacements"]
    return f"{100 * counts['replacements'] / total:.2f}" if total else "-"


def _missing(names: Sequence[str]) -> list[str]:
    return [f"Left out, since no evaluation is stored: {', '.join(names)}."] if names else []


def _shown(operations: str | None) -> str:
    if operations is None:
        return "-"
    return f"`{operations}`" if operations else "none"
