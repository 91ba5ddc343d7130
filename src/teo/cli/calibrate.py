"""`teo calibrate`: fit a model's confidence and its thresholds on development rows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.output import echo_json
from teo.errors import InputError

_LIMITS = 2
_NUMBER = re.compile(r"(.+):(-?[\d.]+)")


def calibrate(
    model: Annotated[Path, typer.Argument(help="A trained or exported model folder; its description is changed.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE[:SHARE[:WRONG]]...",
            help="JSONL rows with history, utterance, rewrite; SHARE: how much of the complete ones may be changed; "
            "WRONG: how much of the incomplete ones may become wrong.",
        ),
    ],
    *,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline; the model's own by default.", metavar="NAME")
    ] = None,
    rest_weight: Annotated[
        float | None,
        typer.Option(help="What the words count beside whether to change at all.", metavar="W", min=0.0, max=1.0),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows of each file.", metavar="N")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report: calibration.json, calibration.md and two pictures.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Calibrate a model: confidence from log-probability, and by language the threshold below which it keeps."""
    from teo.data import load_rows
    from teo.evaluation.calibrate import REST_WEIGHT, CalibrationSet
    from teo.evaluation.calibrate import calibrate as run
    from teo.evaluation.calibration_report import summarise_calibration, write_report

    sets = []
    for file in files:
        path, *limits = _split(file)
        sets.append(CalibrationSet(path.stem, load_rows("jsonl", path).rows[:limit], *limits))
    report = run(model, sets, variant, rest_weight=REST_WEIGHT if rest_weight is None else rest_weight)
    if out is not None:
        write_report(report, out, sys.stderr)
    if as_json:
        echo_json(report.to_dict())
    else:
        typer.echo(summarise_calibration(report))


def _split(file: str) -> tuple[Path, float | None, float | None]:
    """Return the path and the limits of FILE[:SHARE[:WRONG]]."""
    path = file
    limits: list[float] = []
    while len(limits) < _LIMITS and (found := _NUMBER.fullmatch(path)):
        path = found[1]
        limits.insert(0, float(found[2]))
    for value in limits:
        if not 0 <= value <= 1:
            raise InputError(f"{file}: expected shares from 0 to 1 after the colons, found {value:g}")
    share, wrong = [*limits, None, None][:_LIMITS]
    return Path(path), share, wrong
