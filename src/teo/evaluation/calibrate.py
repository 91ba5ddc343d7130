"""calibrate(model, sets): fits a pipeline's confidence on development rows and writes it into teo.json.

Whether a rewrite is right is taken from the row: a judgement of that very rewrite if it has one, else its meaning keys
(`teo.metrics.meaning`), else exact match. If any row of a set has judgements, rewrites of the set that nobody judged
are left out: exact match would call good ones wrong.

Each language has its own logistic functions. They are assessed on rows that they were not fitted to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from teo.data.row import Row
from teo.decision import ANY_LANGUAGE, EVIDENCE, LANGUAGES, PREFER, ROOT_SCORE, Calibration, language_of
from teo.errors import InputError
from teo.evaluation.curves import (
    Bin,
    RiskPoint,
    area_under_risk,
    expected_calibration_error,
    fit_logistic,
    reliability,
    risk_coverage,
)
from teo.evaluation.predict import rewrite_rows
from teo.loading import open_model
from teo.metrics.meaning import INCOMPLETE, grade
from teo.pipelines import Prediction
from teo.rewriter import Rewriter
from teo.units import is_exact_match

FEWEST = 40
"""Rewrites that a fit needs at least."""
DEFAULT_EVIDENCE = (ROOT_SCORE,)


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Development rows of one dataset."""

    name: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A pipeline's answer to a row: its prediction, and whether that is right."""

    prediction: Prediction
    language: str
    changed: bool
    complete: bool
    right: bool


@dataclass(frozen=True, slots=True)
class SetReport:
    """What one threshold does to a set, as shares of its incomplete and of its complete rows."""

    name: str
    prefer: str
    incomplete: int
    complete: int
    right: float | None
    """Incomplete utterances that are rewritten rightly."""
    wrong: float | None
    """Incomplete utterances that are rewritten otherwise."""
    missed: float | None
    """Incomplete utterances that stay unchanged."""
    kept: float | None
    """Complete utterances that stay unchanged."""


@dataclass(frozen=True, slots=True)
class LanguageReport:
    """How true the confidence of changed utterances is in one language, on the half of the rows not fitted on."""

    language: str
    rows: int
    right: float
    """Share of right rewrites."""
    calibration_error: float
    """Expected calibration error: the mean gap between confidence and share of right rewrites in `reliability`."""
    risk_area: float
    """Area under `risk_coverage`: 0 is best, the share of wrong rewrites is what chance gives."""
    reliability: tuple[Bin, ...]
    risk_coverage: tuple[RiskPoint, ...]


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The worth of a fit, and what each named threshold does to each set."""

    variant: str
    evidence: tuple[str, ...]
    functions: Mapping[str, Any]
    """As `teo.json` holds them."""
    left_out: int
    """Rewrites that nobody judged."""
    languages: tuple[LanguageReport, ...]
    sets: tuple[SetReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        return asdict(self)


def calibrate(
    model: Path,
    sets: Sequence[CalibrationSet],
    variant: str | None = None,
    *,
    evidence: Sequence[str] = DEFAULT_EVIDENCE,
) -> CalibrationReport:
    """Fit a model's confidence, write the functions into its teo.json, and return what they are worth."""
    unknown = [name for name in evidence if name not in EVIDENCE]
    if unknown or not evidence:
        found = ", ".join(unknown) or "none"
        raise InputError(f"evidence: expected some of {', '.join(EVIDENCE)}; found {found}")
    opened = open_model(model)
    rewriter = Rewriter.of_model(opened, variant)
    measured = {part.name: judge_rows(rewriter, part.rows) for part in sets}
    outcomes = [outcome for found, _ in measured.values() for outcome in found]
    calibration = fit(outcomes, evidence)
    stored = {**opened.folder.extra.get("calibration", {}), rewriter.variant: calibration.to_dict()}
    replace(opened.folder, extra={**opened.folder.extra, "calibration": stored}).save(opened.path)
    return CalibrationReport(
        variant=rewriter.variant,
        evidence=tuple(evidence),
        functions=calibration.to_dict(),
        left_out=sum(left_out for _, left_out in measured.values()),
        languages=tuple(report_languages(outcomes, evidence)),
        sets=tuple(
            report_set(name, prefer, threshold, found, calibration)
            for name, (found, _) in measured.items()
            for prefer, threshold in PREFER.items()
        ),
    )


