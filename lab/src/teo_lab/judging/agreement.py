"""Statistics of votes: wins, ties and losses with intervals, Fleiss' kappa, the sign test.

All are seen from the first system: a win is a vote for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teo.metrics.base import FloatArray, Interval
from teo.metrics.significance import bootstrap_intervals
from teo_lab.judging.items import Choice
from teo_lab.judging.votes import Vote

CHOICES: tuple[Choice, ...] = ("a", "tie", "b")
"""Win, tie, loss."""
_Z = 1.959963984540054
"""The normal quantile of a 95% interval."""


@dataclass(frozen=True, slots=True)
class VoteShare:
    """How often something happened: count, share and the share's 95% interval; no share of nothing."""

    count: int
    share: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Wins, ties and losses of the first system."""

    win: VoteShare
    tie: VoteShare
    loss: VoteShare

    @property
    def total(self) -> int:
        """How many were counted."""
        return self.win.count + self.tie.count + self.loss.count


@dataclass(frozen=True, slots=True)
class SignTest:
    """The two-sided exact test that wins and losses are equally likely; ties are left out."""

    wins: int
    losses: int
    p: float


@dataclass(frozen=True, slots=True)
class Kappa:
    """Fleiss' kappa over the items that all raters judged; None if it is undefined."""

    value: float | None
    items: int
    raters: int
    reason: str = ""
    """Why there is no value."""


def tally_votes(counts: FloatArray) -> Tally:
    """Return the tally of single votes from counts (items x choices).

    The intervals draw items, not votes: several people who judge the same item are not independent.
    """
    judged = counts[counts.sum(axis=1) > 0]
    totals = counts.sum(axis=0)

    def shares(sums: FloatArray) -> FloatArray:
        found: FloatArray = sums / sums.sum(axis=-1, keepdims=True)
        return found

    if not len(judged):
        return Tally(*(VoteShare(0, None, None) for _ in CHOICES))
    intervals = bootstrap_intervals(judged, shares)
    return Tally(
        *(VoteShare(int(n), float(n / totals.sum()), interval) for n, interval in zip(totals, intervals, strict=True))
    )


def tally_items(outcomes: Sequence[Choice]) -> Tally:
    """Return the tally of items by their majority, with Wilson's intervals."""
    counts, total = Counter(outcomes), len(outcomes)
    return Tally(
        *(
            VoteShare(counts[choice], counts[choice] / total if total else None, wilson_interval(counts[choice], total))
            for choice in CHOICES
        )
    )


def count_votes(votes: Sequence[Vote], items: int) -> FloatArray:
    """Return how often each choice was voted for, a row for each item, columns as `CHOICES`."""
    counts = np.zeros((items, len(CHOICES)))
    for vote in votes:
        counts[vote.item, CHOICES.index(vote.choice)] += 1
    return counts


def majorities(counts: FloatArray) -> list[Choice]:
    """Return the outcome of every item that has votes: the choice with most of them, a tie if two have as many."""
    found: list[Choice] = []
    for row in counts[counts.sum(axis=1) > 0]:
        best = np.flatnonzero(row == row.max())
        found.append(CHOICES[int(best[0])] if len(best) == 1 else "tie")
    return found


def wilson_interval(count: int, total: int) -> Interval | None:
    """Return Wilson's 95% interval of a share; None of nothing."""
    if not total:
        return None
    share = count / total
    centre = share + _Z**2 / (2 * total)
    spread = _Z * math.sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2))
    scale = 1 + _Z**2 / total
    return Interval(max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale))


def sign_test(outcomes: Sequence[Choice]) -> SignTest:
    """Return the sign test of items' outcomes."""
    wins, losses = outcomes.count("a"), outcomes.count("b")
    number = wins + losses
    tail = sum(math.comb(number, k) for k in range(min(wins, losses) + 1))
    return SignTest(wins, losses, min(1.0, 2 * tail / 2**number))


def fleiss_kappa(counts: FloatArray) -> Kappa:
    """Return Fleiss' kappa of counts (items x choices): agreement above chance, as a share of what chance leaves.

    The raters are as many as the item with most votes has; items with fewer votes are left out.
    """
    raters = int(counts.sum(axis=1).max()) if len(counts) else 0
    if raters < 2:
        return Kappa(None, 0, raters, "fewer than two raters have judged the same item")
    full = counts[counts.sum(axis=1) == raters]
    observed = float(((full**2).sum(axis=1) - raters).mean() / (raters * (raters - 1)))
    shares = full.sum(axis=0) / full.sum()
    chance = float((shares**2).sum())
    if math.isclose(chance, 1.0):
        return Kappa(None, len(full), raters, "all votes are the same, so that chance alone explains the agreement")
    return Kappa((observed - chance) / (1 - chance), len(full), raters)
