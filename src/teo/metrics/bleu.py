"""BLEU-1 to BLEU-4 over the corpus, as nltk's corpus_bleu gives them with one reference (the first) and no smoothing.

Two habits of that function change the numbers and are reproduced: a row shorter than n still adds one to the count of
its n-grams, and an order without a single match counts as the smallest positive float instead of making BLEU zero.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from teo.metrics.base import FloatArray, Metric, ScoredExample, Signature, divide, ngrams, units_or_blank

ORDERS = 4
WEIGHTS = ((1.0,), (0.5, 0.5), (0.33, 0.33, 0.33), (0.25, 0.25, 0.25, 0.25))
"""As published with RUN: those of BLEU-3 sum to 0.99."""


class Bleu(Metric):
    """Corpus BLEU with the published weights; NaN without rows. An empty text is one blank unit, as in RUN's scorer."""

    names = ("bleu1", "bleu2", "bleu3", "bleu4")
    size = 2 * ORDERS + 2

    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return the matches per order, the n-grams per order, and the lengths of prediction and reference."""
        prediction, reference = units_or_blank(example.prediction), units_or_blank(example.reference)
        orders = range(1, ORDERS + 1)
        totals = [max(1, len(prediction) - n + 1) for n in orders]
        if prediction == reference:
            matches = [max(0, len(prediction) - n + 1) for n in orders]
        else:
            matches = [_count_matches(prediction, reference, n) for n in orders]
        return (*matches, *totals, len(prediction), len(reference))

    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return BLEU-1 to BLEU-4: the weighted geometric mean of the precisions, times the brevity penalty."""
        matches, totals = sums[..., :ORDERS], sums[..., ORDERS : 2 * ORDERS]
        predicted, expected = sums[..., -2], sums[..., -1]
        logs = np.log(np.where(matches > 0, divide(matches, totals, otherwise=np.nan), sys.float_info.min))
        ratio = divide(expected, predicted, otherwise=np.nan)
        brevity = np.where(predicted > expected, 1.0, np.exp(np.minimum(0.0, 1.0 - ratio)))
        scores = [brevity * np.exp((logs[..., : len(weights)] * weights).sum(axis=-1)) for weights in WEIGHTS]
        defined = np.where(matches[..., :1] > 0, np.stack(scores, axis=-1), 0.0)
        return np.where(totals[..., :1] > 0, defined, np.nan)

    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signature of each BLEU."""
        return tuple(
            Signature(
                f"BLEU-{len(weights)}",
                (
                    ("units", units),
                    ("case", "lower"),
                    ("refs", "1"),
                    ("weights", ",".join(f"{weight:g}" for weight in weights)),
                    ("smoothing", "none"),
                    ("empty", "blank-unit"),
                    ("as", "nltk-corpus_bleu"),
                ),
            )
            for weights in WEIGHTS
        )


def _count_matches(prediction: tuple[str, ...], reference: tuple[str, ...], n: int) -> int:
    """Return how many n-grams of the prediction the reference has, each at most as often as it has it."""
    expected = Counter(ngrams(reference, n))
    return sum((Counter(ngrams(prediction, n)) & expected).values())
