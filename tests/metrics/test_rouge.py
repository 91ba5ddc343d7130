import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.metrics.base import ScoredExample
from teo.metrics.rouge import Rouge, common_words, split_sentences

CAT = "the cat sat on the mat"

# (reason, reference, prediction, F of ROUGE-1, ROUGE-2, ROUGE-L 0.3.2, ROUGE-L 1.0.1 as the packages give them)
TABLE = [
    (
        "an exact row is 1 but for the packages' epsilon",
        CAT,
        CAT,
        0.999999995,
        0.999999995,
        0.9999999999995,
        0.999999995,
    ),
    (
        "order counts in bigrams and subsequence",
        CAT,
        "on the mat the cat sat",
        0.999999995,
        0.799999995,
        0.6,
        0.599999995,
    ),
    ("sentences are matched one by one", "the cat sat . it ran .", "it ran . the cat sat", 1.0, 0.749999995, 1.0, 1.0),
    (
        "a number with a point is two sentences",
        "a price of 3.5 pounds",
        "a price of 3 pounds",
        0.9090909041322315,
        0.6666666617283951,
        0.894428152492368,
        0.9090909041322315,
    ),
    (
        "white space between two points is a blank word",
        "a b . . c",
        "a b . c",
        0.8571428522448981,
        0.39999999520000007,
        0.8241758241756372,
        0.8571428522448981,
    ),
    ("one word has no bigram: ROUGE-2 is 0 for an exact row", "yes", "yes", 1.0, 0.0, 1.0, 1.0),
    (
        "an empty prediction is hello",
        "hello there",
        "",
        0.6666666622222223,
        0.0,
        0.5555555555556296,
        0.6666666622222223,
    ),
    ("versions differ where P and R do", "a b c d e f", "a c e b d f g", 0.9230769181, 0.0, 0.60822898, 0.61538461),
    ("among equal subsequences the peer's is a b", "a a b", "a b a", 1.0, 0.499999995, 1.0, 1.0),
    ("among equal subsequences the peer's is a a", "a b a", "a a b", 1.0, 0.499999995, 0.4999999999995, 0.499999995),
    ("nothing in common", "the cat", "dogs bark", 0.0, 0.0, 0.0, 0.0),
]


def _statistics(reference, prediction):
    return Rouge().statistics(ScoredExample((), tuple(reference.split()), tuple(prediction.split())))


@pytest.mark.parametrize(
    ("reference", "prediction", "expected"),
    [(row[1], row[2], row[3:]) for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_equals_the_package_rouge(reference, prediction, expected):
    assert _statistics(reference, prediction)[:4] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("reference", "prediction", "expected"),
    [("", "", 1.0), (".", "", 1.0), ("", "the cat", 0.0), ("the cat", ".", 0.0), (". .", ".", 0.0)],
)
def test_texts_that_the_package_refuses_count_as_hello(reference, prediction, expected):
    assert _statistics(reference, prediction)[0] == pytest.approx(expected, abs=1e-8)


def test_the_score_is_the_mean_over_rows():
    metric = Rouge()
    rows = metric.collect([ScoredExample((), ("a", "b"), ("a", "b")), ScoredExample((), ("a", "b"), ("c",))])
    assert metric.aggregate(rows.sum(axis=0)) == pytest.approx([0.5, 0.5, 0.5, 0.5], abs=1e-8)


def test_signatures_name_the_version():
    recipes = [str(one) for one in Rouge().signatures("teo")]
    assert ["as:rouge-0.3.2" in recipe for recipe in recipes] == [True, True, True, False]
    assert "as:rouge-1.0.1" in recipes[3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", [["a", "b"]]),
        ("a b .", [["a", "b"]]),
        (". a . b", [["a"], ["b"]]),
        ("a . . b", [["a"], [""], ["b"]]),
        ("p.m.", [["p"], ["m"]]),
        ("", [["hello"]]),
        ("...", [["hello"]]),
    ],
)
def test_split_sentences(text, expected):
    assert split_sentences(text.split()) == expected


def _longest(a, b):
    """The length of a longest common subsequence, by trying every subsequence of the shorter."""
    for size in range(min(len(a), len(b)), 0, -1):
        subsequences = set(itertools.combinations(b, size))
        if any(one in subsequences for one in itertools.combinations(a, size)):
            return size
    return 0


@settings(deadline=None)
@given(st.permutations("abcdef"), st.lists(st.sampled_from("abcdefgh"), max_size=7))
def test_common_words_has_the_length_of_the_longest_subsequence(reference, prediction):
    # the reference repeats nothing, so the set of words is as large as the subsequence is long
    assert len(common_words(reference, prediction)) == _longest(reference, prediction)


words = st.lists(st.sampled_from(["a", "b", "c", ".", "3.5"]), max_size=9).map(tuple)


@settings(deadline=None)
@given(words, words)
def test_f_lies_between_0_and_1_and_rouge_1_is_symmetric(one, other):
    found = Rouge().statistics(ScoredExample((), one, other))
    assert all(0.0 <= value <= 1.0 for value in found)
    assert found[0] == pytest.approx(Rouge().statistics(ScoredExample((), other, one))[0])


@settings(deadline=None)
@given(words.filter(lambda units: "." not in units and len(units) > 1))
def test_an_exact_row_scores_1(units):
    assert Rouge().statistics(ScoredExample((), units, units)) == pytest.approx((1.0,) * 5, abs=1e-7)
