"""Base classes of the metrics: ScoredExample, Signature, Score, Metric, Suite.

A `Metric` turns an example into a few statistics, and sums of statistics into its scores. Because every score is a
function of sums, bootstrap intervals and paired tests (`teo.metrics.significance`) need nothing from the metric.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teo.version import __version__

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoredExample:
    """A scored row in units: the utterance as given, the reference rewrite and the system's rewrite."""

    current: tuple[str, ...]
    reference: tuple[str, ...]
    prediction: tuple[str, ...]
    references: tuple[tuple[str, ...], ...] = ()
    """Other rewrites that are accepted too: EM counts a match with any, the other metrics use `reference` alone."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a score is computed: which definition, on which units, with which settings."""

    metric: str
    settings: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        settings = (*self.settings, ("version", f"teo-{__version__}"))
        return "|".join([self.metric, *(f"{name}:{value}" for name, value in settings)])


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95% interval."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, slots=True)
class Score:
    """A named score as a fraction; `value` is None if its denominator is zero."""

    name: str
    value: float | None
    signature: Signature
    interval: Interval | None = None

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.4f}"
        interval = "" if self.interval is None else f" {self.interval}"
        return f"{self.name} = {value}{interval} ({self.signature})"


class Metric(ABC):
    """Scores that are computed from the same statistics of each example."""

    names: tuple[str, ...]
    """The names of its scores, in the order of `aggregate`."""
    size: int
    """How many statistics an example has."""

    @abstractmethod
    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return what an example adds to the sums."""

    @abstractmethod
    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return the scores for sums of statistics (last axis); NaN if the denominator is zero."""

    @abstractmethod
    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signature of each score, given the name of the units it is counted in."""

    def collect(self, examples: Iterable[ScoredExample]) -> FloatArray:
        """Return the statistics of all examples, one row each: an array of shape (examples, size)."""
        rows = [self.statistics(example) for example in examples]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.size)

    def score(self, sums: FloatArray, units: str) -> tuple[Score, ...]:
        """Return the scores for sums of statistics, each with its signature."""
        triples = zip(self.names, self.aggregate(sums).tolist(), self.signatures(units), strict=True)
        return tuple(Score(name, None if math.isnan(value) else value, signed) for name, value, signed in triples)


class Suite(Metric):
    """Several metrics as one, so that they share a pass over the rows, the resampling and the table."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = tuple(metrics)
        self.names = tuple(name for metric in metrics for name in metric.names)
        self.size = sum(metric.size for metric in metrics)

    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return the statistics of all metrics, one after the other."""
        return tuple(value for metric in self.metrics for value in metric.statistics(example))

    def split(self, sums: FloatArray) -> list[FloatArray]:
        """Return the sums that belong to each metric."""
        ends = np.cumsum([metric.size for metric in self.metrics])
        return np.split(sums, ends[:-1], axis=-1)

    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return the scores of all metrics, one after the other."""
        parts = zip(self.metrics, self.split(sums), strict=True)
        return np.concatenate([metric.aggregate(part) for metric, part in parts], axis=-1)

    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signatures of all metrics, one after the other."""
        return tuple(signature for metric in self.metrics for signature in metric.signatures(units))


def divide(part: FloatArray, whole: FloatArray, otherwise: float) -> FloatArray:
    """Return part / whole, and `otherwise` if the whole is zero."""
    result = np.full(np.broadcast(part, whole).shape, otherwise, dtype=np.float64)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def ngrams(units: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return the n-grams of a sequence in order; none if it is shorter than n."""
    return list(zip(*(units[k:] for k in range(n)), strict=False))  # the shortest tail ends the last n-gram


def units_or_blank(units: tuple[str, ...]) -> tuple[str, ...]:
    """Return the units as the scorer of the RUN paper has them for BLEU and restoration: no text is one blank unit."""
    return units or ("",)
