"""ROUGE-1, ROUGE-2 and ROUGE-L as the package `rouge` (pltrdy) gives them: F per row, then the mean.

That package counts sets, not bags; it splits text into sentences on every ".", so "3.5" is two; and its two versions
in use differ in the F of ROUGE-L: 0.3.2 weights recall by (P/R)^2, 1.0.1 takes the plain harmonic mean. A text
without a sentence, which the package refuses, counts as the word "hello", as an empty prediction does in RUN's scorer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from teo.metrics.base import FloatArray, Metric, ScoredExample, Signature, divide, ngrams

Sentence = list[str]

EMPTY_COUNTS_AS = "hello"
"""The word that RUN's scorer substitutes for an empty prediction before it calls `rouge`."""


class Rouge(Metric):
    """ROUGE-1, ROUGE-2, and ROUGE-L of both versions."""

    names = ("rouge1", "rouge2", "rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1")
    size = 5

    def statistics(self, example: ScoredExample) -> tuple[float, ...]:
        """Return the four F of the row, and one for the row."""
        prediction, reference = split_sentences(example.prediction), split_sentences(example.reference)
        predicted, expected = _join(prediction), _join(reference)
        unigrams, expected_unigrams = set(predicted), set(expected)
        common = len(unigrams) if prediction == reference else len(union_of_subsequences(prediction, reference))
        precision, recall = common / len(unigrams), common / len(expected_unigrams)
        return (
            _overlap_f(unigrams, expected_unigrams),
            _overlap_f(set(ngrams(predicted, 2)), set(ngrams(expected, 2))),
            _weighted_f(precision, recall),
            _plain_f(precision, recall),
            1.0,
        )

    def aggregate(self, sums: FloatArray) -> FloatArray:
        """Return the means over the rows."""
        return divide(sums[..., :-1], sums[..., -1:], otherwise=np.nan)

    def signatures(self, units: str) -> tuple[Signature, ...]:
        """Return the signature of each ROUGE."""
        common = (
            ("units", units),
            ("case", "lower"),
            ("refs", "1"),
            ("f", "mean-of-rows"),
            ("counts", "sets"),
            ("empty", "hello"),
        )
        versions = (("ROUGE-1", "0.3.2"), ("ROUGE-2", "0.3.2"), ("ROUGE-L", "0.3.2"), ("ROUGE-L", "1.0.1"))
        return tuple(Signature(name, (*common, ("as", f"rouge-{version}"))) for name, version in versions)


def split_sentences(units: Sequence[str]) -> list[Sentence]:
    """Return the sentences of a text, split on every "."; never none.

    White space alone between two "." is a sentence of one empty word, as in the package.
    """
    parts = " ".join(units).split(".")
    return [part.split() or [""] for part in parts if part] or [[EMPTY_COUNTS_AS]]


def union_of_subsequences(prediction: Iterable[Sentence], reference: Iterable[Sentence]) -> set[str]:
    """Return the words in any longest common subsequence of a reference sentence with a predicted one."""
    predicted = list(prediction)
    return {word for expected in reference for sentence in predicted for word in common_words(expected, sentence)}


def common_words(reference: Sequence[str], prediction: Sequence[str]) -> set[str]:
    """Return the words of a longest common subsequence: from the end, shortening the prediction first.

    Which one matters, because its words are counted as a set. The usual table of lengths is kept as one bit row per
    reference word: bit j is clear if taking prediction[j] in makes the subsequence longer.
    """
    positions: dict[str, int] = {}
    for j, word in enumerate(prediction):
        positions[word] = positions.get(word, 0) | 1 << j
    everything = (1 << len(prediction)) - 1
    row, rows = everything, []
    for word in reference:
        hits = row & positions.get(word, 0)
        row = ((row + hits) | (row - hits)) & everything
        rows.append(row)
    words = set()
    i, j = len(reference) - 1, len(prediction) - 1
    while i >= 0 and j >= 0:
        if reference[i] == prediction[j]:
            words.add(reference[i])
            i, j = i - 1, j - 1
        elif rows[i] >> j & 1:
            j -= 1
        else:
            i -= 1
    return words


def _join(sentences: Iterable[Sentence]) -> Sentence:
    return [word for sentence in sentences for word in sentence]


def _overlap_f(predicted: set[str] | set[tuple[str, ...]], expected: set[str] | set[tuple[str, ...]]) -> float:
    """Return F of two sets; the package never divides by zero: a text of one word has no bigram and scores 0."""
    shared = len(predicted & expected)
    return _plain_f(shared / len(predicted), shared / len(expected)) if shared else 0.0


def _plain_f(precision: float, recall: float) -> float:
    return 2.0 * precision * recall / (precision + recall + 1e-8)


def _weighted_f(precision: float, recall: float) -> float:
    squared = (precision / (recall + 1e-12)) ** 2
    return (1.0 + squared) * recall * precision / (recall + squared * precision + 1e-12)
