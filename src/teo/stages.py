"""The two stages over generators: stage 1 proposes operations, stage 2 rewrites with operations.

What runs the model does not matter here (`teo.runtime.generator`). A model that has no separate stages but writes
`operations [SEP] rewrite` with one decoder (role `fused`) plays both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from teo.dialogue import Dialogue
from teo.edits import Operation, Order
from teo.layouts import (
    Marker,
    Pieces,
    Truncation,
    fit_history,
    operation_pieces,
    read_operation_pieces,
    split_at_separator,
    stage1_source,
    stage2_source,
    text_of,
)
from teo.runtime.generator import Generated, Generator


@dataclass(frozen=True, slots=True)
class Player:
    """A generator in a role, and what its text starts with in that role."""

    generator: Generator
    prompt: Pieces = ()

    def write(self, sources: Sequence[Pieces], starts: Sequence[Pieces] | None = None) -> list[Generated]:
        """Return what the model writes for each source, after its prompt and the start given for that source."""
        if starts is None:
            return self.generator.generate(sources, prompts=self._prompts(len(sources)))
        return self.generator.generate(sources, prompts=[(*self.prompt, *start) for start in starts])

    def write_several(self, sources: Sequence[Pieces], count: int) -> list[list[Generated]]:
        """Return at most `count` texts of the model for each source, the most probable first."""
        return self.generator.generate_several(sources, prompts=self._prompts(len(sources)), count=count)

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """Return the log-probability of each target."""
        return self.generator.score(sources, targets, prompts=self._prompts(len(sources)))

    def _prompts(self, count: int) -> list[Pieces] | None:
        return [self.prompt] * count if self.prompt else None


class Cast(Protocol):
    """Who plays which role: a loaded model folder, or scripted players in a test."""

    @property
    def order(self) -> Order:
        """The order of the operations that stage 1 writes."""

    def has(self, role: str) -> bool:
        """Tell whether there is a player for the role."""

    def player(self, role: str) -> Player:
        """Return the role's player."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What stage 1 wrote for one dialogue."""

    operations: tuple[Operation, ...]
    score: float
    truncation: Truncation
    well_formed: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What stage 2 wrote for one dialogue and its operations."""

    text: str
    score: float
    truncation: Truncation


def fit_dialogue(generator: Generator, dialogue: Dialogue, operations: Pieces = ()) -> tuple[Dialogue, Truncation]:
    """Return the dialogue with the latest turns that a source has room for beside utterance and operations."""
    taken = 2 + generator.measure(dialogue.utterance)  # [CLS] before it all, [SEP] after the operations
    for piece in operations:
        taken += 1 if isinstance(piece, Marker) else generator.measure(piece) - 1
    return fit_history(dialogue, generator.measure, generator.source_limit - taken)


def propose(cast: Cast, dialogues: Sequence[Dialogue]) -> list[Proposal]:
    """Return stage 1's operations for each dialogue."""
    player = cast.player("stage1" if cast.has("stage1") else "fused")
    fitted = [fit_dialogue(player.generator, dialogue) for dialogue in dialogues]
    written = player.write([stage1_source(dialogue) for dialogue, _ in fitted])
    proposals = []
    for one, (_, truncation) in zip(written, fitted, strict=True):
        pieces, _ = split_at_separator(one.pieces)  # a shared decoder may go on with the rewrite
        parsed = read_operation_pieces(pieces)
        proposals.append(Proposal(parsed.operations, one.score, truncation, parsed.well_formed))
    return proposals


def rewrite_given(
    cast: Cast, dialogues: Sequence[Dialogue], operations: Sequence[Sequence[Operation]], role: str = "stage2"
) -> list[Written]:
    """Return stage 2's rewrite of each dialogue with its operations."""
    pieces = [operation_pieces(one, cast.order) for one in operations]
    if cast.has(role):
        player = cast.player(role)
        fitted = [fit_dialogue(player.generator, one, its) for one, its in zip(dialogues, pieces, strict=True)]
        written = player.write([stage2_source(one, its) for (one, _), its in zip(fitted, pieces, strict=True)])
    else:
        player = cast.player("fused")
        fitted = [fit_dialogue(player.generator, one) for one in dialogues]
        starts: list[Pieces] = [(*its, Marker.SEP) for its in pieces]
        written = player.write([stage1_source(one) for one, _ in fitted], starts)
    return [
        Written(text_of(one.pieces).strip(), one.score, truncation)
        for one, (_, truncation) in zip(written, fitted, strict=True)
    ]
