"""Calibration: from a model's log-probability to the chance that its rewrite is right, and when to abstain.

Fitted on a development set: for each row the score that the pipeline gave its own rewrite, and whether that rewrite
was right. The fit never decreases: a text that the model finds more probable never gets less confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from teo.dialogue import Dialogue
from teo.errors import InputError, ModelError
from teo.units import holds_cjk

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
    rest_weight: float = 1.0
    """What the tokens after the first count in a score: the first one says whether to change, the rest what."""

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
        if not 0 <= self.rest_weight <= 1:
            raise InputError(f"calibration: rest_weight: expected 0 to 1, found {self.rest_weight}")

    def confidence(self, score: float) -> float:
        """Return the chance that a rewrite of this log-probability is right, to four places."""
        return round(float(np.interp(score, self.scores, self.confidences)), PLACES)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as `teo.json` holds it."""
        return {
            "scores": list(self.scores),
            "confidences": list(self.confidences),
            "rest_weight": self.rest_weight,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Calibration:
        """Return the curve that `to_dict` gave."""
        try:
            scores, confidences = (tuple(float(one) for one in stored[key]) for key in ("scores", "confidences"))
            return cls(scores, confidences, float(stored.get("rest_weight", 1.0)))
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise ModelError(f"teo.json: extra.calibration: not a calibration curve ({error})") from error


IDENTITY = Calibration(
    tuple(float(score) for score in np.log(np.linspace(0.001, 1.0, 1000))),
    tuple(float(share) for share in np.linspace(0.001, 1.0, 1000)),
)
"""What a model without a calibration uses: the probability that it gave its own text."""


LANGUAGES = ("en", "zh")
"""The languages that have thresholds of their own."""


def language_of(dialogue: Dialogue) -> str:
    """Return the language whose threshold a dialogue has: zh where any of it is in CJK script, else en."""
    return "zh" if any(map(holds_cjk, (dialogue.utterance, *dialogue.history))) else "en"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The confidences below which utterances are kept: one for each language that has its own, one for the others."""

    default: float = 0.0
    by_language: Mapping[str, float] = field(default_factory=dict)

    def of(self, dialogue: Dialogue) -> float:
        """Return the threshold of a dialogue."""
        return self.of_language(language_of(dialogue))

    def of_language(self, language: str) -> float:
        """Return the threshold of a language."""
        return self.by_language.get(language, self.default)

    def to_dict(self) -> dict[str, Any]:
        """Return the thresholds as `teo.json` holds them beside a curve."""
        return {"threshold": self.default, "thresholds": dict(self.by_language)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], default: float = 0.0) -> Thresholds:
        """Return the thresholds that `to_dict` gave; a model may have one for all languages, or none of its own."""
        try:
            by_language = {str(name): float(one) for name, one in stored.get("thresholds", {}).items()}
            return cls(float(stored.get("threshold", default)), by_language)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(f"teo.json: extra.calibration: not a threshold for each language ({error})") from error


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


class RiskPoint(NamedTuple):
    """What answering from a confidence on comes to."""

    confidence: float
    coverage: float
    """Share of the rows that are answered."""
    risk: float
    """Share of wrong ones among them."""


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


def _pool(centres: Floats, means: Floats, weights: Floats) -> list[tuple[float, float]]:
    """Return the centre and the mean of each pool: neighbours whose means do not rise are averaged until all do."""
    pools: list[tuple[float, float, float]] = []
    for one in zip(centres.tolist(), means.tolist(), weights.tolist(), strict=True):
        pools.append(one)
        while len(pools) > 1 and pools[-2][1] >= pools[-1][1]:
            (left, low, light), (right, high, heavy) = pools[-2:]
            total = light + heavy
            pools[-2:] = [((left * light + right * heavy) / total, (low * light + high * heavy) / total, total)]
    return [(centre, mean) for centre, mean, _ in pools]


def _sigmoid(x: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-np.clip(x, -60, 60)))
    return shares
