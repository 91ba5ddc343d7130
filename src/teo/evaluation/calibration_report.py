"""What a calibration leaves on disk: its numbers, a report in Markdown, and two pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from teo.calibration import LANGUAGES, RiskPoint
from teo.errors import InputError, MissingExtraError
from teo.evaluation.calibrate import CalibrationReport, SetReport
from teo.evaluation.plots import draw_reliability, draw_risk_coverage
from teo.evaluation.report import format_table, percent
from teo.files import write_json, write_text

_RELIABILITY, _RISK = "reliability.png", "risk_coverage.png"
_COVERAGES = tuple(tenth / 10 for tenth in range(1, 11))


def write_report(report: CalibrationReport, out: Path, stream: TextIO) -> None:
    """Write calibration.json, calibration.md, reliability.png and risk_coverage.png into a folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made the output folder: {error.strerror}") from None
    write_json(out / "calibration.json", report.to_dict())
    write_text(out / "calibration.md", format_calibration(report))
    drawings: dict[str, Callable[[Path], None]] = {
        _RELIABILITY: lambda path: draw_reliability(report.reliability, path),
        _RISK: lambda path: draw_risk_coverage(report.risk_coverage, path),
    }
    for name, draw in drawings.items():
        try:
            draw(out / name)
        except MissingExtraError as error:
            stream.write(f"{name} is not drawn: {error}\n")


def format_calibration(report: CalibrationReport) -> str:
    """Return the report as Markdown."""
    parts = [
        f"# Confidence of {report.variant}",
        f"{report.rows} rows that the model was asked; confidences are of curves fitted to the other half of the rows. "
        f"Expected calibration error: {report.calibration_error:.4f}. Area under the risk-coverage curve: "
        f"{report.risk_area:.4f}. Wrong rewrites among the surer half of the rows: {percent(report.half_risk)}%.",
        "## Thresholds",
        format_table(("language", "threshold"), _thresholds(report)),
        "Chosen on these rows: the least at which no set has more of its complete utterances changed than it may have. "
        "Shares in percent.",
        format_table(
            ("set", "language", "rows", "EM without", "EM", "may be changed", "complete changed", "incomplete kept"),
            (_set(one) for one in report.sets),
        ),
        "## Reliability",
        f"![reliability diagram]({_RELIABILITY})",
        format_table(
            ("confidence", "share of rows", "mean confidence", "right"),
            (
                (f"{one.low:.3f} to {one.high:.3f}", percent(one.share), percent(one.confidence), percent(one.accuracy))
                for one in report.reliability
            ),
        ),
        "## Risk and coverage",
        f"![risk-coverage curve]({_RISK})",
        format_table(("coverage", "from confidence", "wrong"), _risks(report.risk_coverage)),
    ]
    return "\n\n".join(parts) + "\n"


def summarise_calibration(report: CalibrationReport) -> str:
    """Return the lines that the command prints."""
    thresholds = ", ".join(f"{language} {value}" for language, value in _thresholds(report))
    lines = [
        f"{report.variant}: thresholds {thresholds}; expected calibration error {report.calibration_error:.3f}, "
        f"area under risk and coverage {report.risk_area:.3f}"
    ]
    for one in report.sets:
        lines.append(
            f"{one.name} ({one.language}): {one.rows} rows, EM {one.em_without:.4f} without threshold, "
            f"{one.em:.4f} with it; complete changed {_percent(one.complete_changed)}, "
            f"incomplete kept {_percent(one.incomplete_kept)}"
        )
    return "\n".join(lines)


def _thresholds(report: CalibrationReport) -> Iterable[tuple[str, str]]:
    for language in LANGUAGES:
        yield language, f"{report.thresholds.get(language, report.threshold):.4f}"


def _set(one: SetReport) -> tuple[object, ...]:
    shares = (one.em_without, one.em, one.share, one.complete_changed, one.incomplete_kept)
    return (one.name, one.language, one.rows, *map(percent, shares))


def _risks(points: Iterable[RiskPoint]) -> Iterable[tuple[str, ...]]:
    """Return the first point at each tenth of coverage; points that answer several rows at once may skip some."""
    listed = list(points)
    reached = [next(one for one in listed if one.coverage >= tenth - 1e-9) for tenth in _COVERAGES]
    for one in dict.fromkeys(reached):
        yield percent(one.coverage), f"{one.confidence:.4f}", percent(one.risk)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
