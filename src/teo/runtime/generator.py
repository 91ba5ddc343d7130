"""What a stage asks of a model, whatever runs it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from teo.errors import InputError
from teo.layouts import Marker, Pieces

_LOOKED_AT = 6
"""Characters of a long turn that are tokenized first for each token that a source may have."""
_CUT_WORD = 64
"""Tokens that a word may have more when it is cut, at most."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One generated text and the log-probability of each of its tokens, the end token included."""

    pieces: Pieces
    token_scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """The log-probability of the whole text."""
        return sum(self.token_scores)


class Generator(Protocol):
    """A sequence-to-sequence model: pieces in, pieces out."""

    @property
    def source_limit(self) -> int:
        """How many tokens a source may have."""

    def measure(self, text: str) -> int:
        """Return how many tokens a turn takes, its separator included; of one that never fits, more than do."""

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        """Return the model's text for each source, in order; a prompt is what its text starts with, not returned."""

    def generate_several(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, count: int
    ) -> list[list[Generated]]:
        """Return at most `count` texts for each source, the most probable first, by beam search of that width."""

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        """Return the log-probability of each target given its source."""


def decoder_starts(
    start: Callable[[Pieces], list[int]], prompts: Sequence[Pieces] | None, count: int
) -> list[list[int]]:
    """Return what each decoder's text starts with, by a codec's `decoder_start`; no prompts are empty ones."""
    if prompts is None:
        return [start(())] * count
    if len(prompts) != count:
        raise InputError(f"prompts: expected one per source, found {len(prompts)} for {count}")
    return [start(prompt) for prompt in prompts]


def measure_bounded(measure: Callable[[str], int], text: str, limit: int) -> int:
    """Return how many tokens a turn takes; of one that is longer than `limit`, no more is read than tells so."""
    size = _LOOKED_AT * limit
    while len(text) > size:
        found = measure(text[:size])
        if found > limit + _CUT_WORD:
            return found
        size *= 2
    return measure(text)


def text_limit(source: int, most: int) -> int:
    """Return how many tokens a text may have, given the tokens of its source, which it is made of."""
    return min(most, 2 * source + 16)


def cut_at_markers(
    ids: Iterable[int],
    end: int,
    markers: Mapping[int, Marker],
    silent: Container[int | None],
    text: Callable[[Sequence[int]], list[str]],
) -> Pieces:
    """Return what a decoder's ids say up to the end token: markers, and the text of the runs between them.

    `silent` ids are left out; `text` gives the text of a run of ids, none if the run has no text.
    """
    pieces: list[str] = []
    run: list[int] = []
    for number in map(int, ids):
        if number == end:
            break
        if number in markers:
            pieces += [*text(run), markers[number]]
            run = []
        elif number not in silent:
            run.append(number)
    return (*pieces, *text(run))


class Joiner:
    """The backbone's character that takes back the space of the word after it; alone it means nothing."""

    CHARACTER = "⁀"

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._own = vocabulary.get(self.CHARACTER)
        joins = () if self._own is None else vocabulary.items()
        # After a joiner comes a word with its space, or the digit that makes the joiner a user's own character.
        self._joins = frozenset(number for token, number in joins if token[:1] in ("▁", "0", "1"))

    def clean(self, ids: Sequence[int]) -> list[int]:
        """Return a text's ids without joiners that join nothing: a decoder may stop behind one."""
        if self._own is None or self._own not in ids:
            return list(ids)
        following = (*ids[1:], None)
        return [
            number for number, after in zip(ids, following, strict=True) if number != self._own or after in self._joins
        ]
