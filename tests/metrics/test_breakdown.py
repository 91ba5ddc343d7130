import numpy as np
import pytest

from teo.metrics.base import ScoredExample
from teo.metrics.breakdown import Breakdown, count_groups, kind_of
from teo.metrics.exact_match import ExactMatch

# (reason, current, reference, kind)
KINDS = [
    ("nothing to change", "it is he", "it is he", "complete"),
    ("words come in", "好 喝", "茶 好 喝", "insertion_only"),
    ("one word goes, another comes", "it is he", "it is ben", "replacement_only"),
    ("a pure deletion counts as a replacement", "well it is he", "it is he", "replacement_only"),
    ("the paper's example has both", "it is he who acted", "it is ben affleck who acted as batman", "both"),
    ("deletion and insertion at different places", "well it is he", "it is he too", "both"),
    ("an empty reference deletes all", "it", "", "replacement_only"),
    ("an empty utterance is filled", "", "it is", "insertion_only"),
]


def _example(current, reference, prediction=""):
    return ScoredExample(tuple(current.split()), tuple(reference.split()), tuple(prediction.split()))


@pytest.mark.parametrize(("current", "reference", "kind"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_kind_of(current, reference, kind):
    assert kind_of(_example(current, reference)) == kind


ROWS = [
    _example("a b", "a b", "a b"),  # complete, kept
    _example("a b", "a b", "a b c"),  # complete, over-rewritten
    _example("a b", "a b", ""),  # complete, over-rewritten: wiped out
    _example("a b", "a b c", "a b c"),  # insertion, right
    _example("a b", "a b c", "a b"),  # insertion, under-rewritten
    _example("a b", "a c", "a d"),  # replacement, wrong but changed
]


def test_em_per_group_and_the_two_rates():
    metric = Breakdown()
    numbers = dict(zip(metric.names, metric.aggregate(metric.collect(ROWS).sum(axis=0)).tolist(), strict=True))
    assert np.isnan(numbers.pop("em_both"))
    assert numbers == pytest.approx(
        {
            "em_complete": 1 / 3,
            "em_incomplete": 1 / 3,
            "em_insertion_only": 1 / 2,
            "em_replacement_only": 0.0,
            "over_rewrite_rate": 2 / 3,
            "under_rewrite_rate": 1 / 3,
        }
    )


def test_a_group_without_rows_has_no_score():
    metric = Breakdown()
    scores = {one.name: one.value for one in metric.score(metric.collect(ROWS[:1]).sum(axis=0), "teo")}
    assert scores["em_complete"] == 1.0 and scores["over_rewrite_rate"] == 0.0
    assert scores["em_incomplete"] is None and scores["under_rewrite_rate"] is None


def test_count_groups():
    assert count_groups(Breakdown().collect(ROWS).sum(axis=0)).tolist() == [3, 3, 2, 1, 0]


def test_exact_match_is_the_share_of_equal_rows():
    metric = ExactMatch()
    assert metric.aggregate(metric.collect(ROWS).sum(axis=0)) == pytest.approx([2 / 6])


def test_an_empty_prediction_is_right_only_for_an_empty_reference():
    metric = ExactMatch()
    assert metric.statistics(_example("a", "", "")) == (1.0, 1.0)
    assert metric.statistics(_example("a", "hello", "")) == (0.0, 1.0)


def test_signatures():
    assert str(ExactMatch().signatures("as-given")[0]).startswith("EM|units:as-given|case:lower|refs:any|version:teo-")
    assert "|deletion:replacement|" in str(Breakdown().signatures("teo")[0])
