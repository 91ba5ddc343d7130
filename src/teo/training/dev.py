"""Exact match on the development rows, by greedy decoding: what chooses a checkpoint."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import EditScript, Operation
from teo.layouts import Pieces, operation_pieces, read_operation_pieces, split_at_separator, text_of
from teo.placement import execute_pieces
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import TorchGenerator
from teo.training.examples import ExampleMaker
from teo.training.processes import distributed_rank, gather
from teo.units import scoring_units

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a model in training is decoded."""

    device: str
    source_limit: int
    target_limit: int
    batch_size: int
    bf16: bool = False

    def write(self, model: Any, codec: Codec, maker: ExampleMaker, rows: Sequence[Row], given: Given) -> list[Pieces]:
        """Return what the model writes for each row, in order; every process decodes its share of the rows."""
        scripts = [derive_edits(row.dialogue.utterance, row.rewrite) for row in rows]
        rank, world = distributed_rank()
        mine = range(rank, len(rows), world)
        sources: list[Pieces] = []
        for k in mine:
            example = maker.example(rows[k], scripts[k], None if given is None else given[k])
            sources.append(example.fit(codec.encode, codec.measure, self.source_limit)[0].source)
        generator = TorchGenerator(
            model,
            codec,
            device=self.device,
            source_limit=self.source_limit,
            batch_size=self.batch_size,
            max_new_tokens=self.target_limit,
        )
        cast = torch.autocast("cuda", torch.bfloat16) if self.bf16 else contextlib.nullcontext()
        with cast:
            written = generator.generate(sources, prompts=[maker.prompt] * len(sources)) if sources else []
        return gather(dict(zip(mine, (one.pieces for one in written), strict=True)), len(rows))


Given = Sequence[Sequence[Operation]] | None


@dataclass(slots=True)
class DevSet:
    """The development rows and the roles that are judged on them."""

    rows: Sequence[Row]
    makers: Sequence[ExampleMaker]
    decoding: Decoding
    predicted: Given = None
    """Operations that a finished stage 1 predicts for these rows; None: a stage 1 in the same weights, else gold."""
    gold_only: bool = False
    scripts: list[EditScript] = field(init=False)

    def __post_init__(self) -> None:
        self.scripts = [derive_edits(row.dialogue.utterance, row.rewrite) for row in self.rows]

    def evaluate(self, model: Any, codec: Codec) -> dict[str, float]:
        """Return the exact match of each role, and `em`: their mean without stage 1, which chooses the checkpoint."""
        operations = self.predicted
        scores: dict[str, float] = {}
        for maker in self.makers:
            given = operations if maker.role == "stage2" and not self.gold_only else None
            written = self.decoding.write(model, codec, maker, self.rows, given)
            if maker.role == "stage1":
                operations = [read_operation_pieces(pieces).operations for pieces in written]
            right = [
                is_right(maker, pieces, row, script)
                for pieces, row, script in zip(written, self.rows, self.scripts, strict=True)
            ]
            scores[maker.role] = sum(right) / len(right)
        final = [score for role, score in scores.items() if role != "stage1"] or list(scores.values())
        return {"em": sum(final) / len(final), **{f"em_{role}": score for role, score in scores.items()}}


def predict_operations(
    model: Any, codec: Codec, maker: ExampleMaker, rows: Sequence[Row], decoding: Decoding
) -> list[tuple[Operation, ...]]:
    """Return the operations that stage 1 writes for each row."""
    written = decoding.write(model, codec, maker, rows, None)
    return [read_operation_pieces(pieces).operations for pieces in written]


def is_right(maker: ExampleMaker, pieces: Pieces, row: Row, script: EditScript) -> bool:
    """Tell whether what a role wrote is what it should have written, as the field counts it (units, lower-cased)."""
    if maker.role == "stage1":
        gold = read_operation_pieces(operation_pieces(script.operations, maker.order)).operations
        said = read_operation_pieces(pieces).operations
        return [_units(operation) for operation in said] == [_units(operation) for operation in gold]
    if maker.role == "fast":
        rewrite = execute_pieces(pieces, row.dialogue.utterance).text
    elif maker.role == "fused":
        rewrite = text_of(split_at_separator(pieces)[1])
    else:
        rewrite = text_of(pieces)
    return scoring_units(rewrite) == scoring_units(row.rewrite)


def _units(operation: Operation) -> tuple[list[str], list[str]]:
    return scoring_units(operation.old), scoring_units(operation.new)
