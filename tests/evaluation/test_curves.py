"""Curves of confidence: fits, their error, and thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.abstain import Calibration
from teo.errors import InputError
from teo.evaluation.curves import (
    area_under_risk,
    choose_threshold,
    expected_calibration_error,
    fit_isotonic,
    reliability,
    risk_coverage,
)


def overconfident(count: int = 4000) -> tuple[list[float], list[bool]]:
    """Scores whose probability is twice too sure: a text of probability p is right with chance p ** 2."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 1, count)
    return np.log(p).tolist(), (rng.uniform(size=count) < p**2).tolist()


def test_a_fit_makes_confidence_true() -> None:
    scores, right = overconfident()
    raw = [math.exp(score) for score in scores]
    fitted = fit_isotonic(scores[::2], right[::2])
    held_out = [fitted.confidence(score) for score in scores[1::2]]
    assert expected_calibration_error(raw[1::2], right[1::2]) > 0.12
    assert expected_calibration_error(held_out, right[1::2]) < 0.05
    assert fitted.confidence(math.log(0.5)) == pytest.approx(0.25, abs=0.06)


@given(
    rows=st.lists(st.tuples(st.floats(-50, 0, allow_nan=False), st.booleans()), min_size=1, max_size=80),
    score=st.floats(-100, 5),
    more=st.floats(0, 50),
)
def test_more_probable_is_never_less_confident(rows, score: float, more: float) -> None:
    fitted = fit_isotonic([value for value, _ in rows], [right for _, right in rows])
    assert 0 <= fitted.confidence(score) <= fitted.confidence(score + more) <= 1
    assert Calibration.from_dict(fitted.to_dict()) == fitted


def test_isotonic_pools_neighbours_that_fall() -> None:
    fitted = fit_isotonic([-4, -3, -2, -1], [False, True, False, True], least=1)
    assert (fitted.scores, fitted.confidences) == ((-4, -2.5, -1), (0, 0.5, 1))
    assert fitted.confidence(-3) < fitted.confidence(-2), "a threshold can part rows of one pool"
    assert fitted.confidence(-9) == 0
    assert fitted.confidence(0) == 1


def test_rows_of_one_score_share_their_confidence() -> None:
    fitted = fit_isotonic([-1.0] * 10, [True] * 7 + [False] * 3)
    assert fitted.confidence(-1.0) == fitted.confidence(-5) == 0.7


def test_calibration_error_by_hand() -> None:
    confidences, right = [0.05, 0.95, 0.95, 0.95], [False, True, True, False]
    assert expected_calibration_error(confidences, right, bins=10) == pytest.approx(0.25 * 0.05 + 0.75 * (0.95 - 2 / 3))
    bins = reliability(confidences, right, bins=10)
    assert [(part.low, part.share, round(part.accuracy, 3)) for part in bins] == [(0.0, 0.25, 0.0), (0.9, 0.75, 0.667)]
    assert expected_calibration_error([1.0, 0.0], [True, False]) == 0


def test_risk_and_coverage_by_hand() -> None:
    curve = risk_coverage([0.9, 0.8, 0.8, 0.1], [True, False, True, False])
    assert curve == [(0.9, 0.25, 0.0), (0.8, 0.75, pytest.approx(1 / 3)), (0.1, 1.0, 0.5)]


@pytest.mark.parametrize(
    ("confidences", "right", "area", "why"),
    [
        (
            [0.9, 0.8, 0.8, 0.1],
            [True, False, True, False],
            0.25 * 0 + 0.5 / 3 + 0.25 / 2,
            "equals are answered together",
        ),
        ([0.9, 0.8, 0.7, 0.6], [True, True, False, False], (0 + 0 + 1 / 3 + 2 / 4) / 4, "in the best order"),
        ([0.6, 0.7, 0.8, 0.9], [True, True, False, False], (1 + 1 + 2 / 3 + 2 / 4) / 4, "in the worst order"),
        ([0.5, 0.5], [True, False], 0.5, "no order at all: the share of wrong rows"),
        ([0.5], [True], 0.0, "nothing wrong"),
    ],
)
def test_area_under_risk_by_hand(confidences, right, area: float, why: str) -> None:
    assert area_under_risk(risk_coverage(confidences, right)) == pytest.approx(area), why


@pytest.mark.parametrize(
    ("confidences", "changed", "share", "threshold", "why"),
    [
        ([0.9, 0.8, 0.7, 0.6], [True, True, False, True], 0.25, 0.8001, "one change may stay: the surest"),
        ([0.9, 0.8, 0.7, 0.6], [True, True, False, True], 1.0, 0.0, "all may stay"),
        ([0.9, 0.8, 0.7, 0.6], [False] * 4, 0.0, 0.0, "nothing is changed anyway"),
        ([0.9, 0.9, 0.5, 0.4], [True, True, False, False], 0.25, 0.9001, "equals go together"),
        ([1.0, 0.2], [True, False], 0.0, 1.0001, "a threshold above 1 changes nothing"),
    ],
)
def test_thresholds_by_hand(confidences, changed, share: float, threshold: float, why: str) -> None:
    assert choose_threshold(confidences, changed, share=share) == threshold, why


@given(
    rows=st.lists(st.tuples(st.floats(0, 1).map(lambda x: round(x, 4)), st.booleans()), min_size=1, max_size=50),
    share=st.floats(0, 1),
)
def test_a_threshold_keeps_its_promise(rows, share: float) -> None:
    threshold = choose_threshold([c for c, _ in rows], [changed for _, changed in rows], share=share)
    assert sum(changed and c >= threshold for c, changed in rows) <= share * len(rows) + 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit_isotonic([1.0], []), "expected an outcome per row, found 1 rows, 0 outcomes"),
        (lambda: fit_isotonic([], []), "expected at least one row, found none"),
        (lambda: fit_isotonic([math.nan], [True]), "expected finite scores"),
        (lambda: choose_threshold([0.5], [True], share=2), "share: expected 0 to 1, found 2"),
        (lambda: Calibration((), ()), "at least one, found 0 and 0"),
        (lambda: Calibration((1.0, 0.0), (0.0, 1.0)), "scores that rise"),
        (lambda: Calibration((0.0, 1.0), (0.0, 2.0)), "confidences from 0 to 1"),
    ],
)
def test_wrong_calls_are_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
