"""`teo calibrate`: fit a model's confidence and threshold on development rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from teo.errors import InputError


def calibrate(
    model: Annotated[Path, typer.Argument(help="A trained or exported model folder; its description is changed.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE[:SHARE]...",
            help="JSONL rows with history, utterance, rewrite; SHARE: how much of the complete ones may be changed.",
        ),
    ],
    *,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline; the model's own by default.", metavar="NAME")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows of each file.", metavar="N")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Calibrate a model: confidence from log-probability, and the threshold below which utterances are kept."""
    from teo.data import load_rows
    from teo.evaluation.calibrate import CalibrationSet
    from teo.evaluation.calibrate import calibrate as run

    sets = []
    for given in files:
        path, share = _split(given)
        sets.append(CalibrationSet(path.stem, load_rows("jsonl", path).rows[:limit], share))
    report = run(model, sets, variant)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), ensure_ascii=False))
        return
    typer.echo(
        f"{report.variant}: threshold {report.threshold:.4f}, expected calibration error {report.calibration_error:.3f}"
    )
    for one in report.sets:
        changed = "-" if one.complete_changed is None else f"{one.complete_changed:.1%}"
        kept = "-" if one.incomplete_kept is None else f"{one.incomplete_kept:.1%}"
        typer.echo(
            f"{one.name}: {one.rows} rows, EM {one.em_without:.4f} without threshold, {one.em:.4f} with it; "
            f"complete changed {changed}, incomplete kept {kept}"
        )


def _split(given: str) -> tuple[Path, float | None]:
    path, colon, share = given.rpartition(":")
    if not colon or not path:
        return Path(given), None
    try:
        value = float(share)
    except ValueError:
        return Path(given), None
    if not 0 <= value <= 1:
        raise InputError(f"{given}: expected a share from 0 to 1 after the colon, found {share}")
    return Path(path), value
