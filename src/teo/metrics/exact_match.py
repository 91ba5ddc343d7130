"""Exact match: the share of rewrites that equal an accepted reference unit for unit, lower-cased."""

from __future__ import annotations

import numpy as np

from teo.metrics.base import FloatArray, Metric, ScoredExample, Signature, divide


def is_exact(example: ScoredExample) -> bool:
    """Tell whether the prediction equals the reference or another accepted rewrite."""
    return example.prediction == example.reference or example.prediction in example.references


class ExactMatch(Metric):
    """EM; an empty prediction is right only if an accepted reference is empty."""

    names = ("em",)
    size = 2

    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return whether the row is right, and one for the row."""
        return (float(is_exact(example)), 1.0)

    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return the share of right rows."""
        return divide(sums[..., :1], sums[..., 1:], otherwise=np.nan)

    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signature of EM."""
        return (Signature("EM", (("units", units), ("case", "lower"), ("refs", "any"))),)
