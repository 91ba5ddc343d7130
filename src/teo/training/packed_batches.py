"""Fine-tuning batches for the backbone: a row is read once, and all roles' texts are written behind it in one pass.

`direct`, `fused` (gold operations), `fused` again from perturbed operations, and `fast` share the encoder's work,
where most of the time goes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.utils.data import Dataset

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.layouts import Marker, Pieces, operation_pieces
from teo.runtime.torch_codec import Codec
from teo.training.config import PerturbationSettings
from teo.training.examples import PROMPTS, ExampleMaker
from teo.training.perturbation import noise_source, perturb_operations
from teo.training.pretraining.batches import Bucket, collate
from teo.training.pretraining.noise import NoisedExample, Segment

PACKED_ROLES = ("direct", "fused", "fast")
_POOL = 32
"""Batches whose rows are sorted by length together."""
_ROUND = 16
"""Lengths are filled up to multiples of this, so that few shapes are compiled."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A row's ids that no epoch changes."""

    source: list[int]
    segments: tuple[Segment, ...]


class PackedBatches(Dataset[dict[str, torch.Tensor]]):
    """Batch n of a fine-tuning run; what it holds depends on the seed and n alone."""

    def __init__(
        self,
        rows: Sequence[Row],
        codec: Codec,
        *,
        perturbation: PerturbationSettings,
        roles: Sequence[str],
        source_limit: int,
        target_limit: int,
        batch_rows: int,
        epochs: int,
        seed: int,
        repeats: Sequence[int] | None = None,
    ) -> None:
        self.codec, self.perturbation, self.seed, self.batch_rows = codec, perturbation, seed, batch_rows
        self.roles = tuple(roles)
        self.rows: list[Row] = []
        self.operations = []
        self.encoded: list[_Encoded] = []
        makers = [ExampleMaker(role, shared=True) for role in self.roles]
        self.left_out = 0
        items: list[int] = []
        for row, repeat in zip(rows, repeats or [1] * len(rows), strict=True):
            script = derive_edits(row.dialogue.utterance, row.rewrite)
            made = [maker.example(row, script).fit(codec.encode, codec.measure, source_limit)[0] for maker in makers]
            segments = tuple(self._segment(example.prompt, example.target) for example in made)
            if max(len(segment.ids) for segment in segments) > target_limit:
                self.left_out += 1
                continue
            items += [len(self.rows)] * repeat
            self.rows.append(row)
            self.operations.append(script.operations)
            self.encoded.append(_Encoded(codec.encode(made[0].source), segments))
        self.items = items
        self.per_epoch = -(-len(items) // batch_rows)
        self.epochs = epochs
        self._order = lru_cache(2)(self._make_order)

    def __len__(self) -> int:
        return self.per_epoch * self.epochs

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        epoch, number = divmod(index, self.per_epoch)
        chosen = self._order(epoch)[number]
        examples = [self._example(item, epoch) for item in chosen]
        source = max(len(example.source) for example in examples)
        target = max(sum(len(segment.ids) - 1 for segment in example.segments) for example in examples)
        return collate(examples, Bucket(_round(source), _round(target), len(examples)))

    def _make_order(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"order/{self.seed}/{epoch}")
        order = list(self.items)
        rng.shuffle(order)
        pool, size = self.batch_rows * _POOL, self.batch_rows
        batches: list[list[int]] = []
        for first in range(0, len(order), pool):
            part = sorted(order[first : first + pool], key=lambda item: len(self.encoded[item].source))
            batches += [part[k : k + size] for k in range(0, len(part), size)]
        rng.shuffle(batches)
        return batches

    def _example(self, item: int, epoch: int) -> NoisedExample:
        encoded, row = self.encoded[item], self.rows[item]
        segments = list(encoded.segments)
        if "fused" in self.roles and self.perturbation.operations == "perturbed":
            rng = noise_source(self.seed, epoch, row.id)
            if rng.random() < self.perturbation.fused_share:
                settings = self.perturbation
                noisy = perturb_operations(
                    self.operations[item], row.dialogue, rng, prob_p=settings.prob_p, prob_r=settings.prob_r
                )
                prompt = (*PROMPTS["fused"], *operation_pieces(noisy), Marker.SEP)
                segments.append(self._segment(prompt, (row.rewrite,)))
        return NoisedExample(encoded.source, segments)

    def _segment(self, prompt: Pieces, target: Pieces) -> Segment:
        start = self.codec.decoder_start(prompt)
        return Segment([*start, *self.codec.encode_target(target)], len(start))


def _round(length: int) -> int:
    return -(-length // _ROUND) * _ROUND
