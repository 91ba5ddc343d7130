"""calibrate(model, sets): what a pipeline's log-probabilities are worth, measured on development rows, into teo.json.

The curve is isotonic over all sets together. The threshold of a language is the least one at which no set in that
language has more of its complete utterances changed than it may have. What the curve is worth is told on rows that it
was not fitted to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from teo.calibration import (
    Bin,
    Calibration,
    RiskPoint,
    Thresholds,
    area_under_risk,
    choose_threshold,
    expected_calibration_error,
    fit_isotonic,
    language_of,
    reliability,
    risk_coverage,
)
from teo.data.row import Row
from teo.errors import InputError
from teo.evaluation.abstain import ask
from teo.folder import ModelFolder
from teo.loading import System
from teo.own_text import edits_of
from teo.pipelines import Prediction, find_variant, require_roles
from teo.units import scoring_units

_FEWEST = 40
"""Rows that a curve needs at least."""
REST_WEIGHT = 0.05
"""What the tokens after the first count: at 1, doubt about the words hides whether any are missing."""


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Development rows of one dataset."""

    name: str
    rows: Sequence[Row]
    share: float | None = None
    """How much of its complete utterances may be changed; None: this set does not decide a threshold."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pipeline did with a row: its log-probability, whether it was right, and whether it would change it."""

    score: float
    right: bool
    complete: bool
    changed: bool
    language: str
    asked: bool = True
    """False where a rule kept the utterance and no model was asked: there is no score."""


