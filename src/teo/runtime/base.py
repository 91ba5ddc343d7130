"""What a stage asks of a model, whatever runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from teo.layouts import Pieces


@dataclass(frozen=True, slots=True)
class Generated:
    """One text that a model wrote and the log-probability of each of its tokens, the end token included."""

    pieces: Pieces
    token_scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """The log-probability of the whole text."""
        return sum(self.token_scores)


class Generator(Protocol):
    """A sequence-to-sequence model that reads pieces and writes pieces."""

    @property
    def source_limit(self) -> int:
        """How many tokens a source may have."""

    def measure(self, text: str) -> int:
        """Return how many tokens a turn takes, its separator included."""

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        """Return the model's text for each source, in order; a prompt is what its text starts with, not returned."""

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        """Return the log-probability of each target given its source."""
