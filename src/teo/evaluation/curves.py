"""What confidences are worth, and how they are fitted: isotonic curves, reliability, risk and coverage, thresholds.

A curve is fitted on development rows: for each row the score that the pipeline gave its own rewrite, and whether that
rewrite was right. The fit never decreases: a text that the model finds more probable never gets less confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from teo.abstain import DECIMALS, Calibration
from teo.errors import InputError

Floats = NDArray[np.float64]

BINS = 15
"""Bins of equal width of the expected calibration error, unless told otherwise."""
_STEPS: int = 10**DECIMALS


def fit_isotonic(
    scores: Sequence[float], right: Sequence[bool], *, least: int = 20, rest_weight: float = 1.0
) -> Calibration:
    """Return the non-decreasing curve nearest to the outcomes: pooled neighbours, joined by straight lines.

    Rows are first put in groups of at least `least` neighbours, so that no single row moves the curve. Between the
    centres of pools the curve rises, so that a threshold can part rows of one pool.
    """
    x, y = _checked(scores, right)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    cuts = _group_starts(x, least)
    weights = np.diff([*cuts, len(x)]).astype(np.float64)
    pools = _pool(np.add.reduceat(x, cuts) / weights, np.add.reduceat(y, cuts) / weights, weights)
    centres, means = tuple(centre for centre, _ in pools), tuple(round(mean, 6) for _, mean in pools)
    return Calibration(centres, means, rest_weight)


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
    """What answering from a confidence on comes to."""

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
    """Return the mean risk over all coverages, each row counted with the risk at which it comes to be answered."""
    reached, area = 0.0, 0.0
    for point in points:
        area += (point.coverage - reached) * point.risk
        reached = point.coverage
    return area


def choose_threshold(confidences: Sequence[float], harmful: Sequence[bool], *, share: float) -> float:
    """Return the least threshold at which at most `share` of the rows are harmed.

    Of each row: the confidence of the pipeline's own rewrite, and whether that rewrite does harm (it changes a complete
    utterance, or makes an incomplete one wrong). A rewrite below the threshold is not made.
    """
    if not 0 <= share <= 1:
        raise InputError(f"share: expected 0 to 1, found {share}")
    x, y = _checked(confidences, harmful)
    allowed = int(share * len(x) + 1e-9)
    falling = np.sort(x[y > 0])[::-1]
    if len(falling) <= allowed:
        return 0.0
    # All of this confidence must go, or more than `allowed` stay: the threshold is the next number above it.
    return float(math.floor(falling[allowed] * _STEPS + 1e-6) + 1) / _STEPS


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


def _group_starts(x: Floats, least: int) -> NDArray[np.int64]:
    """Return where groups of at least `least` rows start; rows of equal score are never parted."""
    starts = [0]
    for k in range(1, len(x)):
        if k - starts[-1] >= least and x[k] != x[k - 1] and len(x) - k >= least:
            starts.append(k)
    return np.array(starts, dtype=np.int64)


def _pool(centres: Floats, means: Floats, weights: Floats) -> list[tuple[float, float]]:
    """Return the centre and the mean of each pool: neighbours whose means do not rise are averaged until all do."""
    pools: list[tuple[float, float, float]] = []
    for group in zip(centres.tolist(), means.tolist(), weights.tolist(), strict=True):
        pools.append(group)
        while len(pools) > 1 and pools[-2][1] >= pools[-1][1]:
            (left, low, light), (right, high, heavy) = pools[-2:]
            total = light + heavy
            pools[-2:] = [((left * light + right * heavy) / total, (low * light + high * heavy) / total, total)]
    return [(centre, mean) for centre, mean, _ in pools]
