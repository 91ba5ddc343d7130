"""What each role is trained on: a row and its operations -> Example (source, prompt, target), with fresh noise.

Roles: stage1 writes operations; stage2 reads them and writes the rewrite; direct writes it without them; rfis gets
the replacements made and reads only insertions; fast writes operations that carry their position; fused writes
operations, `[SEP]` and the rewrite in one go.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript, Insert, Operation, Order
from teo.errors import DataError
from teo.layouts import (
    PLAIN,
    Layout,
    Marker,
    Pieces,
    Truncation,
    dialogue_source,
    fit_history,
    operation_pieces,
    stage2_source,
)
from teo.placement import placed_pieces
from teo.training.config import PerturbationSettings, TrainConfig
from teo.training.perturbation import noise_source, perturb_operations

PROMPTS: Mapping[str, Pieces] = {
    "stage1": (Marker.WRITE_OPERATIONS,),
    "stage2": (Marker.WRITE_REWRITE,),
    "rfis": (Marker.WRITE_REWRITE,),
    "direct": (Marker.WRITE_REWRITE,),
    "fast": (Marker.WRITE_PLACED,),
    "fused": (Marker.WRITE_OPERATIONS,),
}
"""What the decoder's text starts with if roles share weights; stage 2 and direct differ in their source."""


@dataclass(frozen=True, slots=True)
class Example:
    """What a model reads, what its text starts with (no loss on it), and what it is to write."""

    dialogue: Dialogue
    operations: Pieces | None
    """Operations that follow the dialogue in the source; None if a role reads none."""
    prompt: Pieces
    target: Pieces
    layout: Layout = PLAIN

    @property
    def source(self) -> Pieces:
        """What the encoder reads."""
        if self.operations is None:
            return dialogue_source(self.dialogue, self.layout)
        return stage2_source(self.dialogue, self.operations, self.layout)

    def fit(
        self, encode: Callable[[Pieces], list[int]], measure: Callable[[str], int], limit: int
    ) -> tuple[Example, Truncation]:
        """Return the example with its history cut until its source fits, as in prediction, and what was left out."""
        bare = replace(self, dialogue=Dialogue((), self.dialogue.utterance))
        room, beside = limit - len(encode(bare.source)), self.layout.turn_tokens
        dialogue, truncation = fit_history(self.dialogue, lambda turn: measure(turn) + beside, room)
        return replace(self, dialogue=dialogue), truncation


@dataclass(frozen=True, slots=True)
class ExampleMaker:
    """Rows to examples of one role; the noise of an epoch depends on seed, epoch and row alone."""

    role: str
    shared: bool = False
    order: Order = "position"
    perturbation: PerturbationSettings = field(default_factory=PerturbationSettings)
    predicted: Mapping[str, tuple[Operation, ...]] = field(default_factory=dict)
    """Stage 1's operations by row id, for perturbation.operations = "predicted"."""
    seed: int = 0
    layout: Layout = PLAIN

    @classmethod
    def of_config(
        cls,
        config: TrainConfig,
        role: str,
        layout: Layout,
        predicted: Mapping[str, tuple[Operation, ...]] | None = None,
    ) -> ExampleMaker:
        """Return the maker of a role in a run."""
        return cls(role, config.shared, config.order, config.perturbation, predicted or {}, config.seed, layout)

    @property
    def prompt(self) -> Pieces:
        """What the decoder's text starts with in prediction."""
        return PROMPTS[self.role] if self.shared else ()

    def example(self, row: Row, script: EditScript, operations: Sequence[Operation] | None = None) -> Example:
        """Return a row's example without noise; stage 2 reads the operations given, else the gold ones."""
        prompt, gold = self.prompt, script.operations
        if self.role == "stage1":
            return Example(row.dialogue, None, prompt, operation_pieces(gold, self.order), self.layout)
        if self.role == "fast":
            return Example(row.dialogue, None, prompt, placed_pieces(script, row.dialogue.utterance), self.layout)
        if self.role == "fused":
            target = (*operation_pieces(gold, self.order), Marker.SEP, row.rewrite)
            return Example(row.dialogue, None, prompt, target, self.layout)
        if self.role == "direct":
            return Example(row.dialogue, None, prompt, (row.rewrite,), self.layout)
        dialogue = row.dialogue
        if self.role == "rfis":
            dialogue, gold = replacements_made(row.dialogue, script)
        shown = operation_pieces(gold if operations is None else operations, self.order)
        return Example(dialogue, shown, prompt, (row.rewrite,), self.layout)

    def training_examples(self, row: Row, script: EditScript, epoch: int, copy: int = 0) -> tuple[Example, ...]:
        """Return what a row teaches in an epoch; copies of a row get noise of their own.

        Stage 2 and rfis read perturbed operations. The fused form is learned whole from the gold operations, and in
        some epochs its rewrite from perturbed ones too.
        """
        if self.role == "stage2" and self.perturbation.operations == "predicted":
            if row.id not in self.predicted:
                raise DataError(f"predicted operations: none for row {row.id}; predict them for every training row")
            return (self.example(row, script, self.predicted[row.id]),)
        noisy = self.noisy_example(row, script, epoch, copy)
        if noisy is None:
            return (self.example(row, script),)
        return (self.example(row, script), noisy) if self.role == "fused" else (noisy,)

    def noisy_example(self, row: Row, script: EditScript, epoch: int, copy: int = 0) -> Example | None:
        """Return a row's example with perturbed operations; None if the role or this epoch has none."""
        if self.role not in {"stage2", "rfis", "fused"} or self.perturbation.operations == "gold":
            return None
        rng = noise_source(self.seed, epoch, f"{row.id}#{copy}" if copy else row.id)
        dialogue, gold = row.dialogue, script.operations
        if self.role == "rfis":
            dialogue, gold = replacements_made(row.dialogue, script)
        if self.role != "fused":
            return self.example(row, script, self._perturb(gold, dialogue, rng))
        if rng.random() >= self.perturbation.fused_share:
            return None
        # The rewrite is learned after wrong operations too, but writing wrong operations is not: they are prompt.
        noisy = operation_pieces(self._perturb(gold, dialogue, rng), self.order)
        return Example(dialogue, None, (*self.prompt, *noisy, Marker.SEP), (row.rewrite,), self.layout)

    def _perturb(
        self, operations: Sequence[Operation], dialogue: Dialogue, rng: random.Random
    ) -> tuple[Operation, ...]:
        return perturb_operations(
            operations,
            dialogue,
            rng,
            prob_p=self.perturbation.prob_p,
            prob_r=self.perturbation.prob_r,
            insertions_only=self.role == "rfis",
        )


def replacements_made(dialogue: Dialogue, script: EditScript) -> tuple[Dialogue, tuple[Operation, ...]]:
    """Return the dialogue with the script's replacements made, and the insertions that are left (TEO-RFIS)."""
    made = EditScript(tuple(edit for edit in script if not isinstance(edit, Insert)))
    left = tuple(operation for operation in script.operations if operation.is_insertion)
    return replace(dialogue, utterance=made.apply(dialogue.utterance)), left
