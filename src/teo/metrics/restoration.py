"""Restoration: precision, recall and F on the n-grams that the rewrite brings back, by the field's two definitions.

`run` (RUN, Liu et al. 2020): n-grams with at least one unit that the current utterance does not have; rows whose
reference restores nothing are left out. `pan` (Pan et al. 2019, as in SARG's code): n-grams that the current
utterance does not have; no row is left out. Both count sets per row and sum the counts over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from teo.metrics.base import FloatArray, Metric, ScoredExample, Signature, divide, ngrams, units_or_blank

Definition = Literal["run", "pan"]
ORDERS = (1, 2, 3)


class Restoration(Metric):
    """Restoration P, R and F for n = 1, 2, 3 by one definition; 0 if nothing was restored."""

    size = 3 * len(ORDERS)

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.names = tuple(f"{definition}_{part}{n}" for n in ORDERS for part in "prf")

    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return, for each n, the restored n-grams that match, that were predicted and that were expected."""
        if self.definition == "run":
            return _run_statistics(example)
        return _pan_statistics(example)

    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return P, R and F for each n."""
        scores = []
        for k in range(0, self.size, 3):
            matched, predicted, expected = sums[..., k], sums[..., k + 1], sums[..., k + 2]
            # F from the counts is the harmonic mean of P and R, without their rounding
            scores += [
                divide(matched, predicted, otherwise=0.0),
                divide(matched, expected, otherwise=0.0),
                divide(2.0 * matched, predicted + expected, otherwise=0.0),
            ]
        return np.stack(scores, axis=-1)

    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signature of this definition, for each score."""
        named = {
            "run": ("any-new-unit", "left-out", "blank-unit", "RUN"),
            "pan": ("new-ngram", "counted", "nothing", "SARG"),
        }
        restored, complete, empty, like = named[self.definition]
        settings = (
            ("units", units),
            ("case", "lower"),
            ("refs", "1"),
            ("n", "1-3"),
            ("restored", restored),
            ("nothing-to-restore", complete),
            ("counts", "sets"),
            ("average", "micro"),
            ("empty", empty),
            ("as", like),
        )
        return (Signature(f"restoration-{self.definition}", settings),) * len(self.names)


def _run_statistics(example: ScoredExample) -> tuple[float, ...]:
    known = set(units_or_blank(example.current))
    prediction, reference = units_or_blank(example.prediction), units_or_blank(example.reference)
    if known.issuperset(reference):
        return (0.0,) * Restoration.size

    def restored(units: Sequence[str], n: int) -> set[tuple[str, ...]]:
        return {gram for gram in ngrams(units, n) if not known.issuperset(gram)}

    counts: list[float] = []
    for n in ORDERS:
        counts += _count(restored(prediction, n), restored(reference, n))
    return tuple(counts)


def _pan_statistics(example: ScoredExample) -> tuple[float, ...]:
    counts: list[float] = []
    for n in ORDERS:
        known = set(ngrams(example.current, n))
        counts += _count(set(ngrams(example.prediction, n)) - known, set(ngrams(example.reference, n)) - known)
    return tuple(counts)


def _count(predicted: set[tuple[str, ...]], expected: set[tuple[str, ...]]) -> tuple[float, float, float]:
    return float(len(predicted & expected)), float(len(predicted)), float(len(expected))
