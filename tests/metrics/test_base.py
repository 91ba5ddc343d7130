import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo import __version__
from teo.metrics.base import Interval, Score, ScoredExample, Signature, Suite, divide, ngrams, units_or_blank
from teo.metrics.bleu import Bleu
from teo.metrics.exact_match import ExactMatch
from teo.metrics.scorer import make_suite

SIGNATURE = Signature("EM", (("units", "teo"),))


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (Score("em", 0.5, SIGNATURE), f"em = 0.5000 (EM|units:teo|version:teo-{__version__})"),
        (Score("em", None, SIGNATURE), f"em = - (EM|units:teo|version:teo-{__version__})"),
        (
            Score("em", 0.5, SIGNATURE, Interval(0.4, 0.61239)),
            f"em = 0.5000 [0.4000, 0.6124] (EM|units:teo|version:teo-{__version__})",
        ),
    ],
)
def test_a_score_prints_itself_with_its_recipe(score, expected):
    assert str(score) == expected


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, [("a",), ("b",), ("a",)]), (2, [("a", "b"), ("b", "a")]), (3, [("a", "b", "a")]), (4, [])],
)
def test_ngrams(n, expected):
    assert ngrams(("a", "b", "a"), n) == expected


def test_units_or_blank():
    assert units_or_blank(()) == ("",)
    assert units_or_blank(("a",)) == ("a",)


def test_divide_gives_the_stated_value_for_an_empty_whole():
    found = divide(np.array([1.0, 0.0]), np.array([4.0, 0.0]), otherwise=-1.0)
    assert found.tolist() == [0.25, -1.0]


def test_a_suite_is_its_metrics_side_by_side():
    examples = [ScoredExample(("a",), ("a", "b"), ("a", "b")), ScoredExample(("a",), ("a", "b"), ("a",))]
    suite = Suite([ExactMatch(), Bleu()])
    sums = suite.collect(examples).sum(axis=0)
    alone = [metric.aggregate(metric.collect(examples).sum(axis=0)) for metric in (ExactMatch(), Bleu())]
    assert suite.names == ("em", "bleu1", "bleu2", "bleu3", "bleu4")
    assert suite.aggregate(sums) == pytest.approx(np.concatenate(alone))
    assert [one.signature.metric for one in suite.score(sums, "teo")] == ["EM", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]


def test_statistics_of_no_examples_have_the_shape_of_a_table():
    suite = make_suite()
    statistics = suite.collect([])
    assert statistics.shape == (0, suite.size)
    scores = {score.name: score.value for score in suite.score(statistics.sum(axis=0), "teo")}
    assert [scores[name] for name in ("em", "bleu1", "bleu4", "rouge1", "em_complete")] == [None] * 5


units = st.lists(st.sampled_from(["a", "b", "c", ".", "好"]), max_size=6).map(tuple)


@settings(deadline=None)
@given(
    st.lists(st.tuples(units, units, units).map(lambda three: ScoredExample(*three)), min_size=2, max_size=6),
    st.randoms(),
)
def test_every_number_is_one_per_name_and_does_not_depend_on_the_order_of_rows(examples, random):
    suite = make_suite()
    statistics = suite.collect(examples)
    assert statistics.shape == (len(examples), suite.size)
    shuffled = list(examples)
    random.shuffle(shuffled)
    one, other = (suite.aggregate(rows.sum(axis=0)) for rows in (statistics, suite.collect(shuffled)))
    assert one.shape == (len(suite.names),)
    assert one == pytest.approx(other, nan_ok=True)
    doubled = suite.aggregate(2 * statistics.sum(axis=0))  # every number is a ratio: each row twice changes nothing
    assert one == pytest.approx(doubled, nan_ok=True)