def judge_rows(rewriter: Rewriter, rows: Sequence[Row]) -> tuple[list[Outcome], int]:
    """Return what a rewriter without a threshold makes of rows, and how many rewrites nobody judged.

    Rows for which no model is called are left out too.
    """
    outcomes: list[Outcome] = []
    left_out = 0
    some_judged = any(row.keys and row.keys.judged for row in rows)
    for row, record in zip(rows, rewrite_rows(rewriter, rows, min_confidence=0.0), strict=True):
        if record.prediction is None:
            continue
        right = is_right(row, record.rewrite, trust_exact_match=not some_judged)
        if right is None:
            left_out += 1
        else:
            language = language_of(row.dialogue)
            outcomes.append(Outcome(record.prediction, language, record.changed, _is_complete(row), right))
    return outcomes, left_out


def is_right(row: Row, rewrite: str, *, trust_exact_match: bool = True) -> bool | None:
    """Return whether a rewrite means the right thing; None if nothing tells."""
    if row.keys is not None and (judged := row.keys.judgement(rewrite)) is not None:
        return judged
    if row.keys is not None and row.keys.need:
        return grade(row, rewrite) in ("right", "kept")
    if trust_exact_match or is_exact_match(rewrite, row.dialogue.utterance):
        return any(is_exact_match(rewrite, text) for text in (row.rewrite, *row.references))
    return None


def fit(outcomes: Sequence[Outcome], evidence: Sequence[str]) -> Calibration:
    """Return the functions of every language that has enough rewrites, and those of all together."""
    changed = [outcome for outcome in outcomes if outcome.changed]
    if len(changed) < FEWEST:
        raise InputError(
            f"calibration: expected at least {FEWEST} rewrites that were judged, found {len(changed)}; give more rows"
        )
    unchanged = [outcome for outcome in outcomes if not outcome.changed]
    return Calibration(
        tuple(evidence),
        {name: _fit(part, evidence) for name, part in _by_language(changed).items()},
        {name: _fit(part, DEFAULT_EVIDENCE) for name, part in _by_language(unchanged).items()},  # type: ignore[misc]
    )


def _by_language(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes of each language that has enough of them, and all of them."""
    parts = {name: [outcome for outcome in outcomes if outcome.language == name] for name in LANGUAGES}
    enough = {name: part for name, part in parts.items() if len(part) >= FEWEST}
    return {**enough, ANY_LANGUAGE: list(outcomes)} if len(outcomes) >= FEWEST else {}


def _fit(outcomes: Sequence[Outcome], evidence: Sequence[str]) -> tuple[float, ...]:
    values = [[EVIDENCE[name](outcome.prediction) for name in evidence] for outcome in outcomes]
    return fit_logistic(values, [outcome.right for outcome in outcomes])


def report_languages(outcomes: Sequence[Outcome], evidence: Sequence[str]) -> list[LanguageReport]:
    """Return how true confidences of changed utterances are: each half by functions fitted to the other half."""
    reports = []
    for language in LANGUAGES:
        own = [outcome for outcome in outcomes if outcome.changed and outcome.language == language]
        if len(own) < 2 * FEWEST:
            continue
        confidences = [0.0] * len(own)
        for half in (0, 1):
            fitted = Calibration(tuple(evidence), {ANY_LANGUAGE: _fit(own[1 - half :: 2], evidence)})
            confidences[half::2] = [
                fitted.confidence(outcome.prediction, ANY_LANGUAGE, changed=True) for outcome in own[half::2]
            ]
        right = [outcome.right for outcome in own]
        points = risk_coverage(confidences, right)
        reports.append(
            LanguageReport(
                language,
                len(own),
                sum(right) / len(right),
                expected_calibration_error(confidences, right),
                area_under_risk(points),
                tuple(reliability(confidences, right)),
                tuple(points),
            )
        )
    return reports


def report_set(
    name: str, prefer: str, threshold: float, outcomes: Sequence[Outcome], calibration: Calibration
) -> SetReport:
    """Return what a threshold does to a set."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        confidence = calibration.confidence(outcome.prediction, outcome.language, changed=outcome.changed)
        made = outcome.changed and confidence >= threshold
        if outcome.complete:
            counts["harmed" if made else "kept"] += 1
        else:
            counts["missed" if not made else "right" if outcome.right else "wrong"] += 1
    incomplete = sum(counts[verdict] for verdict in INCOMPLETE)
    complete = counts["kept"] + counts["harmed"]
    right, wrong, missed = (
        counts[verdict] / incomplete if incomplete else None for verdict in ("right", "wrong", "missed")
    )
    kept = counts["kept"] / complete if complete else None
    return SetReport(name, prefer, incomplete, complete, right, wrong, missed, kept)


def _is_complete(row: Row) -> bool:
    return is_exact_match(row.dialogue.utterance, row.rewrite)
