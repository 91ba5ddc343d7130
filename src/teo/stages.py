"""The two stages of the paper over generators: stage 1 proposes editing operations, stage 2 rewrites given them.

    proposals = propose(stages, dialogues)                    # stage 1: P(E | Hist, U)
    rewrites = rewrite_given(stages, dialogues, proposals)    # stage 2: P(Y | Hist, U, E)

Both take dialogues that fit into a source (`fit_dialogue`). What runs the model does not matter here
(`teo.runtime.generator`). A model without separate stages, whose one decoder generates `operations [SEP] rewrite` (role
`fused`), serves as both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from teo.dialogue import Dialogue
from teo.edits import Operation, Order
from teo.errors import ModelError
from teo.layouts import (
    PLAIN,
    Layout,
    Marker,
    Pieces,
    Truncation,
    dialogue_source,
    fit_history,
    operation_pieces,
    read_operation_pieces,
    split_at_separator,
    stage2_source,
    text_of,
)
from teo.runtime.generator import Generated, Generator


@dataclass(frozen=True, slots=True)
class Stage:
    """A generator and the prompt of its role: what the decoder's text starts with."""

    generator: Generator
    prompt: Pieces = ()

    def generate(self, sources: Sequence[Pieces], starts: Sequence[Pieces] | None = None) -> list[Generated]:
        """Return the text of each source, generated after the prompt and, where there is one, the source's start."""
        if starts is None:
            return self.generator.generate(sources, prompts=[self.prompt] * len(sources))
        return self.generator.generate(sources, prompts=[(*self.prompt, *start) for start in starts])

    def generate_several(self, sources: Sequence[Pieces], count: int) -> list[list[Generated]]:
        """Return at most `count` texts of each source, the most probable first."""
        return self.generator.generate_several(sources, prompts=[self.prompt] * len(sources), count=count)

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """Return the log-probability of each target."""
        return self.generator.score(sources, targets, prompts=[self.prompt] * len(sources))


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a model by role, the order of the operations that stage 1 generates, and the layout of sources."""

    by_role: Mapping[str, Stage]
    order: Order = "position"
    layout: Layout = PLAIN

    def __contains__(self, role: object) -> bool:
        return role in self.by_role

    def __getitem__(self, role: str) -> Stage:
        """Return the stage of a role."""
        if role not in self.by_role:
            found = ", ".join(self.by_role) or "none"
            raise ModelError(
                f"expected a stage with the role {role}, found {found}; train it or choose another variant"
            )
        return self.by_role[role]

    @property
    def first(self) -> Stage:
        """The stage that proposes operations: stage 1, or the fused decoder."""
        return self["stage1" if "stage1" in self else "fused"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The operations that stage 1 proposes for one dialogue, E in the paper."""

    operations: tuple[Operation, ...]
    score: float = 0.0
    """log P(E | Hist, U)"""
    well_formed: bool = True
    """False if a part of the generated text is no operation."""
    token_scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class StageTwoRewrite:
    """The text that stage 2 generates for one dialogue and its operations, Y in the paper."""

    text: str
    score: float
    """log P(Y | Hist, U, E)"""
    truncation: Truncation
    """What of the history had to make room for the operations."""
    token_scores: tuple[float, ...] = ()


def fit_dialogue(
    generator: Generator, dialogue: Dialogue, operations: Pieces = (), layout: Layout = PLAIN
) -> tuple[Dialogue, Truncation]:
    """Return the dialogue with as much of its history as a source has room for beside utterance and operations."""
    # [CLS], and [SEP] after the operations
    room = generator.source_limit - generator.measure(dialogue.utterance) - layout.turn_tokens - 2
    if room < 0:  # the utterance itself does not fit: it is never cut, and counts as unread with all before it
        turns = (*dialogue.history, dialogue.utterance)
        return replace(dialogue, history=(), speakers=None), Truncation(len(dialogue.history), sum(map(len, turns)))
    for piece in operations:
        room -= 1 if isinstance(piece, Marker) else generator.measure(piece) - 1
    lengths = [generator.measure(turn) + layout.turn_tokens for turn in dialogue.history]
    if sum(lengths) <= room:
        return dialogue, Truncation()
    return fit_history(dialogue, lambda turn: generator.measure(turn) + layout.turn_tokens, room)


def propose(stages: Stages, dialogues: Sequence[Dialogue]) -> list[Proposal]:
    """Return stage 1's operations for each dialogue (section 3.3, first factor of equation 1)."""
    proposals = []
    for generated in stages.first.generate([dialogue_source(dialogue, stages.layout) for dialogue in dialogues]):
        pieces, _ = split_at_separator(generated.pieces)  # a fused decoder may go on with the rewrite
        parsed = read_operation_pieces(pieces)
        proposals.append(Proposal(parsed.operations, generated.score, parsed.well_formed, generated.token_scores))
    return proposals


def rewrite_given(
    stages: Stages, dialogues: Sequence[Dialogue], proposals: Sequence[Proposal], *, rfis: bool = False
) -> list[StageTwoRewrite]:
    """Return stage 2's rewrite of each dialogue given its operations (section 3.4, second factor of equation 1).

    `rfis` takes the weights of the paper's ablation that was trained without perturbed operations.
    """
    operations = [operation_pieces(proposal.operations, stages.order) for proposal in proposals]
    if rfis or "stage2" in stages:
        stage = stages["rfis" if rfis else "stage2"]
        pairs = list(zip(dialogues, operations, strict=True))
        fitted = [fit_dialogue(stage.generator, dialogue, pieces, stages.layout) for dialogue, pieces in pairs]
        sources = [
            stage2_source(dialogue, pieces, stages.layout)
            for (dialogue, _), pieces in zip(fitted, operations, strict=True)
        ]
        texts, truncations = stage.generate(sources), [truncation for _, truncation in fitted]
    else:  # the fused decoder goes on after the operations
        sources = [dialogue_source(dialogue, stages.layout) for dialogue in dialogues]
        texts = stages["fused"].generate(sources, [(*pieces, Marker.SEP) for pieces in operations])
        truncations = [Truncation()] * len(texts)
    return [
        StageTwoRewrite(text_of(text.pieces).strip(), text.score, truncation, text.token_scores)
        for text, truncation in zip(texts, truncations, strict=True)
    ]
