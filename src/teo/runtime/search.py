"""Greedy and beam search over a model's steps, in numpy; finished rows leave the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_KEPT = 0.75
"""Rows are dropped when at most this share of the batch still generates: each time, what is cached must be copied."""


class Steps(Protocol):
    """A model that has encoded a batch of sources and generates on, token by token."""

    def advance(self, tokens: Ids, count: int) -> tuple[Floats, Ids]:
        """Take further tokens (rows, length) and return the scores and ids of the `count` likeliest next ones."""

    def keep(self, rows: Ids) -> None:
        """Go on with these rows only, in this order; a row may be named more than once."""


@dataclass(slots=True)
class Text:
    """Generated tokens and the log-probability of each."""

    ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def extended(self, token: int, score: float) -> Text:
        """Return a longer text."""
        return Text([*self.ids, token], [*self.scores, score])


def search_greedily(steps: Steps, starts: Ids, limits: Sequence[int], end: int) -> list[Text]:
    """Return each row's text, the likeliest token at each step, up to the end token or the row's limit."""
    texts = [Text() for _ in limits]
    rows = np.arange(len(texts))  # which text each row of the batch belongs to
    tokens = starts
    while rows.size:
        scores, ids = steps.advance(tokens, 1)
        chosen = ids[:, 0]
        writing = np.ones(rows.size, dtype=bool)
        for k, row in enumerate(rows.tolist()):
            text = texts[row]
            if (text.ids and text.ids[-1] == end) or len(text.ids) >= limits[row]:
                writing[k] = False
                continue
            text.ids.append(int(chosen[k]))
            text.scores.append(float(scores[k, 0]))
            writing[k] = chosen[k] != end and len(text.ids) < limits[row]
        left = np.flatnonzero(writing)
        if left.size <= _KEPT * rows.size:
            if left.size:
                steps.keep(left)
            rows, chosen = rows[left], chosen[left]
        tokens = chosen[:, None]
    return texts


@dataclass(slots=True)
class _Beam:
    """One row's running texts, best first, and those that ended, each with what it is ranked by."""

    running: list[Text]
    ended: list[tuple[float, Text]] = field(default_factory=list)
    done: bool = False


def search_beams(
    steps: Steps, starts: Ids, limits: Sequence[int], end: int, beams: int, *, per_token: bool = True
) -> list[list[Text]]:
    """Return each row's texts, best first and at most `beams`, that beam search of that width finds; at least one.

    They are ranked by log-probability: per token, or of the whole text. A row is done when `beams` texts have ended
    and no running one ranks before the last of them.
    """
    found = [_Beam([Text()]) for _ in limits]
    rows = list(range(len(found)))
    tokens = starts
    while rows:
        scores, ids = steps.advance(tokens, 2 * beams)
        kept: list[int] = []
        following: list[int] = []
        place, still = 0, []
        for row in rows:
            beam = found[row]
            width = len(beam.running)
            part = slice(place, place + width)
            parents = _grow(beam, scores[part], ids[part], end, beams, limits[row], per_token)
            if not beam.done:
                still.append(row)
                kept += [place + parent for parent in parents]
                following += [text.ids[-1] for text in beam.running]
            place += width
        rows = still
        if rows:
            steps.keep(np.array(kept, dtype=np.int64))
            tokens = np.array(following, dtype=np.int64)[:, None]
    return [[text for _, text in beam.ended] for beam in found]


def _grow(beam: _Beam, scores: Floats, ids: Ids, end: int, beams: int, limit: int, per_token: bool) -> list[int]:
    """Take one step of a row's search; return which running text each new one goes on from."""
    options = [
        (sum(text.scores) + float(score), parent, int(token), float(score))
        for parent, text in enumerate(beam.running)
        for score, token in zip(scores[parent], ids[parent], strict=True)
    ]
    options.sort(key=lambda option: (-option[0], option[1], option[2]))
    grown: list[Text] = []
    parents: list[int] = []
    for rank, (total, parent, token, score) in enumerate(options[: 2 * beams]):
        text = beam.running[parent].extended(token, score)
        if token == end:
            if rank < beams:
                beam.ended.append((total / len(text.ids) if per_token else total, text))
        elif len(grown) < beams:
            grown.append(text)
            parents.append(parent)
    beam.ended = sorted(beam.ended, key=lambda ranked: -ranked[0])[:beams]
    beam.running = grown
    best = sum(grown[0].scores) / (len(grown[0].ids) if per_token else 1)
    if len(grown[0].ids) >= limit:
        beam.ended = beam.ended or [(best, grown[0])]
        beam.done = True
    elif len(beam.ended) == beams:
        beam.done = best <= beam.ended[-1][0]
    return parents
