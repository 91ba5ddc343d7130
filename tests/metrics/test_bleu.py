import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.metrics.base import ScoredExample
from teo.metrics.bleu import Bleu

CAT = "the cat sat on the mat"
TINY = 2.2250738585072014e-308

# (reason, (reference, prediction) rows, what nltk 3.9 corpus_bleu gives for BLEU-1 to BLEU-4)
TABLE = [
    ("an exact row scores 1, BLEU-3 too although its weights sum to .99", [(CAT, CAT)], [1.0, 1.0, 1.0, 1.0]),
    (
        "repeated words match as often as the reference has them; an order without a match is tiny, not zero",
        [(CAT, "the the the cat mat")],
        [0.6549846024623855, 0.3661475238303926, 1.4358354266225031e-102, 8.167155382413152e-155],
    ),
    (
        "a longer prediction has no brevity penalty",
        [(CAT, f"{CAT} today please")],
        [0.75, 0.7319250547113999, 0.7119309108013354, 0.6803749333171202],
    ),
    ("a shorter prediction is penalised", [("a b a b a b", "a b a b")], [0.6065306597126334] * 4),
    ("no common word is zero", [("the cat sat", "on a mat")], [0.0, 0.0, 0.0, 0.0]),
    ("one word has no bigram, and still one counts", [("hi", "hi")], [1.0, TINY**0.5, TINY**0.66, TINY**0.75]),
    ("an empty prediction matches nothing", [(CAT, "")], [0.0, 0.0, 0.0, 0.0]),
    (
        'sums over rows; the empty prediction is one blank unit of length one, not the word "hello"',
        [(CAT, "the cat sat on a mat"), ("yes", "yes"), ("is it hello", "")],
        [0.5841005873035536, 0.44153854132913556, 0.37266125589818955, 0.2979714705451885],
    ),
]


def _example(reference, prediction):
    return ScoredExample((), tuple(reference.split()), tuple(prediction.split()))


def _bleu(rows):
    metric = Bleu()
    return metric.aggregate(metric.collect([_example(*row) for row in rows]).sum(axis=0))


@pytest.mark.parametrize(("rows", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_equals_nltk(rows, expected):
    assert _bleu(rows) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_statistics_are_matches_counts_and_lengths():
    found = Bleu().statistics(_example(CAT, "the the cat"))
    assert found == (3, 1, 0, 0, 3, 2, 1, 1, 3, 6)


def test_aggregates_many_sums_at_once():
    metric = Bleu()
    rows = metric.collect([_example(CAT, "the cat"), _example("a b", "c d"), _example(CAT, CAT)])
    together = metric.aggregate(rows)
    assert together == pytest.approx(np.array([metric.aggregate(row) for row in rows]))


def test_signature_says_the_weights():
    recipes = [str(one) for one in Bleu().signatures("teo")]
    assert recipes[2].startswith("BLEU-3|units:teo|case:lower|refs:1|weights:0.33,0.33,0.33|smoothing:none|")
    assert len(recipes) == len(Bleu.names)


units = st.lists(st.sampled_from("abcd"), max_size=8).map(tuple)


@settings(deadline=None)
@given(st.lists(st.tuples(units, units), min_size=1, max_size=5))
def test_bleu_lies_between_0_and_1(rows):
    metric = Bleu()
    found = metric.aggregate(metric.collect([ScoredExample((), *row) for row in rows]).sum(axis=0))
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in found)


@settings(deadline=None)
@given(units, units)
def test_bleu1_is_1_only_for_the_same_bag_of_words(reference, prediction):
    metric = Bleu()
    found = metric.aggregate(np.array(metric.statistics(ScoredExample((), reference, prediction)), dtype=float))
    assert (found[0] == pytest.approx(1.0)) == (sorted(reference) == sorted(prediction))
