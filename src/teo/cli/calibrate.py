"""`teo calibrate`: fit a model's confidence on development rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.options import VariantOption
from teo.cli.output import echo_json
from teo.errors import InputError


def calibrate(
    model: Annotated[Path, typer.Argument(help="A trained or exported model folder; its teo.json is changed.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JSONL rows with history, utterance and rewrite. Rows with meaning keys (need, forbid) or judgements "
            "are graded by them, others by exact match.",
        ),
    ],
    *,
    variant: VariantOption = None,
    evidence: Annotated[
        str,
        typer.Option(
            help="What the confidence is computed from, joined by commas: root_score, score, lowest, per_token, first, "
            "added.",
            metavar="NAMES",
        ),
    ] = "root_score",
    limit: Annotated[int | None, typer.Option(help="Only the first N rows of each file.", metavar="N")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report: calibration.json, calibration.md and two pictures.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fit a model's confidence to your rows.

    Afterwards the confidence is the probability that a rewrite is right, for each language. The thresholds stay the
    same: an utterance is rewritten if that is more likely right than wrong.
    """
    from teo.data import load_rows
    from teo.evaluation.calibrate import CalibrationSet
    from teo.evaluation.calibrate import calibrate as run
    from teo.evaluation.calibration_report import summarise_calibration, write_report

    if limit is not None and limit < 1:
        raise InputError(f"limit: expected a number of rows from 1 on, found {limit}")
    sets = [CalibrationSet(path.stem, load_rows("jsonl", path, "all").rows[:limit]) for path in files]
    report = run(model, sets, variant, evidence=[name.strip() for name in evidence.split(",") if name.strip()])
    if out is not None:
        write_report(report, out, sys.stderr)
    if as_json:
        echo_json(report.to_dict())
    else:
        typer.echo(summarise_calibration(report))
