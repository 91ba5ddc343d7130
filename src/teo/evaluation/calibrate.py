"""calibrate(model, sets): what a pipeline's log-probabilities are worth, measured on development rows, into teo.json.

The curve is isotonic over all sets together. The threshold is the least one at which no set has more of its complete
utterances changed than it may have. What the curve is worth is told on rows that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from teo.calibration import Calibration, choose_threshold, expected_calibration_error, fit_isotonic, risk_coverage
from teo.data.row import Row
from teo.errors import InputError
from teo.evaluation.system import System
from teo.evaluation.variants import find_variant, require_roles
from teo.folder import ModelFolder
from teo.rewriter import edits_of
from teo.runtime.rules import reason_to_keep
from teo.units import scoring_units

_FEWEST = 40
"""Rows that a curve needs at least."""


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Development rows of one dataset."""

    name: str
    rows: Sequence[Row]
    share: float | None = None
    """How much of its complete utterances may be changed; None: this set does not decide the threshold."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pipeline did with a row: its log-probability, whether it was right, and whether it would change it."""

    score: float
    right: bool
    complete: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class SetReport:
    """One set at the chosen threshold."""

    name: str
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
    """The curve's worth, the threshold and what it does to each set."""

    variant: str
    threshold: float
    calibration_error: float
    """Expected calibration error on rows that the curve was not fitted to (two halves, by turns)."""
    half_risk: float
    """Share of wrong rewrites among the half of the rows with the highest confidence."""
    sets: tuple[SetReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        return asdict(self)


def calibrate(model: Path, sets: Sequence[CalibrationSet], variant: str | None = None) -> CalibrationReport:
    """Fit a model's confidence, write curve and threshold into its teo.json, and return what they are worth."""
    system = System.load(model)
    chosen = find_variant(variant or system.folder.variant)
    require_roles(chosen, system, tuple(system.folder.roles), str(model))
    measured = {one.name: judge_rows(system, chosen.name, one.rows) for one in sets}
    outcomes = [outcome for each in measured.values() for outcome in each]
    if len(outcomes) < _FEWEST:
        raise InputError(
            f"calibration: expected at least {_FEWEST} rows that the model is asked, found {len(outcomes)}"
        )
    curve = fit_isotonic([one.score for one in outcomes], [one.right for one in outcomes])
    threshold = max(
        (_threshold(curve, measured[one.name], one.share) for one in sets if one.share is not None), default=0.0
    )
    stored = dict(system.folder.extra.get("calibration", {}))
    stored[chosen.name] = {**curve.to_dict(), "threshold": threshold}
    folder: ModelFolder = replace(system.folder, extra={**system.folder.extra, "calibration": stored})
    folder.save(model)
    confidences = [curve.confidence(one.score) for one in outcomes]
    risks = risk_coverage(confidences, [one.right for one in outcomes])
    return CalibrationReport(
        variant=chosen.name,
        threshold=threshold,
        calibration_error=_held_out_error(outcomes),
        half_risk=next(risk for _, coverage, risk in risks if coverage >= 0.5),
        sets=tuple(_report(one.name, curve, measured[one.name], threshold) for one in sets),
    )


def judge_rows(system: System, variant: str, rows: Sequence[Row]) -> list[Outcome]:
    """Return what a pipeline does with the rows that it is asked; those kept by rule need no confidence."""
    asked = [row for row in rows if not reason_to_keep(row.dialogue)]
    predictions = find_variant(variant).run(system, asked, 0)
    outcomes = []
    for row, prediction in zip(asked, predictions, strict=True):
        utterance = row.dialogue.utterance
        script = edits_of(utterance, row.dialogue, prediction.rewrite)
        reference = scoring_units(row.rewrite)
        outcomes.append(
            Outcome(
                score=sum(prediction.scores.values()),
                right=scoring_units(script.apply(utterance)) == reference,
                complete=scoring_units(utterance) == reference,
                changed=bool(script),
            )
        )
    return outcomes


def _threshold(curve: Calibration, outcomes: Sequence[Outcome], share: float) -> float:
    complete = [one for one in outcomes if one.complete]
    if not complete:
        return 0.0
    confidences = [curve.confidence(one.score) for one in complete]
    return choose_threshold(confidences, [one.changed for one in complete], share=share)


def _held_out_error(outcomes: Sequence[Outcome]) -> float:
    halves = (outcomes[::2], outcomes[1::2])
    errors = []
    for fitted, told in (halves, halves[::-1]):
        curve = fit_isotonic([one.score for one in fitted], [one.right for one in fitted])
        errors.append(
            expected_calibration_error([curve.confidence(one.score) for one in told], [one.right for one in told])
        )
    return sum(errors) / 2


def _report(name: str, curve: Calibration, outcomes: Sequence[Outcome], threshold: float) -> SetReport:
    made = [one.changed and curve.confidence(one.score) >= threshold for one in outcomes]
    right = [one.right if keeps == one.changed else one.complete for one, keeps in zip(outcomes, made, strict=True)]
    complete = [change for one, change in zip(outcomes, made, strict=True) if one.complete]
    incomplete = [change for one, change in zip(outcomes, made, strict=True) if not one.complete]
    return SetReport(
        name=name,
        rows=len(outcomes),
        em_without=_share([one.right for one in outcomes]) or 0.0,
        em=_share(right) or 0.0,
        complete_changed=_share(complete),
        incomplete_kept=None if not incomplete else 1 - (_share(incomplete) or 0.0),
    )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
