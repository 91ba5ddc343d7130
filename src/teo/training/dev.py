"""Exact match on the development rows, by the stages and pipelines that serve: what chooses a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript, Operation, Order
from teo.layouts import operation_pieces, read_operation_pieces
from teo.pipelines import PIPELINES, predict
from teo.placement import apply_replacements
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import TorchGenerator
from teo.stages import Proposal, Stage, Stages, fit_dialogue, propose, rewrite_given
from teo.training.examples import PROMPTS, replacements_made
from teo.training.processes import distributed_rank, gather
from teo.units import is_exact_match, scoring_units

T = TypeVar("T")
Operations = tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a model in training is decoded, greedily."""

    device: str
    source_limit: int
    target_limit: int
    batch_size: int
    bf16: bool = False

    def stages(
        self, model: Any, codec: Codec, roles: Sequence[str], *, shared: bool = False, order: Order = "position"
    ) -> Stages:
        """Return a model in training as the stages of its roles."""
        generator = TorchGenerator(
            model,
            codec,
            device=self.device,
            source_limit=self.source_limit,
            batch_size=self.batch_size,
            max_new_tokens=self.target_limit,
        )
        return Stages({role: Stage(generator, PROMPTS[role] if shared else ()) for role in roles}, order, codec.layout)

    def run(self, predict: Callable[[list[int]], Sequence[T]], count: int) -> list[T]:
        """Return what `predict` gives for the rows of these numbers, in order; every process predicts its share."""
        rank, world = distributed_rank()
        mine = list(range(rank, count, world))
        precision = torch.autocast("cuda", torch.bfloat16) if self.bf16 else contextlib.nullcontext()
        with precision:
            predicted = predict(mine) if mine else []
        return gather(dict(zip(mine, predicted, strict=True)), count)


@dataclass(slots=True)
class DevSet:
    """The development rows and the roles that are judged on them."""

    rows: Sequence[Row]
    roles: Sequence[str]
    decoding: Decoding
    shared: bool = False
    order: Order = "position"
    proposals: Sequence[Operations] | None = None
    """Operations that a finished stage 1 proposes for these rows; None: a stage 1 in the same weights, else gold."""
    gold_only: bool = False
    scripts: list[EditScript] = field(init=False)

    def __post_init__(self) -> None:
        self.scripts = [derive_edits(row.dialogue.utterance, row.rewrite) for row in self.rows]

    def evaluate(self, model: Any, codec: Codec) -> dict[str, float]:
        """Return the exact match of each role, and `em`: their mean without stage 1, which chooses the checkpoint."""
        stages = self.decoding.stages(model, codec, self.roles, shared=self.shared, order=self.order)
        proposals = self.proposals
        scores: dict[str, float] = {}
        for role in self.roles:
            if role == "stage1":
                proposals = propose_operations(stages, self.rows, self.decoding)
                right = [
                    same_operations(proposed, script.operations, self.order)
                    for proposed, script in zip(proposals, self.scripts, strict=True)
                ]
            else:
                rewrites = self._rewrite(stages, role, None if self.gold_only else proposals)
                right = [is_accepted(text, row) for text, row in zip(rewrites, self.rows, strict=True)]
            scores[role] = sum(right) / len(right)
        final = [score for role, score in scores.items() if role != "stage1"] or list(scores.values())
        return {"em": sum(final) / len(final), **{f"em_{role}": score for role, score in scores.items()}}

    def _rewrite(self, stages: Stages, role: str, proposals: Sequence[Operations] | None) -> list[str]:
        """Return the rewrites of a role; stage 2 and rfis are given the proposals, or the gold operations for None."""

        def rewrite(numbers: list[int]) -> list[str]:
            if role not in ("stage2", "rfis"):
                part = [self.rows[k].dialogue for k in numbers]
                return [prediction.rewrite for prediction in predict(PIPELINES[role], stages, part)]
            pairs = [self._given(role, k, None if proposals is None else proposals[k]) for k in numbers]
            dialogues, proposed = [dialogue for dialogue, _ in pairs], [Proposal(operations) for _, operations in pairs]
            return [rewrite.text for rewrite in rewrite_given(stages, dialogues, proposed, rfis=role == "rfis")]

        return self.decoding.run(rewrite, len(self.rows))

    def _given(self, role: str, number: int, proposed: Operations | None) -> tuple[Dialogue, Operations]:
        """Return the dialogue and the operations that the second stage reads for a row."""
        dialogue, script = self.rows[number].dialogue, self.scripts[number]
        if role == "rfis":
            return replacements_made(dialogue, script) if proposed is None else replace_first(dialogue, proposed)
        return dialogue, script.operations if proposed is None else proposed


def propose_operations(stages: Stages, rows: Sequence[Row], decoding: Decoding) -> list[Operations]:
    """Return the operations that stage 1 proposes for each row."""

    def run(numbers: list[int]) -> list[Operations]:
        fitted = [fit_dialogue(stages.first.generator, rows[k].dialogue, layout=stages.layout)[0] for k in numbers]
        return [proposal.operations for proposal in propose(stages, fitted)]

    return decoding.run(run, len(rows))


def replace_first(dialogue: Dialogue, operations: Operations) -> tuple[Dialogue, Operations]:
    """Return what the second stage of TEO-RFIS reads: the utterance after the replacements, and the insertions."""
    replaced = apply_replacements(operations, dialogue.utterance).apply(dialogue.utterance)
    insertions = tuple(operation for operation in operations if operation.is_insertion)
    return replace(dialogue, utterance=replaced), insertions


def is_accepted(rewrite: str, row: Row) -> bool:
    """Tell whether a rewrite is one of those that its row accepts, as EM counts it."""
    return any(is_exact_match(rewrite, text) for text in (row.rewrite, *row.references))


def same_operations(proposed: Sequence[Operation], gold: Sequence[Operation], order: Order = "position") -> bool:
    """Tell whether stage 1 proposes the gold operations in their order, in scoring units."""
    expected = read_operation_pieces(operation_pieces(gold, order)).operations
    return [_units(operation) for operation in proposed] == [_units(operation) for operation in expected]


def _units(operation: Operation) -> tuple[list[str], list[str]]:
    return scoring_units(operation.old), scoring_units(operation.new)
