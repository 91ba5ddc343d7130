"""Measures of rankings: MRR, recall@10, NDCG@3, with intervals, paired tests and what a rewrite did to each query."""

from __future__ import annotations

import math
from collections.abc import Collection as Indices
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from teo.metrics.base import FloatArray, Interval
from teo.metrics.significance import Difference, bootstrap_intervals, compare_paired

MEASURES = ("mrr", "recall@10", "ndcg@3")


@dataclass(frozen=True, slots=True)
class SystemMeasures:
    """What a system's queries find: each measure, its 95% interval, and how it differs from the raw utterance."""

    values: dict[str, float]
    intervals: dict[str, Interval]
    against_raw: dict[str, Difference]
    """This system minus the raw utterance; empty for the raw utterance itself."""
    effect: Effect | None
    """None for the raw utterance itself."""

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome, ready for JSON."""
        return {
            **self.values,
            "intervals": {name: [part.low, part.high] for name, part in self.intervals.items()},
            "against_raw": {name: asdict(part) for name, part in self.against_raw.items()},
            "effect": None if self.effect is None else asdict(self.effect),
        }


@dataclass(frozen=True, slots=True)
class Effect:
    """Shares of queries whose first relevant document ranks higher, lower or the same as with the raw utterance."""

    better: float
    worse: float
    same: float


def measure_ranking(ranking: Sequence[int], relevant: Indices[int]) -> tuple[float, float, float]:
    """Return reciprocal rank, recall@10 and NDCG@3 of a ranking; relevance is yes or no."""
    ranks = [rank for rank, index in enumerate(ranking, start=1) if index in relevant]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 3)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(3, len(relevant)) + 1))
    return (1 / ranks[0] if ranks else 0.0), sum(rank <= 10 for rank in ranks) / len(relevant), gain / ideal


def measure_rankings(rankings: Sequence[Sequence[int]], relevant: Sequence[Indices[int]]) -> FloatArray:
    """Return a line of measures for each query, in the order of `MEASURES`."""
    rows = [measure_ranking(ranking, found) for ranking, found in zip(rankings, relevant, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(MEASURES))


def summarise_measures(measured: FloatArray, raw: FloatArray | None) -> SystemMeasures:
    """Return what a system's queries find on the whole, beside the raw utterances if these are another system."""
    statistics = _with_count(measured)
    means, intervals = _mean(statistics.sum(axis=0)), bootstrap_intervals(statistics, _mean)
    compared = [] if raw is None else compare_paired(_with_count(raw), statistics, _mean)
    return SystemMeasures(
        {name: float(value) for name, value in zip(MEASURES, means, strict=True)},
        {name: part for name, part in zip(MEASURES, intervals, strict=True) if part is not None},
        {
            name: part
            for name, part in zip(MEASURES, compared or [None] * len(MEASURES), strict=True)
            if part is not None
        },
        None if raw is None else effect_of(measured, raw),
    )


def effect_of(measured: FloatArray, raw: FloatArray) -> Effect:
    """Return the shares of queries made better and worse, by their reciprocal rank."""
    gain = measured[:, 0] - raw[:, 0]
    better, worse = float((gain > 0).mean()), float((gain < 0).mean())
    return Effect(better, worse, float((gain == 0).mean()))


def _with_count(measured: FloatArray) -> FloatArray:
    return np.concatenate([measured, np.ones((len(measured), 1))], axis=1)


def _mean(sums: FloatArray) -> FloatArray:
    means: FloatArray = sums[..., :-1] / sums[..., -1:]
    return means