@dataclass(frozen=True, slots=True)
class SetReport:
    """One set at its language's threshold."""

    name: str
    language: str
    """That of most of its rows."""
    share: float | None
    """How much of its complete utterances may be changed."""
    rows: int
    em_without: float
    """Exact match with no threshold."""
    em: float
    """Exact match where rewrites below the threshold are not made."""
    complete_changed: float | None
    """Share of complete utterances that are changed; None where there are none."""
    incomplete_kept: float | None
    """Share of incomplete utterances that are kept as they are."""


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The curve's worth, told on rows that it was not fitted to (two halves, by turns), and what thresholds do."""

    variant: str
    rows: int
    """Rows that the model was asked."""
    threshold: float
    """That of a language without its own."""
    thresholds: dict[str, float]
    calibration_error: float
    """Expected calibration error: the mean gap between confidence and share of right rewrites in `reliability`."""
    risk_area: float
    """Area under `risk_coverage`: 0 is best, the share of wrong rewrites is what chance gives."""
    half_risk: float
    """Share of wrong rewrites among the half of the rows with the highest confidence."""
    reliability: tuple[Bin, ...]
    """The reliability diagram."""
    risk_coverage: tuple[RiskPoint, ...]
    """The risk-coverage curve: confidence, coverage and risk of each point."""
    sets: tuple[SetReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        return asdict(self)


def calibrate(
    model: Path, sets: Sequence[CalibrationSet], variant: str | None = None, *, rest_weight: float = REST_WEIGHT
) -> CalibrationReport:
    """Fit a model's confidence, write curve and thresholds into its teo.json, and return what they are worth."""
    system = System.load(model)
    chosen = find_variant(variant or system.folder.variant)
    require_roles(chosen, system, tuple(system.folder.roles), str(model))
    measured = [judge_rows(system, chosen.name, one.rows, rest_weight) for one in sets]
    asked = [outcome for each in measured for outcome in each if outcome.asked]
    if len(asked) < _FEWEST:
        raise InputError(f"calibration: expected at least {_FEWEST} rows that the model is asked, found {len(asked)}")
    curve = _fit(asked, rest_weight)
    thresholds = choose_thresholds(curve, [(one.share, each) for one, each in zip(sets, measured, strict=True)])
    stored = dict(system.folder.extra.get("calibration", {}))
    stored[chosen.name] = {**curve.to_dict(), **thresholds.to_dict()}
    folder: ModelFolder = replace(system.folder, extra={**system.folder.extra, "calibration": stored})
    folder.save(model)
    confidences, right = _held_out_confidences(asked), [one.right for one in asked]
    points = risk_coverage(confidences, right)
    return CalibrationReport(
        variant=chosen.name,
        rows=len(asked),
        threshold=thresholds.default,
        thresholds=dict(thresholds.by_language),
        calibration_error=expected_calibration_error(confidences, right),
        risk_area=area_under_risk(points),
        half_risk=next(point.risk for point in points if point.coverage >= 0.5),
        reliability=tuple(reliability(confidences, right)),
        risk_coverage=tuple(points),
        sets=tuple(_report(one, curve, each, thresholds) for one, each in zip(sets, measured, strict=True)),
    )


def judge_rows(system: System, variant: str, rows: Sequence[Row], rest_weight: float = REST_WEIGHT) -> list[Outcome]:
    """Return what a pipeline does with each row, in order; those that a rule keeps it is not asked."""
    predictions = ask(find_variant(variant), system, rows)
    return [_outcome(row, one, rest_weight) for row, one in zip(rows, predictions, strict=True)]


def choose_thresholds(curve: Calibration, sets: Sequence[tuple[float | None, Sequence[Outcome]]]) -> Thresholds:
    """Return the least threshold of each language at which its sets, each with the share it allows, keep their limit.

    A language that no set decides has the highest of them.
    """
    by_language: dict[str, float] = {}
    for share, outcomes in sets:
        if share is None or not outcomes:
            continue
        language = _language(outcomes)
        found = _threshold(curve, [one for one in outcomes if one.complete and one.language == language], share)
        by_language[language] = max(found, by_language.get(language, 0.0))
    return Thresholds(max(by_language.values(), default=0.0), by_language)


def _outcome(row: Row, prediction: Prediction | None, rest_weight: float) -> Outcome:
    """Return what became of a row, by a pipeline's prediction or, without one, by rule."""
    utterance, reference = row.dialogue.utterance, scoring_units(row.rewrite)
    script = edits_of(utterance, row.dialogue, prediction.rewrite if prediction else "")
    return Outcome(
        score=prediction.evidence(rest_weight) if prediction else 0.0,
        right=scoring_units(script.apply(utterance)) == reference,
        complete=scoring_units(utterance) == reference,
        changed=bool(script),
        language=language_of(row.dialogue),
        asked=prediction is not None,
    )


def _language(outcomes: Sequence[Outcome]) -> str:
    return Counter(one.language for one in outcomes).most_common(1)[0][0]


def _fit(outcomes: Sequence[Outcome], rest_weight: float = 1.0) -> Calibration:
    return fit_isotonic([one.score for one in outcomes], [one.right for one in outcomes], rest_weight=rest_weight)


def _threshold(curve: Calibration, complete: Sequence[Outcome], share: float) -> float:
    if not complete:
        return 0.0
    confidences = [curve.confidence(one.score) for one in complete]
    return choose_threshold(confidences, [one.changed for one in complete], share=share)


def _held_out_confidences(outcomes: Sequence[Outcome]) -> list[float]:
    """Return each row's confidence by a curve that was fitted to the half of the rows that it is not in."""
    confidences = [0.0] * len(outcomes)
    for told in (0, 1):
        curve = _fit(outcomes[1 - told :: 2])
        confidences[told::2] = [curve.confidence(one.score) for one in outcomes[told::2]]
    return confidences


def _report(one: CalibrationSet, curve: Calibration, outcomes: Sequence[Outcome], thresholds: Thresholds) -> SetReport:
    made = [each.changed and curve.confidence(each.score) >= thresholds.of_language(each.language) for each in outcomes]
    right = [each.right if makes == each.changed else each.complete for each, makes in zip(outcomes, made, strict=True)]
    complete = [makes for each, makes in zip(outcomes, made, strict=True) if each.complete]
    incomplete = [makes for each, makes in zip(outcomes, made, strict=True) if not each.complete]
    return SetReport(
        name=one.name,
        language=_language(outcomes) if outcomes else "-",
        share=one.share,
        rows=len(outcomes),
        em_without=_share([each.right for each in outcomes]) or 0.0,
        em=_share(right) or 0.0,
        complete_changed=_share(complete),
        incomplete_kept=None if not incomplete else 1 - (_share(incomplete) or 0.0),
    )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
