"""What confidences are worth, and how they are fitted: logistic functions, reliability, risk and coverage.

A function is fitted on development rows: for each row the evidence that the pipeline's own rewrite gives, and whether
that rewrite was right. It is smooth and monotone in every piece of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from teo.errors import InputError

Floats = NDArray[np.float64]

BINS = 15
"""Bins of equal width of the expected calibration error, unless told otherwise."""


def fit_logistic(
    values: Sequence[Sequence[float]], right: Sequence[bool], *, ridge: float = 1.0, rounds: int = 50
) -> tuple[float, ...]:
    """Return the bias and the weights of the logistic function nearest to the outcomes, to six decimals.

    `values` has the evidence of each row. Newton's method on standardised evidence, with a small ridge on the weights
    so that few or clear-cut rows give no infinite ones.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if x.ndim != 2 or len(x) != len(y) or not len(y):
        raise InputError(f"calibration: expected an outcome per row, found {len(values)} rows, {len(right)} outcomes")
    if not np.isfinite(x).all():
        raise InputError("calibration: expected finite scores, found others")
    mean, spread = x.mean(0), np.maximum(x.std(0), 1e-9)
    design = np.column_stack([np.ones(len(y)), (x - mean) / spread])
    penalty = np.diag([1e-6, *[ridge] * x.shape[1]])
    weights = np.zeros(design.shape[1])
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (y - chance) - penalty @ weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    own = weights[1:] / spread
    return tuple(round(float(value), 6) for value in (weights[0] - own @ mean, *own))


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool], *, bins: int = BINS) -> float:
    """Return the mean gap between confidence and share of right rows, over bins of equal width by their rows."""
    return float(
        sum(part.share * abs(part.confidence - part.accuracy) for part in reliability(confidences, right, bins=bins))
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows of one range of confidence."""

    low: float
    high: float
    share: float
    confidence: float
    accuracy: float


def reliability(confidences: Sequence[float], right: Sequence[bool], *, bins: int = BINS) -> list[Bin]:
    """Return the reliability diagram: a bin for each range of confidence that has rows."""
    x, y = _checked(confidences, right)
    edges = np.linspace(0, 1, bins + 1)
    numbers = np.clip(np.digitize(x, edges[1:-1]), 0, bins - 1)
    filled = []
    for k in range(bins):
        chosen = numbers == k
        if chosen.any():
            share, confidence, accuracy = float(chosen.mean()), float(x[chosen].mean()), float(y[chosen].mean())
            filled.append(Bin(float(edges[k]), float(edges[k + 1]), share, confidence, accuracy))
    return filled


class RiskPoint(NamedTuple):
    """Coverage and risk if all rows from some confidence up are answered."""

    confidence: float
    coverage: float
    """Share of the rows that are answered."""
    risk: float
    """Share of wrong rewrites among them."""


def risk_coverage(confidences: Sequence[float], right: Sequence[bool]) -> list[RiskPoint]:
    """Return a point for each confidence that occurs, the highest first."""
    x, y = _checked(confidences, right)
    order = np.argsort(-x, kind="stable")
    x, wrong = x[order], np.cumsum(1 - y[order])
    last = np.flatnonzero(np.append(np.diff(x) != 0, True))  # rows of equal confidence are answered together
    return [RiskPoint(float(x[k]), (int(k) + 1) / len(x), float(wrong[k]) / (int(k) + 1)) for k in last]


def area_under_risk(points: Sequence[RiskPoint]) -> float:
    """Return the mean risk over all coverages, each row counted with the risk at the point that first answers it."""
    reached, area = 0.0, 0.0
    for point in points:
        area += (point.coverage - reached) * point.risk
        reached = point.coverage
    return area


def _checked(values: Sequence[float], outcomes: Sequence[bool]) -> tuple[Floats, Floats]:
    if len(values) != len(outcomes):
        raise InputError(
            f"calibration: expected an outcome per row, found {len(values)} rows, {len(outcomes)} outcomes"
        )
    if not len(values):
        raise InputError("calibration: expected at least one row, found none")
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        raise InputError("calibration: expected finite scores, found others")
    return x, np.asarray(outcomes, dtype=np.float64)
