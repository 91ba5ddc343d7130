"""Greedy and beam search over a model's steps, in numpy; finished rows leave the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_KEPT = 0.75
"""Rows are dropped when at most this share of the batch still generates: each time, what is cached must be copied."""


class Steps(Protocol):
    """A model that has encoded a batch of sources and generates on, pass by pass."""

    def advance(self, tokens: Sequence[Sequence[int]], asked: Sequence[int], count: int) -> tuple[Floats, Ids]:
        """Take further tokens of each text, and return what may follow its last `asked` ones, text by text.

        That is the scores and ids of the `count` likeliest next tokens, a row for each of those tokens.
        """

    def forget(self, counts: Sequence[int]) -> None:
        """Take back the last tokens of each text."""

    def keep(self, rows: Ids) -> None:
        """Continue with these rows only, in this order; a row may be named more than once."""


Draft = Callable[[int, Sequence[int]], Sequence[int]]
"""What may follow in a row's text after the ids so far: a guess, which the model checks."""


@dataclass(slots=True)
class Text:
    """Generated tokens and the log-probability of each."""

    ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def extended(self, token: int, score: float) -> Text:
        """Return a longer text."""
        return Text([*self.ids, token], [*self.scores, score])


def search_greedily(
    steps: Steps,
    starts: Sequence[Sequence[int]],
    limits: Sequence[int],
    end: int,
    draft: Draft | None = None,
    *,
    checked: int = 256,
) -> list[Text]:
    """Return each row's text, the likeliest token at each position, up to the end token or the row's limit.

    With drafts, a pass checks all tokens of a draft at once. Those that are the likeliest are taken, and the one that
    the model has after them: the same text in fewer passes. A pass checks at most `checked` tokens of all drafts: each
    has a probability for every token of the vocabulary.
    """
    texts = [Text() for _ in limits]
    rows = list(range(len(texts)))  # which text each row of the batch belongs to
    given = [list(start) for start in starts]  # what each row's model has not read yet; nothing once its text ended
    while rows:
        going = [(row, texts[row], limits[row]) if given[k] else None for k, row in enumerate(rows)]
        drafts = _guesses(draft, going, checked)
        pairs = list(zip(given, drafts, strict=True))
        asked = [len(guess) + 1 if tokens else 0 for tokens, guess in pairs]
        scores, ids = steps.advance([[*tokens, *guess] for tokens, guess in pairs], asked, 1)
        first, wrong = 0, []
        for k, (row, guess) in enumerate(zip(rows, drafts, strict=True)):
            if asked[k]:
                part = slice(first, first + asked[k])
                right = _take(texts[row], guess, ids[part, 0].tolist(), scores[part, 0].tolist(), end)
                ended = texts[row].ids[-1] == end or len(texts[row].ids) >= limits[row]
                given[k] = [] if ended else texts[row].ids[-1:]
                first += asked[k]
            wrong.append(len(guess) - right if asked[k] else 0)
        if any(wrong):
            steps.forget(wrong)
        left = [k for k, tokens in enumerate(given) if tokens]
        if len(left) <= _KEPT * len(rows):
            if left:
                steps.keep(np.array(left, dtype=np.int64))
            rows, given = [rows[k] for k in left], [given[k] for k in left]
    return texts


def _guesses(draft: Draft | None, rows: Sequence[tuple[int, Text, int] | None], most: int) -> list[list[int]]:
    """Return the draft of each row that continues, no longer than its limit lets it be, and than a pass can check."""
    if draft is None:
        return [[] for _ in rows]
    found = [list(draft(row[0], row[1].ids)[: row[2] - len(row[1].ids) - 1]) if row else [] for row in rows]
    if sum(map(len, found)) > most:
        share = most // sum(map(bool, found))
        found = [guess[:share] for guess in found]
    return found


def _take(text: Text, guess: Sequence[int], ids: Sequence[int], scores: Sequence[float], end: int) -> int:
    """Append to a text what the model chose after each right token of a draft; return how many tokens were right."""
    right = 0
    for number, score in zip(ids, scores, strict=True):
        text.ids.append(number)
        text.scores.append(score)
        if number == end or right == len(guess) or number != guess[right]:
            break
        right += 1
    return right


@dataclass(slots=True)
class _Beam:
    """One row's running texts, best first, and those that ended, each with what it is ranked by."""

    running: list[Text]
    ended: list[tuple[float, Text]] = field(default_factory=list)
    done: bool = False


def search_beams(
    steps: Steps,
    starts: Sequence[Sequence[int]],
    limits: Sequence[int],
    end: int,
    beams: int,
    *,
    per_token: bool = True,
) -> list[list[Text]]:
    """Return each row's texts, best first and at most `beams`, that beam search of that width finds; at least one.

    They are ranked by log-probability: per token, or of the whole text. A row is done when `beams` texts have ended
    and no running one ranks before the last of them.
    """
    found = [_Beam([Text()]) for _ in limits]
    rows = list(range(len(found)))
    tokens = [list(start) for start in starts]
    while rows:
        scores, ids = steps.advance(tokens, [1] * len(tokens), 2 * beams)
        kept: list[int] = []
        following: list[list[int]] = []
        first, still = 0, []
        for row in rows:
            beam = found[row]
            width = len(beam.running)
            part = slice(first, first + width)
            parents = _grow(beam, scores[part], ids[part], end, beams, limits[row], per_token)
            if not beam.done:
                still.append(row)
                kept += [first + parent for parent in parents]
                following += [text.ids[-1:] for text in beam.running]
            first += width
        rows = still
        if rows:
            steps.keep(np.array(kept, dtype=np.int64))
            tokens = following
    return [[text for _, text in beam.ended] for beam in found]


def _grow(beam: _Beam, scores: Floats, ids: Ids, end: int, beams: int, limit: int, per_token: bool) -> list[int]:
    """Take one step of a row's search; return which running text each new one continues."""
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
