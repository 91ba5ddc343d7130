"""Algorithm 1 of the paper: operations with noise, so that stage 2 learns to doubt what it is told (section 3.4).

Line numbers are the printed ones, which count the comment and the ends of blocks.

Random spans: a turn is drawn in proportion to its units, a first unit uniformly in it, a length uniformly from 1 to 6
units, cut at the turn's end. Gold spans have 3.4 units on average in both REWRITE and TASK, 96% of them at most 7.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.units import Unit, split_units

LONGEST_SPAN = 6

T = TypeVar("T")


def noise_source(seed: int, epoch: int, row_id: str) -> random.Random:
    """Return the generator of one row's noise in one epoch; the same wherever and in whatever order rows are read."""
    return random.Random(f"{seed}/{epoch}/{row_id}")


def perturb_operations(
    operations: Sequence[Operation],
    dialogue: Dialogue,
    rng: random.Random,
    *,
    prob_p: float = 0.6,
    prob_r: float = 0.5,
    insertions_only: bool = False,
) -> tuple[Operation, ...]:
    """Return the operations with noise, drawn from `rng` alone.

    A dialogue without history lends spans of its utterance; without any text, nothing is drawn in.
    `insertions_only` keeps the noise to insertions, for a stage that gets no others (TEO-RFIS).
    """
    turns = [turn for turn in dialogue.history if turn.strip()] or [dialogue.utterance]

    def replace_text(operation: Operation) -> Operation | None:
        span = draw_span(turns, rng)  # line 7: e.text is the text that comes, as in the paper's example
        return Operation(operation.old, span) if span else None

    def draw_operation() -> Operation | None:
        origin_span = draw_span([dialogue.utterance], rng)  # line 17
        new_span = draw_span(turns, rng)  # line 18
        candidates = [Operation("", new_span)]  # line 19
        if origin_span and not insertions_only:
            candidates.append(Operation(origin_span, new_span))
        drawn = rng.choice(candidates)  # line 20
        return drawn if new_span else None

    return tuple(perturb(operations, rng, prob_p, prob_r, replace_text, draw_operation))


def perturb(
    operations: Sequence[T],
    rng: random.Random,
    prob_p: float,
    prob_r: float,
    replace_text: Callable[[T], T | None],
    draw_operation: Callable[[], T | None],
) -> list[T]:
    """Return operations of any form with noise; what cannot be drawn, None, is left out."""
    perturbed: list[T] = []  # line 1
    for operation in operations:  # line 2
        prob_1, prob_2 = rng.random(), rng.random()  # line 3
        kept: T | None = operation  # lines 11 and 12
        if prob_1 <= prob_p:  # line 5
            kept = replace_text(operation) if prob_2 <= prob_r else None  # lines 6 to 8; line 9: dropped
        if kept is not None:
            perturbed.append(kept)
    prob_3 = rng.random()  # line 15
    if prob_3 <= prob_p and (drawn := draw_operation()) is not None:  # lines 16 to 20
        # E_p is a set: a fixed position, say the last, would tell the model which operation is the noise.
        perturbed.insert(rng.randint(0, len(perturbed)), drawn)
    return perturbed  # line 22


def draw_span(turns: Sequence[str], rng: random.Random) -> str:
    """Return a random span of the turns, whole units of one turn; empty if they hold no unit."""
    split: list[list[Unit]] = [split_units(turn) for turn in turns]
    total = sum(len(units) for units in split)
    if not total:
        return ""
    first = rng.randrange(total)
    length = rng.randint(1, LONGEST_SPAN)
    for turn, units in zip(turns, split, strict=True):
        if first < len(units):
            last = min(first + length, len(units)) - 1
            return turn[units[first].start : units[last].end]
        first -= len(units)
    raise AssertionError("the turns hold fewer units than were counted")
