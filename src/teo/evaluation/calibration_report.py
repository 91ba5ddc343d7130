"""The files of a calibration: its numbers, a report in Markdown, and two pictures for each language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TextIO

from teo.decision import PREFER
from teo.errors import InputError, MissingExtraError
from teo.evaluation.calibrate import CalibrationReport, LanguageReport, SetReport
from teo.evaluation.curves import RiskPoint
from teo.evaluation.markdown import percent, plain_table
from teo.evaluation.plots import draw_reliability, draw_risk_coverage
from teo.files import write_json, write_text

_COVERAGES = tuple(tenth / 10 for tenth in range(1, 11))


def write_report(report: CalibrationReport, out: Path, stream: TextIO) -> None:
    """Write calibration.json, calibration.md, and the two pictures of each language into a folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be used as the output folder: {error.strerror}") from None
    write_json(out / "calibration.json", report.to_dict())
    write_text(out / "calibration.md", format_calibration(report))
    drawings: dict[str, Callable[[Path], None]] = {}
    for part in report.languages:
        drawings[_picture("reliability", part)] = partial(draw_reliability, part.reliability)
        drawings[_picture("risk_coverage", part)] = partial(draw_risk_coverage, part.risk_coverage)
    for name, draw in drawings.items():
        try:
            draw(out / name)
        except MissingExtraError as error:
            stream.write(f"{name} is not drawn: {error}\n")


def format_calibration(report: CalibrationReport) -> str:
    """Return the report as Markdown."""
    thresholds = ", ".join(f"{name} {threshold}" for name, threshold in PREFER.items())
    parts = [
        f"# Confidence of {report.variant}",
        f"Fitted to {', '.join(report.evidence)}. {report.left_out} rewrites that nobody judged were left out.",
        "## What each setting does",
        f"Shares of the incomplete and, last, of the complete utterances, in percent. Thresholds: {thresholds}.",
        plain_table(
            ("set", "prefer", "incomplete", "right", "wrong", "missed", "complete", "kept"), map(_set, report.sets)
        ),
    ]
    for part in report.languages:
        parts += _language_parts(part)
    return "\n\n".join(parts) + "\n"


def _language_parts(part: LanguageReport) -> list[str]:
    return [
        f"## Language {part.language}",
        f"{part.rows} rewrites, {percent(part.right)}% of them right; each has its confidence by a function fitted to "
        f"the other half. Expected calibration error: {part.calibration_error:.4f}. Area under the risk-coverage "
        f"curve: {part.risk_area:.4f}.",
        f"![reliability diagram]({_picture('reliability', part)})",
        plain_table(
            ("confidence", "share of rows", "mean confidence", "right"),
            (
                (f"{each.low:.3f} to {each.high:.3f}", *map(percent, (each.share, each.confidence, each.accuracy)))
                for each in part.reliability
            ),
        ),
        f"![risk-coverage curve]({_picture('risk_coverage', part)})",
        plain_table(("coverage", "from confidence", "wrong"), _risks(part.risk_coverage)),
    ]


def summarise_calibration(report: CalibrationReport) -> str:
    """Return the lines that the command prints."""
    lines = [
        f"{report.variant}, {part.language}: {part.rows} rewrites, {_percent(part.right)} right; expected calibration "
        f"error {part.calibration_error:.3f}, area under risk and coverage {part.risk_area:.3f}"
        for part in report.languages
    ]
    for part in report.sets:
        lines.append(
            f"{part.name}, {part.prefer}: right {_percent(part.right)}, wrong {_percent(part.wrong)}, missed "
            f"{_percent(part.missed)} of {part.incomplete} incomplete; kept {_percent(part.kept)} of {part.complete} "
            "complete"
        )
    return "\n".join(lines)


def _picture(kind: str, part: LanguageReport) -> str:
    return f"{kind}_{part.language}.png"


def _set(part: SetReport) -> tuple[object, ...]:
    shares = [percent(share) for share in (part.right, part.wrong, part.missed)]
    return (part.name, part.prefer, part.incomplete, *shares, part.complete, percent(part.kept))


def _risks(points: Iterable[RiskPoint]) -> Iterable[tuple[str, ...]]:
    """Return the first point at each tenth of coverage; points that answer several rows at once may skip some."""
    listed = list(points)
    reached = [next(point for point in listed if point.coverage >= tenth - 1e-9) for tenth in _COVERAGES]
    for point in dict.fromkeys(reached):
        yield percent(point.coverage), f"{point.confidence:.4f}", percent(point.risk)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
