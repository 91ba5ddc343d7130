"""calibrate(model, sets): what a pipeline's log-probabilities are worth, measured on development rows, into teo.json.

The curve is isotonic over all sets together. The threshold of a language is the least one at which no set in that
language has more of its complete utterances changed, or more of its incomplete ones made wrong, than it may have. What
the curve is worth is told on rows that it was not fitted to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from teo.abstain import Calibration, Thresholds, language_of
from teo.data.row import Row
from teo.errors import InputError
from teo.evaluation.curves import (
    Bin,
    RiskPoint,
    area_under_risk,
    choose_threshold,
    expected_calibration_error,
    fit_isotonic,
    reliability,
    risk_coverage,
)
from teo.evaluation.predict import answer_rows
from teo.loading import open_model
from teo.rewriter import Answer, Rewriter
from teo.units import is_exact_match

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
    """How much of its complete utterances may be changed; None: they do not decide a threshold."""
    wrong: float | None = None
    """How much of its incomplete utterances may be made wrong; None: they do not decide a threshold."""


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
    wrong: float | None = None
    """How much of its incomplete utterances may be made wrong."""
    incomplete_wrong: float | None = None
    """Share of incomplete utterances that are made wrong."""


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
    opened = open_model(model)
    rewriter = Rewriter.of_model(opened, variant)
    measured = [judge_rows(rewriter, part.rows, rest_weight) for part in sets]
    asked = [outcome for outcomes in measured for outcome in outcomes if outcome.asked]
    if len(asked) < _FEWEST:
        raise InputError(f"calibration: expected at least {_FEWEST} rows that the model is asked, found {len(asked)}")
    curve = _fit(asked, rest_weight)
    thresholds = choose_thresholds(curve, list(zip(sets, measured, strict=True)))
    stored = {
        **opened.folder.extra.get("calibration", {}),
        rewriter.variant: {**curve.to_dict(), **thresholds.to_dict()},
    }
    replace(opened.folder, extra={**opened.folder.extra, "calibration": stored}).save(opened.path)
    confidences, right = _held_out_confidences(asked), [outcome.right for outcome in asked]
    points = risk_coverage(confidences, right)
    return CalibrationReport(
        variant=rewriter.variant,
        rows=len(asked),
        threshold=thresholds.default,
        thresholds=dict(thresholds.by_language),
        calibration_error=expected_calibration_error(confidences, right),
        risk_area=area_under_risk(points),
        half_risk=next(point.risk for point in points if point.coverage >= 0.5),
        reliability=tuple(reliability(confidences, right)),
        risk_coverage=tuple(points),
        sets=tuple(_report(*pair, curve, thresholds) for pair in zip(sets, measured, strict=True)),
    )


def judge_rows(rewriter: Rewriter, rows: Sequence[Row], rest_weight: float = REST_WEIGHT) -> list[Outcome]:
    """Return what a rewriter does with each row, in order, were there no threshold."""
    answers = answer_rows(rewriter, rows, min_confidence=0.0)
    return [_outcome(row, answer, rest_weight) for row, answer in zip(rows, answers, strict=True)]


def choose_thresholds(curve: Calibration, sets: Sequence[tuple[CalibrationSet, Sequence[Outcome]]]) -> Thresholds:
    """Return the least threshold of each language at which its sets keep their limits.

    A language that no set decides has the highest of them.
    """
    by_language: dict[str, float] = {}
    for part, outcomes in sets:
        if not outcomes:
            continue
        language = _language(outcomes)
        own = [outcome for outcome in outcomes if outcome.language == language]
        limits = (
            (part.share, [(outcome, outcome.changed) for outcome in own if outcome.complete]),
            (part.wrong, [(outcome, outcome.changed and not outcome.right) for outcome in own if not outcome.complete]),
        )
        for share, harmed in limits:
            if share is not None:
                by_language[language] = max(_threshold(curve, harmed, share), by_language.get(language, 0.0))
    return Thresholds(max(by_language.values(), default=0.0), by_language)


def _outcome(row: Row, answer: Answer, rest_weight: float) -> Outcome:
    """Return what became of a row."""
    return Outcome(
        score=answer.prediction.score(rest_weight) if answer.prediction else 0.0,
        right=any(is_exact_match(answer.record.rewrite, text) for text in (row.rewrite, *row.references)),
        complete=is_exact_match(row.dialogue.utterance, row.rewrite),
        changed=answer.record.changed,
        language=language_of(row.dialogue),
        asked=answer.prediction is not None,
    )


def _language(outcomes: Sequence[Outcome]) -> str:
    return Counter(outcome.language for outcome in outcomes).most_common(1)[0][0]


def _fit(outcomes: Sequence[Outcome], rest_weight: float = 1.0) -> Calibration:
    scores, right = [outcome.score for outcome in outcomes], [outcome.right for outcome in outcomes]
    return fit_isotonic(scores, right, rest_weight=rest_weight)


def _threshold(curve: Calibration, harmed: Sequence[tuple[Outcome, bool]], share: float) -> float:
    """Return the least threshold at which at most `share` of the rows are harmed; each comes with whether it may be."""
    if not harmed:
        return 0.0
    confidences = [curve.confidence(outcome.score) for outcome, _ in harmed]
    return choose_threshold(confidences, [harm for _, harm in harmed], share=share)


def _held_out_confidences(outcomes: Sequence[Outcome]) -> list[float]:
    """Return each row's confidence by a curve that was fitted to the half of the rows that it is not in."""
    confidences = [0.0] * len(outcomes)
    for half in (0, 1):
        curve = _fit(outcomes[1 - half :: 2])
        confidences[half::2] = [curve.confidence(outcome.score) for outcome in outcomes[half::2]]
    return confidences


def _report(part: CalibrationSet, outcomes: Sequence[Outcome], curve: Calibration, thresholds: Thresholds) -> SetReport:
    right: list[bool] = []
    complete: list[bool] = []
    incomplete: list[bool] = []
    wrong: list[bool] = []
    for outcome in outcomes:
        made = outcome.changed and curve.confidence(outcome.score) >= thresholds.of_language(outcome.language)
        right.append(outcome.right if made == outcome.changed else outcome.complete)
        (complete if outcome.complete else incomplete).append(made)
        if not outcome.complete:
            wrong.append(made and not outcome.right)
    return SetReport(
        name=part.name,
        language=_language(outcomes) if outcomes else "-",
        share=part.share,
        rows=len(outcomes),
        em_without=_share([outcome.right for outcome in outcomes]) or 0.0,
        em=_share(right) or 0.0,
        complete_changed=_share(complete),
        incomplete_kept=None if not incomplete else 1 - (_share(incomplete) or 0.0),
        wrong=part.wrong,
        incomplete_wrong=_share(wrong),
    )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
