"""Statistics recomputed by hand, or published with their result."""

from __future__ import annotations

import numpy as np
import pytest

from teo_lab.judging.agreement import (
    count_votes,
    fleiss_kappa,
    majorities,
    sign_test,
    tally_items,
    tally_votes,
    wilson_interval,
)
from teo_lab.judging.items import Choice
from teo_lab.judging.votes import Vote

# Three raters, four items; columns: win, tie, loss.
TABLE = np.array([[3, 0, 0], [2, 1, 0], [1, 1, 1], [0, 0, 3]], dtype=float)
FLEISS_1971 = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_kappa_by_hand() -> None:
    # Agreement of the items: 6/6, 2/6, 0/6, 6/6, on average 7/12. Shares 6/12, 2/12, 4/12: chance 14/36.
    kappa = fleiss_kappa(TABLE)
    assert kappa.value == pytest.approx((7 / 12 - 14 / 36) / (1 - 14 / 36))
    assert kappa.value == pytest.approx(7 / 22)
    assert (kappa.items, kappa.raters) == (4, 3)


def test_kappa_of_a_textbook_table() -> None:
    assert fleiss_kappa(np.array(FLEISS_1971, dtype=float)).value == pytest.approx(0.210, abs=0.0005)


@pytest.mark.parametrize(
    ("counts", "value", "items", "why"),
    [
        ([[2, 0, 0], [0, 0, 2]], 1.0, 2, "raters agree, and use two choices"),
        ([[1, 0, 1], [1, 0, 1]], -1.0, 2, "raters never agree"),
        ([[2, 0, 0], [0, 0, 2], [1, 0, 0]], 1.0, 2, "an item that a rater has not reached is left out"),
        ([[2, 0, 0], [2, 0, 0]], None, 2, "all votes are the same"),
        ([[1, 0, 0], [0, 1, 0]], None, 0, "a single rater"),
        ([[0, 0, 0]], None, 0, "no votes yet"),
    ],
)
def test_kappa_at_the_ends(counts: list[list[int]], value: float | None, items: int, why: str) -> None:
    kappa = fleiss_kappa(np.array(counts, dtype=float))
    assert kappa.value == (None if value is None else pytest.approx(value)), why
    assert kappa.items == items
    assert bool(kappa.reason) == (value is None)


@pytest.mark.parametrize(
    ("wins", "losses", "p", "why"),
    [
        (9, 1, 22 / 1024, "2 (1 + 10) / 2^10"),
        (1, 9, 22 / 1024, "two-sided: the same the other way round"),
        (5, 0, 2 / 32, "2 / 2^5"),
        (2, 1, 1.0, "2 (1 + 3) / 2^3"),
        (3, 3, 1.0, "never more than certain"),
        (0, 0, 1.0, "ties only say nothing"),
    ],
)
def test_sign_test_by_hand(wins: int, losses: int, p: float, why: str) -> None:
    outcomes: list[Choice] = ["a"] * wins + ["tie"] * 4 + ["b"] * losses
    found = sign_test(outcomes)
    assert (found.wins, found.losses) == (wins, losses)
    assert found.p == pytest.approx(p), why


def test_votes_are_counted_by_item() -> None:
    votes = [Vote(1, 0, "a"), Vote(2, 0, "a"), Vote(1, 2, "b"), Vote(2, 2, "tie")]
    assert count_votes(votes, 3).tolist() == [[2, 0, 0], [0, 0, 0], [0, 1, 1]]


def test_majorities_leave_out_items_without_votes() -> None:
    assert majorities(TABLE) == ["a", "a", "tie", "b"]
    assert majorities(np.array([[0, 0, 0], [1, 0, 1], [1, 0, 0], [1, 2, 0]], dtype=float)) == ["tie", "a", "tie"]


def test_tally_of_votes() -> None:
    tally = tally_votes(TABLE)
    assert [tally.win.count, tally.tie.count, tally.loss.count] == [6, 2, 4]
    assert [tally.win.share, tally.tie.share, tally.loss.share] == pytest.approx([1 / 2, 1 / 6, 1 / 3])
    assert tally.win.interval is not None
    assert 0 <= tally.win.interval.low < 0.5 < tally.win.interval.high <= 1


def test_intervals_of_votes_count_items_not_votes() -> None:
    once = np.array([[1, 0, 0], [0, 0, 1]] * 10, dtype=float)
    first, second = tally_votes(once), tally_votes(once * 3)
    assert second.win.count == 3 * first.win.count
    assert first.win.interval == second.win.interval, "the same opinion three times is no more evidence"


def test_tally_of_items() -> None:
    tally = tally_items(["a", "a", "tie", "b"])
    assert (tally.win.count, tally.tie.count, tally.loss.count, tally.total) == (2, 1, 1, 4)
    assert tally.win.share == 0.5
    assert tally_items([]).win.share is None
    assert tally_votes(np.zeros((2, 3))).win.share is None


@pytest.mark.parametrize(
    ("count", "total", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)]
)
def test_wilson_interval(count: int, total: int, low: float, high: float) -> None:
    interval = wilson_interval(count, total)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson_interval(0, 0) is None
