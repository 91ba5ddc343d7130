"""`teo score`: the field's metrics for one file of predictions, or for two files side by side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teo.cli.output import STANDARD, echo_json
from teo.errors import InputError

if TYPE_CHECKING:
    from teo.metrics import Comparison, ScoreReport
    from teo.metrics.base import Score, Signature

_WIDTH = 22


def score(
    file: Annotated[
        Path,
        typer.Argument(
            help='JSONL rows {"current", "reference", "prediction"}; other keys are ignored. - is stdin, '
            "for example the output of teo rewrite."
        ),
    ],
    other: Annotated[
        Path | None, typer.Argument(help="A second system on the same rows: adds differences and paired tests.")
    ] = None,
    pretokenized: Annotated[
        bool, typer.Option("--pretokenized", help="Split texts on white space only: their units are joined by spaces.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    intervals: Annotated[bool, typer.Option("--intervals", help="Add bootstrap 95% intervals (fixed seed).")] = False,
) -> None:
    """Score the predictions of any system.

    Prints exact match (EM), BLEU, ROUGE and restoration scores, and EM by kind of utterance. All numbers are fractions,
    and each has a signature that names its definition.
    """
    from teo.metrics import compare_rows, read_rows, score_rows

    if str(file) == str(other) == STANDARD:
        raise InputError("expected two files of predictions, found stdin twice; name a file for one of them")
    rows = read_rows(file)
    if other is None:
        report = score_rows(rows, pretokenized, intervals=intervals)
        data, table = report.to_dict(), format_report(report)
    else:
        comparison = compare_rows(rows, read_rows(other), pretokenized, intervals=intervals)
        files = {"first": str(file), "second": str(other)}
        data, table = {"files": files, **comparison.to_dict()}, format_comparison(comparison, files)
    if as_json:
        echo_json(data, indent=1)
    else:
        typer.echo(table)


def format_report(report: ScoreReport) -> str:
    """Return the numbers of one system as an aligned table, then the signatures."""
    lines = [f"{report.n} rows", ""]
    lines += [_score_line(score) for score in report.scores]
    lines += ["", f"{'exact match by kind':<{_WIDTH}}     em      rows"]
    for score in report.breakdown:
        group = score.name.removeprefix("em_")
        count = f"{report.groups[group]:>8}" if group in report.groups else " " * 8
        lines.append(f"{_score_line(score, group.replace('_', ' '), count)}".rstrip())
    return "\n".join([*lines, "", *_signature_lines(report.signatures.values())])


def format_comparison(comparison: Comparison, files: dict[str, str]) -> str:
    """Return two systems side by side with their paired differences, then the signatures."""
    first, second = comparison.first, comparison.second
    gap = " " * len("   [0.0000, 0.0000]") if first.intervals else ""
    head = f"{'':<{_WIDTH}}   first{gap}  second{gap}   second - first, 95% interval        p"
    lines = [f"first   {files['first']}", f"second  {files['second']}", f"{first.n} rows", "", head]
    for name, difference in comparison.differences.items():
        pair = f"{name:<{_WIDTH}}{_with_interval(first, name)}{_with_interval(second, name)}"
        if difference is None:
            lines.append(pair)
            continue
        interval = f"[{difference.interval.low:+.4f}, {difference.interval.high:+.4f}]"
        mark = " *" if difference.is_significant else ""
        lines.append(f"{pair}   {difference.value:+.4f}  {interval}  {difference.p:>7.4f}{mark}")
    signatures = (*first.signatures.values(), comparison.signature)
    return "\n".join([*lines, "", "* p < 0.05", "", *_signature_lines(signatures)])


def _score_line(score: Score, label: str = "", count: str = "") -> str:
    interval = f"   {score.interval}" if score.interval else ""
    return f"{label or score.name:<{_WIDTH}}{_number(score.value)}{count}{interval}"


def _with_interval(report: ScoreReport, name: str) -> str:
    low_high = report.intervals.get(name)
    return _number(report[name]) + (f"   [{low_high[0]:.4f}, {low_high[1]:.4f}]" if low_high else "")


def _signature_lines(signatures: Iterable[Signature]) -> list[str]:
    return ["signatures", *(f"  {signature}" for signature in dict.fromkeys(signatures))]


def _number(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.4f'):>8}"
