"""Confidence: fits, their error, risk and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.decision import Calibration, logistic
from teo.errors import InputError
from teo.evaluation.curves import (
    area_under_risk,
    expected_calibration_error,
    fit_logistic,
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
    bias, weight = fit_logistic([[score] for score in scores[::2]], right[::2])
    held_out = [logistic(bias + weight * score) for score in scores[1::2]]
    assert expected_calibration_error(raw[1::2], right[1::2]) > 0.12
    assert expected_calibration_error(held_out, right[1::2]) < 0.05
    assert logistic(bias + weight * math.log(0.5)) == pytest.approx(0.25, abs=0.08)


def test_a_fit_finds_the_weights_that_made_the_outcomes() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20_000, 2)) * [1.0, 5.0] + [-2.0, 3.0]
    chance = 1 / (1 + np.exp(-(0.5 + 1.5 * values[:, 0] - 0.2 * values[:, 1])))
    right = (rng.uniform(size=len(chance)) < chance).tolist()
    assert fit_logistic(values.tolist(), right) == pytest.approx((0.5, 1.5, -0.2), abs=0.12)


@given(rows=st.lists(st.tuples(st.floats(-50, 0, allow_nan=False), st.booleans()), min_size=1, max_size=80))
def test_a_fit_of_any_rows_is_finite(rows) -> None:
    bias, weight = fit_logistic([[value] for value, _ in rows], [right for _, right in rows])
    assert math.isfinite(bias) and math.isfinite(weight)
    assert Calibration(("score",), {"any": (bias, weight)})


def test_rows_of_one_score_have_the_share_of_right_ones() -> None:
    bias, weight = fit_logistic([[-1.0]] * 10, [True] * 7 + [False] * 3)
    assert logistic(bias - weight) == pytest.approx(0.7, abs=1e-3)


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
    ("call", "words"),
    [
        (lambda: fit_logistic([[1.0]], []), "expected an outcome per row, found 1 rows, 0 outcomes"),
        (lambda: fit_logistic([], []), "expected an outcome per row, found 0 rows"),
        (lambda: fit_logistic([[math.nan]], [True]), "expected finite scores"),
        (lambda: risk_coverage([], []), "expected at least one row, found none"),
    ],
)
def test_wrong_calls_are_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
