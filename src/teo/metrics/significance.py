"""Bootstrap intervals of scores, and paired tests between two systems.

Everything works on per-example statistics (`Metric.collect`) and the formula on their sums (`Metric.aggregate`), with
a fixed seed: equal inputs give equal intervals and p-values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from teo.errors import InputError
from teo.metrics.base import FloatArray, Interval, Signature

SEED = 12345
RESAMPLES = 1_000
SWAPS = 10_000
_CELLS_AT_ONCE = 4_000_000
"""Draws held in memory at one time."""

Aggregate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Difference:
    """Second system minus first: the difference, its 95% interval, and the two-sided p-value."""

    value: float
    interval: Interval
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether p is below 0.05; not corrected for the number of metrics looked at."""
        return self.p < 0.05

    def __str__(self) -> str:
        return f"{self.value:+.4f} {self.interval} p={self.p:.4f}"


def bootstrap_intervals(
    statistics: FloatArray, aggregate: Aggregate, *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[Interval | None]:
    """Return the 95% interval of each score, by drawing rows with replacement; None if it is undefined."""
    if not len(statistics):
        return [None] * len(aggregate(statistics.sum(axis=0)))
    return _intervals(aggregate(_resample(statistics, resamples, seed)))


def compare_paired(
    first: FloatArray,
    second: FloatArray,
    aggregate: Aggregate,
    *,
    resamples: int = RESAMPLES,
    swaps: int = SWAPS,
    seed: int = SEED,
) -> list[Difference | None]:
    """Return second - first for each score, None if one of the two is undefined.

    The interval is that of the paired bootstrap (both systems on the same drawn rows); p is that of approximate
    randomisation, two-sided: how often exchanging the systems' outputs at random gives a difference as large. An
    exchange that leaves a score undefined counts as one as large, so that it never makes a difference look surer.
    """
    if first.shape != second.shape:
        raise InputError(
            f"paired test: expected statistics of the same rows, found {len(first)} rows and {len(second)} rows"
        )
    observed = aggregate(second.sum(axis=0)) - aggregate(first.sum(axis=0))
    if not len(first):
        return [None] * len(observed)
    both = _resample(np.concatenate([first, second], axis=1), resamples, seed)
    width = first.shape[1]
    intervals = _intervals(aggregate(both[:, width:]) - aggregate(both[:, :width]))
    chances = _randomise(first, second, aggregate, swaps=swaps, seed=seed)
    return [
        None if interval is None or np.isnan(value) else Difference(float(value), interval, float(p))
        for value, interval, p in zip(observed, intervals, chances, strict=True)
    ]


def bootstrap_signature(resamples: int = RESAMPLES, seed: int = SEED) -> Signature:
    """Return the signature of the intervals."""
    return Signature("interval", (("level", "95%"), ("bootstrap", str(resamples)), ("seed", str(seed))))


def paired_signature(resamples: int = RESAMPLES, swaps: int = SWAPS, seed: int = SEED) -> Signature:
    """Return the signature of the paired comparison."""
    settings = (
        ("interval", f"paired-bootstrap-{resamples}"),
        ("p", f"approximate-randomisation-{swaps}"),
        ("sides", "2"),
        ("corrected", "no"),
        ("seed", str(seed)),
    )
    return Signature("paired", settings)


def _resample(statistics: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Return the sums of each sample of rows: count matrix (samples x rows) @ statistics."""
    rows, generator = len(statistics), np.random.default_rng(seed)
    sums = []
    for count in _chunks(resamples, rows):
        drawn = generator.integers(0, rows, size=(count, rows)) + np.arange(count)[:, None] * rows
        times = np.bincount(drawn.ravel(), minlength=count * rows).reshape(count, rows)
        sums.append(times.astype(np.float64) @ statistics)
    return np.concatenate(sums)


def _randomise(first: FloatArray, second: FloatArray, aggregate: Aggregate, *, swaps: int, seed: int) -> FloatArray:
    """Return the two-sided p-value of each difference; the labelling as it is counts as one of the swaps."""
    generator = np.random.default_rng(seed)
    gain = second - first
    first_sums, second_sums = first.sum(axis=0), second.sum(axis=0)
    observed = aggregate(second_sums) - aggregate(first_sums)
    as_large = np.ones(len(observed))
    for count in _chunks(swaps, len(first)):
        swapped = generator.integers(0, 2, size=(count, len(first)), dtype=np.int8).astype(np.float64) @ gain
        difference = aggregate(second_sums - swapped) - aggregate(first_sums + swapped)
        # a hair of tolerance: sums in another order differ in the last bit
        as_large += (~(np.abs(difference) < np.abs(observed) - 1e-12)).sum(axis=0)  # NaN is not smaller
    return as_large / (swaps + 1)


def _intervals(samples: FloatArray) -> list[Interval | None]:
    intervals: list[Interval | None] = []
    for column in samples.T:
        defined = column[~np.isnan(column)]  # a small group may be missing from a sample
        if len(defined):
            low, high = np.percentile(defined, [2.5, 97.5])
            intervals.append(Interval(float(low), float(high)))
        else:
            intervals.append(None)
    return intervals


def _chunks(total: int, width: int) -> Iterator[int]:
    """Yield counts that sum to the total, each small enough to hold `count * width` draws."""
    size = max(1, _CELLS_AT_ONCE // max(1, width))
    while total > 0:
        yield min(size, total)
        total -= size
