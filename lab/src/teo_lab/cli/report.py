"""`teo-lab report`: everything that was measured, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.output import write_line
from teo_lab.paths import RESULTS


def report(
    results: Annotated[
        Path, typer.Argument(help="The folder of stored results.", show_default="lab/results")
    ] = RESULTS,
    *,
    out: Annotated[Path, typer.Option(help="Folder for report.html, report.md and the pictures.")] = Path("report"),
    predictions: Annotated[
        list[Path] | None,
        typer.Option(help="A predictions.jsonl of teo evaluate whose rows the page shows; may be given again."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder that holds task, rewrite and res200k: for statistics and the text of rows."),
    ] = None,
) -> None:
    """Make a page of everything measured: tables, pictures and an explorer of predictions. It opens without a network.

    Stored results hold no text of datasets; the page shows some only with --predictions or --data.

    Example: teo-lab report --out report --predictions runs/direct/predictions.jsonl
    """
    from teo_lab.report.make import ReportRequest, write_report

    made = write_report(ReportRequest(results, out, tuple(predictions or ()), data))
    for name, reason in made.missing.items():
        write_line(f"left out: {name}: {reason}")
    typer.echo(str(made.page))
