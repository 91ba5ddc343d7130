"""The tables of lab/docs/studies.md on a stage 2 that listens: what benchmarks/listening.py stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import InputError
from teo.evaluation.markdown import percent, plain, table
from teo.metrics.exact_match import ExactMatch
from teo.metrics.flow import StageFlow
from teo.metrics.significance import bootstrap_intervals
from teo_lab.reproduce.experiments import TEO
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.stored import read_published
from teo_lab.reproduce.table_cells import interval_cell

Line = Mapping[str, Any]
_DATASET, _SWEEP_EPOCHS = "rewrite", 2
_DIRECT, _STAGE1 = "direct-from-base-e2", "stage1-e8"
_BASE = "teo-base"
"""The backbone of the stored TEO."""
_START = {"base": "base", "stage1": "stage 1"}
_USUAL = "stage2-from-base-p0.6-e2"
_PAIRS = (
    ("base instead of stage 1, prob_p 0.6", _USUAL, "stage2-from-stage1-p0.6-e2"),
    ("base instead of stage 1, prob_p 0", "stage2-from-base-p0-e2", "stage2-from-stage1-p0-e2"),
    ("prob_p 0 instead of 0.6, from base", "stage2-from-base-p0-e2", _USUAL),
    ("prob_p 0 instead of 0.6, from stage 1", "stage2-from-stage1-p0-e2", "stage2-from-stage1-p0.6-e2"),
    ("prob_p 1 instead of 0.6, from base", "stage2-from-base-p1-e2", _USUAL),
    ("folds instead of prob_p 0.6, from base", "stage2-from-base-folds-e2", _USUAL),
    ("dropout 0.2 instead of 0, prob_p 0.6, from base", f"{_USUAL}-dropout0.2", _USUAL),
    ("2 epochs instead of 1, prob_p 0.6, from base", _USUAL, "stage2-from-base-p0.6-e1"),
)
"""What is changed, the cell with the change and the one without it."""


def make_listening(results: Path) -> dict[str, str]:
    """Return the tables by the names of their blocks."""
    folder = results / "listening"
    lines, rights = (_read(folder / f"{_DATASET}{end}.jsonl") for end in ("", "-rights"))
    return {"listening": _cells(lines, rights, _others(results)), "listening-pairs": _pairs(rights)}


def _cells(lines: Mapping[str, Line], rights: Mapping[str, Line], others: Sequence[Sequence[str]]) -> str:
    """Return the cells of stage 2, then `direct`, then figures on other rows to set them against."""
    finished = [line for line in lines.values() if line["role"] == "stage2" and line["status"] == "done"]
    rows: list[Sequence[str]] = []
    for line in sorted(finished, key=_order):
        points = _difference(rights[_short(line)]["predicted"], rights[_DIRECT]["predicted"])
        flow = StageFlow(*line["flow"])  # the stored rates are rounded already
        shares = [f"{line['gold_em']:.1f}", percent(flow.e2c), percent(flow.c2e), f"{line['followed_wrong']:.1f}"]
        rows.append([_START[line["start"]], _noise(line), str(line["epochs"]), f"{line['em']:.1f}", points, *shares])
    alone = lines[_DIRECT]
    rows.append([f"`direct`, from {_START[alone['start']]}", "-", str(alone["epochs"]), f"{alone['em']:.1f}", *"-----"])
    head = ("stage 2 starts from", "prob\\_p", "epochs", "EM", "EM minus `direct`", "TEO-Gold", "E2C", "C2E")
    return table([*head, "wrong operations followed"], [*rows, *others], "llrrlrrrr")


def _pairs(rights: Mapping[str, Line]) -> str:
    """Return what each change does to EM and to TEO-Gold, and how far an obedient stage 2 could be from `direct`."""
    rows = [
        [plain(change), *(_difference(rights[after][kind], rights[before][kind]) for kind in ("predicted", "gold"))]
        for change, after, before in _PAIRS
    ]
    reach = _difference(rights[_STAGE1]["operations"], rights[_DIRECT]["predicted"])
    rows.append(["rows with right operations, instead of rows that `direct` has right", reach, "-"])
    return table(("change", "EM", "TEO-Gold"), rows)


def _others(results: Path) -> list[list[str]]:
    """Return the paper's TEO and our stored one, both on the test rows."""
    paper = {row.system: row.metrics for row in read_published(results / "published.json") if row.dataset == _DATASET}
    published = [paper["TEO"]["em"], paper["TEO-Gold"]["em"], paper["TEO"]["e2c"], paper["TEO"]["c2e"]]
    em, *shares = ("-" if value is None else f"{value:.1f}" for value in published)
    runs = results / "reproduce" / _BASE
    ours, gold = (
        SeedResults.read(sorted(runs.glob(f"{_DATASET}-{TEO.kind}-seed*/{_DATASET}-test-{variant}.json")))
        for variant in (TEO.variant, "gold")
    )
    flows = [stored["stage_flow"] for stored in ours.metrics]
    wrong = sum(flow["wrong_right"] + flow["wrong_wrong"] for flow in flows)
    followed = sum(flow["wrong_followed"] for flow in flows) / wrong
    measured = (gold.mean("em"), ours.flow("e2c"), ours.flow("c2e"), followed)
    return [
        ["test rows: the paper's TEO", "0.6", "30", em, "-", *shares, "-"],
        [f"test rows: stored TEO, {_BASE}", "0.6", "8", percent(ours.mean("em")), "-", *map(percent, measured)],
    ]


def _read(file: Path) -> dict[str, Line]:
    """Return the lines of a file by the names of their cells, without the dataset's."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return {_short(line): line for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: expected the lines that benchmarks/listening.py stored ({error})") from None


def _short(line: Line) -> str:
    return str(line["cell"]).removeprefix(f"{_DATASET}-")


def _order(line: Line) -> tuple[bool, bool, bool, bool, float]:
    """Return what sorts the cells: those of the sweep by start and noise, then those that change something else."""
    fewer = line["epochs"] != _SWEEP_EPOCHS
    return line["operations"] == "folds", line["dropout"] > 0, fewer, line["start"] == "base", line["prob_p"] or 0.0


def _noise(line: Line) -> str:
    noise = "folds" if line["operations"] == "folds" else f"{line['prob_p']:g}"
    return f"{noise}, dropout {line['dropout']:g}" if line["dropout"] else noise


@cache
def _difference(first: str, second: str) -> str:
    """Return first minus second, strings of 0 and 1, in points with the 95% interval of the paired bootstrap."""
    if len(first) != len(second):
        raise InputError(f"paired rows: expected as many of both cells, found {len(first)} and {len(second)}")
    gain = np.array([int(one) - int(other) for one, other in zip(first, second, strict=True)], dtype=np.float64)
    interval = bootstrap_intervals(np.stack([gain, np.ones(len(gain))], axis=1), ExactMatch().aggregate)[0]
    return f"{100 * gain.mean():+.1f} ({interval_cell(interval)})"
