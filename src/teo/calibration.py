"""Calibration: from a model's log-probability to the chance that its rewrite is right, and when to abstain.

Fitted on a development set: for each row the score that the pipeline gave its own rewrite, and whether that rewrite
was right. The fit never decreases: a text that the model finds more probable never gets less confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teo.errors import InputError, ModelError

Floats = NDArray[np.float64]

PLACES = 4
"""Decimal places of a confidence: what a record shows is what thresholds are compared with."""
_STEPS = 10_000  # 10 ** PLACES
BINS = 15
"""Bins of equal width of the expected calibration error, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A non-decreasing curve: confidence at some log-probabilities, straight lines between them."""

    scores: tuple[float, ...]
    confidences: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.confidences):
            raise InputError(
                f"calibration: expected as many scores as confidences and at least one, found {len(self.scores)} "
                f"and {len(self.confidences)}"
            )
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        if not rising or list(self.confidences) != sorted(self.confidences):
            raise InputError("calibration: expected scores that rise and confidences that do not fall")
        if self.confidences[0] < 0 or self.confidences[-1] > 1:
            raise InputError("calibration: expected confidences from 0 to 1")

    def confidence(self, score: float) -> float:
        """Return the chance that a rewrite of this log-probability is right, to four places."""
        return round(float(np.interp(score, self.scores, self.confidences)), PLACES)

    def to_dict(self) -> dict[str, list[float]]:
        """Return the curve as `teo.json` holds it."""
        return {"scores": list(self.scores), "confidences": list(self.confidences)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Calibration:
        """Return the curve that `to_dict` gave."""
        try:
            scores, confidences = (tuple(float(one) for one in stored[key]) for key in ("scores", "confidences"))
            return cls(scores, confidences)
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise ModelError(f"teo.json: extra.calibration: not a calibration curve ({error})") from error


IDENTITY = Calibration(
    tuple(float(score) for score in np.log(np.linspace(0.001, 1.0, 1000))),
    tuple(float(share) for share in np.linspace(0.001, 1.0, 1000)),
)
"""What a model without a calibration uses: the probability that it gave its own text."""


def fit_isotonic(scores: Sequence[float], right: Sequence[bool], *, least: int = 20) -> Calibration:
    """Return the non-decreasing curve nearest to the outcomes: pooled neighbours, then joined by straight lines.

    Rows are first put in groups of at least `least` neighbours, so that no single row moves the curve.
    """
    x, y = _checked(scores, right)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    cuts = _group_starts(x, least)
    weights = np.diff([*cuts, len(x)]).astype(np.float64)
    centres = np.add.reduceat(x, cuts) / weights
    means = _pool(np.add.reduceat(y, cuts) / weights, weights)
    # Between pooled groups the curve rises in a straight line; inside a pool only its two ends are needed.
    kept = [k for k in range(len(means)) if k in (0, len(means) - 1) or not means[k - 1] == means[k] == means[k + 1]]
    return Calibration(tuple(float(centres[k]) for k in kept), tuple(round(float(means[k]), 6) for k in kept))


def fit_temperature(scores: Sequence[float], right: Sequence[bool], *, points: int = 64) -> Calibration:
    """Return the curve sigmoid(a * score + b), a >= 0, of greatest likelihood, as points joined by straight lines."""
    x, y = _checked(scores, right)
    centre, spread = float(x.mean()), float(x.std()) or 1.0
    z = (x - centre) / spread
    a, b = 1.0, 0.0
    for _ in range(100):  # Newton's method; a slight pull to zero keeps separable outcomes finite
        p = _sigmoid(a * z + b)
        slope = np.array([np.sum((p - y) * z) + 1e-3 * a, np.sum(p - y)])
        bend = p * (1 - p) + 1e-9
        curve = np.array([[np.sum(bend * z * z) + 1e-3, np.sum(bend * z)], [np.sum(bend * z), np.sum(bend)]])
        step = np.linalg.solve(curve, slope)
        a, b = max(a - float(np.clip(step[0], -2, 2)), 0.0), b - float(np.clip(step[1], -2, 2))
        if np.abs(step).max() < 1e-9:
            break
    grid = np.unique(np.quantile(x, np.linspace(0, 1, points)))
    fitted = _sigmoid(a * (grid - centre) / spread + b)
    return Calibration(tuple(map(float, grid)), tuple(round(float(one), 6) for one in fitted))


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool], *, bins: int = BINS) -> float:
    """Return the mean gap between confidence and share of right rows, over bins of equal width by their rows."""
    return float(
        sum(one.share * abs(one.confidence - one.accuracy) for one in reliability(confidences, right, bins=bins))
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
    found = []
    for k in range(bins):
        chosen = numbers == k
        if chosen.any():
            share, confidence, accuracy = float(chosen.mean()), float(x[chosen].mean()), float(y[chosen].mean())
            found.append(Bin(float(edges[k]), float(edges[k + 1]), share, confidence, accuracy))
    return found


def risk_coverage(confidences: Sequence[float], right: Sequence[bool]) -> list[tuple[float, float, float]]:
    """Return (threshold, share of rows answered, share of those wrong) for each confidence as the threshold."""
    x, y = _checked(confidences, right)
    order = np.argsort(-x, kind="stable")
    x, wrong = x[order], np.cumsum(1 - y[order])
    last = np.flatnonzero(np.append(np.diff(x) != 0, True))  # rows of equal confidence are answered together
    return [(float(x[k]), (k + 1) / len(x), float(wrong[k]) / (k + 1)) for k in last]


def choose_threshold(confidences: Sequence[float], changed: Sequence[bool], *, share: float) -> float:
    """Return the least threshold at which at most `share` of complete utterances are changed.

    Both sequences are of complete utterances only: the confidence of the pipeline's own rewrite, and whether that
    rewrite differs from the utterance. A rewrite below the threshold is not made.
    """
    if not 0 <= share <= 1:
        raise InputError(f"share: expected 0 to 1, found {share}")
    x, y = _checked(confidences, changed)
    allowed = int(share * len(x) + 1e-9)
    harmful = np.sort(x[y > 0])[::-1]
    if len(harmful) <= allowed:
        return 0.0
    # All of this confidence must go, or more than `allowed` stay: the threshold is the next number above it.
    return float(math.floor(harmful[allowed] * _STEPS + 1e-6) + 1) / _STEPS


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


def _pool(means: Floats, weights: Floats) -> Floats:
    """Return the nearest non-decreasing sequence: neighbours that fall are averaged until none does."""
    pools: list[list[float]] = []  # mean, weight, length
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        pools.append([mean, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            value, heavy, count = pools.pop()
            before = pools[-1]
            total = before[1] + heavy
            pools[-1] = [(before[0] * before[1] + value * heavy) / total, total, before[2] + count]
    return np.repeat([pool[0] for pool in pools], [int(pool[2]) for pool in pools]).astype(np.float64)


def _sigmoid(x: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-np.clip(x, -60, 60)))
    return shares
