"""The files of a calibration: its numbers, a report in Markdown, and two pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from teo.abstain import LANGUAGES
from teo.errors import InputError, MissingExtraError
from teo.evaluation.calibrate import CalibrationReport, SetReport
from teo.evaluation.curves import RiskPoint
from teo.evaluation.markdown import percent, plain_table
from teo.evaluation.plots import draw_reliability, draw_risk_coverage
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
        plain_table(("language", "threshold"), _thresholds(report)),
        "Chosen on these rows: the least at which no set has more of its complete utterances changed, or of its "
        "incomplete ones made wrong, than it may have. Shares in percent.",
        plain_table(
            (
                *("set", "language", "rows", "EM without", "EM", "may be changed", "complete changed"),
                *("incomplete kept", "may be wrong", "incomplete wrong"),
            ),
            map(_set, report.sets),
        ),
        "## Reliability",
        f"![reliability diagram]({_RELIABILITY})",
        plain_table(
            ("confidence", "share of rows", "mean confidence", "right"),
            (
                (f"{part.low:.3f} to {part.high:.3f}", *map(percent, (part.share, part.confidence, part.accuracy)))
                for part in report.reliability
            ),
        ),
        "## Risk and coverage",
        f"![risk-coverage curve]({_RISK})",
        plain_table(("coverage", "from confidence", "wrong"), _risks(report.risk_coverage)),
    ]
    return "\n\n".join(parts) + "\n"


def summarise_calibration(report: CalibrationReport) -> str:
    """Return the lines that the command prints."""
    thresholds = ", ".join(f"{language} {value}" for language, value in _thresholds(report))
    lines = [
        f"{report.variant}: thresholds {thresholds}; expected calibration error {report.calibration_error:.3f}, "
        f"area under risk and coverage {report.risk_area:.3f}"
    ]
    for part in report.sets:
        lines.append(
            f"{part.name} ({part.language}): {part.rows} rows, EM {part.em_without:.4f} without threshold, "
            f"{part.em:.4f} with it; complete changed {_percent(part.complete_changed)}, "
            f"incomplete kept {_percent(part.incomplete_kept)}, wrong {_percent(part.incomplete_wrong)}"
        )
    return "\n".join(lines)


def _thresholds(report: CalibrationReport) -> Iterable[tuple[str, str]]:
    for language in LANGUAGES:
        yield language, f"{report.thresholds.get(language, report.threshold):.4f}"


def _set(part: SetReport) -> tuple[object, ...]:
    shares = (part.em_without, part.em, part.share, part.complete_changed, part.incomplete_kept)
    wrong = (part.wrong, part.incomplete_wrong)
    return (part.name, part.language, part.rows, *map(percent, (*shares, *wrong)))


def _risks(points: Iterable[RiskPoint]) -> Iterable[tuple[str, ...]]:
    """Return the first point at each tenth of coverage; points that answer several rows at once may skip some."""
    listed = list(points)
    reached = [next(point for point in listed if point.coverage >= tenth - 1e-9) for tenth in _COVERAGES]
    for point in dict.fromkeys(reached):
        yield percent(point.coverage), f"{point.confidence:.4f}", percent(point.risk)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
