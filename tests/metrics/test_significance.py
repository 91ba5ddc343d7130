import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.errors import InputError
from teo.metrics import significance
from teo.metrics.base import Interval
from teo.metrics.exact_match import ExactMatch
from teo.metrics.scorer import make_suite
from teo.metrics.significance import (
    Difference,
    bootstrap_intervals,
    bootstrap_signature,
    compare_paired,
    paired_signature,
)

EM = ExactMatch().aggregate


def _rows(right, total):
    """Statistics of exact match: the first `right` rows of `total` are right."""
    return np.column_stack([np.arange(total) < right, np.ones(total)]).astype(float)


def test_interval_is_that_of_a_binomial_share():
    (interval,) = bootstrap_intervals(_rows(300, 500), EM, resamples=4000)
    spread = 1.96 * (0.6 * 0.4 / 500) ** 0.5
    assert interval.low == pytest.approx(0.6 - spread, abs=0.006)
    assert interval.high == pytest.approx(0.6 + spread, abs=0.006)


def test_interval_has_no_width_where_all_rows_are_alike():
    assert bootstrap_intervals(_rows(50, 50), EM) == [Interval(1.0, 1.0)]


def test_equal_inputs_give_equal_intervals_and_the_seed_matters():
    rows = _rows(30, 70)
    assert bootstrap_intervals(rows, EM) == bootstrap_intervals(rows, EM)
    assert bootstrap_intervals(rows, EM, seed=1, resamples=99) != bootstrap_intervals(rows, EM, seed=2, resamples=99)


def test_an_undefined_number_has_no_interval():
    assert bootstrap_intervals(np.zeros((5, 2)), EM) == [None]


def test_a_group_missing_from_some_samples_is_left_out_of_them():
    rows = np.zeros((10, 2))
    rows[0] = (1.0, 1.0)  # one row of the group among ten: about a third of the samples miss it
    assert bootstrap_intervals(rows, EM) == [Interval(1.0, 1.0)]


def test_drawing_in_chunks_keeps_the_size_of_every_sample(monkeypatch):
    monkeypatch.setattr(significance, "_CELLS_AT_ONCE", 7 * 40)
    totals = []
    bootstrap_intervals(_rows(20, 40), lambda sums: totals.append(sums) or sums[..., :1], resamples=50)
    assert totals[0].shape == (50, 2)
    assert set(totals[0][:, 1]) == {40.0}
    assert 15 < totals[0][:, 0].mean() < 25


def test_p_equals_the_sign_test_where_it_can_be_counted():
    # 10 rows differ, 9 of them in favour of the second: two-sided, (1 + 10) * 2 / 2**10
    first, second = _rows(1, 40), np.roll(_rows(9, 40), 1, axis=0)
    (found,) = compare_paired(first, second, EM, swaps=40_000)
    assert found.value == pytest.approx(8 / 40)
    assert found.p == pytest.approx(22 / 1024, abs=0.003)
    assert found.is_significant
    assert found.interval.low < found.value < found.interval.high


def test_the_same_system_twice_differs_by_nothing_with_p_1():
    (found,) = compare_paired(_rows(20, 60), _rows(20, 60), EM)
    assert found == Difference(0.0, Interval(0.0, 0.0), 1.0)
    assert not found.is_significant


def test_pairing_sees_what_two_separate_intervals_do_not():
    first, second = _rows(100, 200), _rows(110, 200)  # ten rows better, none worse
    (found,) = compare_paired(first, second, EM)
    (one,), (other,) = bootstrap_intervals(first, EM), bootstrap_intervals(second, EM)
    assert one.high > other.low
    assert found.interval.low > 0.0 and found.p < 0.01


def test_p_is_never_zero():
    (found,) = compare_paired(_rows(0, 300), _rows(300, 300), EM, swaps=100)
    assert found.p == pytest.approx(1 / 101)


def test_an_undefined_number_has_no_difference():
    assert compare_paired(np.zeros((5, 2)), np.zeros((5, 2)), EM, swaps=10) == [None]


def test_no_rows_have_no_intervals_and_no_differences():
    suite = make_suite()
    none = suite.collect([])
    assert bootstrap_intervals(none, suite.aggregate) == [None] * len(suite.names)
    assert compare_paired(none, none, suite.aggregate) == [None] * len(suite.names)


def test_a_swap_that_leaves_a_score_undefined_never_lowers_p():
    # precision: right ones of those predicted; with all predictions on the other side, there are none to count
    first = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    second = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    (found,) = compare_paired(first, second, EM)
    assert (found.value, found.p) == (0.0, 1.0)


def test_statistics_of_different_rows_are_refused():
    with pytest.raises(InputError, match=r"expected statistics of the same rows, found 3 rows and 4 rows"):
        compare_paired(_rows(1, 3), _rows(1, 4), EM)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=20))
def test_exchanging_the_systems_turns_the_difference_around(pairs):
    first, second = (
        np.column_stack([column, np.ones(len(pairs))]).astype(float) for column in zip(*pairs, strict=True)
    )
    (there,) = compare_paired(first, second, EM, resamples=50, swaps=200)
    (back,) = compare_paired(second, first, EM, resamples=50, swaps=200)
    assert there.value == pytest.approx(-back.value)
    assert there.p == pytest.approx(back.p)
    assert (there.interval.low, there.interval.high) == pytest.approx((-back.interval.high, -back.interval.low))
    assert 0.0 < there.p <= 1.0


def test_signatures_and_printing():
    assert str(bootstrap_signature()).startswith("interval|level:95%|bootstrap:1000|seed:12345|version:teo-")
    assert "|p:approximate-randomisation-10000|sides:2|corrected:no|" in str(paired_signature())
    assert str(Difference(0.1, Interval(0.05, 0.15), 0.0123)) == "+0.1000 [0.0500, 0.1500] p=0.0123"
