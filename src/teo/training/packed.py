"""Fast fine-tuning of the backbone, in large batches of equal length.

The same examples and losses as teo.training.trainer has, several times faster on a GPU. Roles that share weights and
read the dialogue alone are packed: a row is encoded once, and all of them learn their texts from that one encoding. For
models of other families the trainer is the way.
"""

from __future__ import annotations

import json
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from teo.errors import ConfigError
from teo.models import TeoForConditionalGeneration
from teo.runtime.torch_codec import Codec
from teo.training.batches import ExampleDataset, budget_batches, like_batches
from teo.training.config import OptimisationSettings, TrainConfig
from teo.training.examples import Example
from teo.training.forked import map_slices
from teo.training.loop import LOG, Loop, LoopSettings, PackedModel
from teo.training.pretraining.batches import Bucket, collate
from teo.training.pretraining.examples import NoisedExample, Segment
from teo.training.pretraining.pretrain import load_batches

_ROUND = 16
"""Lengths are filled up to multiples of this, so that few shapes are compiled."""

logger = logging.getLogger(__name__)


def check_packed(config: TrainConfig, model: Any, processes: int = 1) -> None:
    """Refuse what packing cannot train, naming the key and what can."""
    if not isinstance(model, TeoForConditionalGeneration):
        raise ConfigError(f"packed: expected our own backbone (model type teo), found {model.config.model_type}")
    if processes > 1:
        raise ConfigError(f"packed: expected one process, found {processes}; start it without a launcher")
    refused = {"evaluation.every": (config.evaluation.every, 0), "optimisation.bf16": (config.optimisation.bf16, True)}
    for key, (found, able) in refused.items():
        if found != able:
            raise ConfigError(
                f"{key}: packed training can do {json.dumps(able)} only; change it, or set packed = false"
            )


class Batches(Dataset[dict[str, torch.Tensor]], ABC):
    """Batch n of a fine-tuning run; what it holds depends on the seed and n alone."""

    def __init__(self, sizes: Sequence[tuple[int, int]], fit: OptimisationSettings, seed: int) -> None:
        self.sizes = list(sizes)
        self.rows, self.epochs, self.seed, self.tokens = fit.batch_size, fit.epochs, seed, fit.batch_tokens
        self._order = lru_cache(2)(self._make_order)
        self.per_epoch = len(self._order(0)) if self.tokens else -(-len(sizes) // self.rows)

    @abstractmethod
    def examples(self, item: int, epoch: int) -> list[NoisedExample]:
        """Return what an item teaches in an epoch."""

    def __len__(self) -> int:
        return self.per_epoch * self.epochs

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        epoch, number = divmod(index, self.per_epoch)
        examples = [example for item in self._order(epoch)[number] for example in self.examples(item, epoch)]
        source = max(len(example.source) for example in examples)
        target = max(sum(len(segment.ids) - 1 for segment in example.segments) for example in examples)
        return collate(examples, Bucket(_round(source), _round(target), len(examples)))

    def _make_order(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"order/{self.seed}/{epoch}")
        if self.tokens:
            padded = [(_round(source), _round(target)) for source, target in self.sizes]
            return budget_batches(padded, self.rows, self.tokens, rng)
        return like_batches(range(len(self.sizes)), [source for source, _ in self.sizes], self.rows, rng)


class RoleBatches(Batches):
    """Batches of any roles: every example has a source of its own."""

    def __init__(self, dataset: ExampleDataset, fit: OptimisationSettings, seed: int) -> None:
        super().__init__(dataset.sizes, fit, seed)
        self.dataset = dataset

    def examples(self, item: int, epoch: int) -> list[NoisedExample]:
        """Return the examples of one role and row, each with its source."""
        return [
            NoisedExample(ids["source"], [Segment([*ids["start"], *ids["target"]], len(ids["start"]))])
            for ids in self.dataset.features(item, epoch)
        ]


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A row's ids that no epoch changes, and the makers that add noisy texts to them."""

    row: int
    copy: int
    source: list[int]
    segments: list[Segment]
    makers: list[int]


class PackedBatches(Batches):
    """Batches of roles that share their source: a row is encoded once, with the texts of all its roles."""

    def __init__(self, dataset: ExampleDataset, fit: OptimisationSettings, seed: int) -> None:
        self.dataset = dataset
        self.packed = pack_rows(dataset, fit.workers)
        sizes = [(len(packed.source), sum(len(text.ids) for text in packed.segments)) for packed in self.packed]
        super().__init__(sizes, fit, seed)

    def examples(self, item: int, epoch: int) -> list[NoisedExample]:
        """Return a row's source and the texts of all its roles."""
        packed = self.packed[item]
        row, script = self.dataset.rows[packed.row], self.dataset.scripts[packed.row]
        segments = list(packed.segments)
        for number in packed.makers:
            noisy = self.dataset.makers[number].noisy_example(row, script, epoch, packed.copy)
            if noisy is not None:
                segments.append(encode_text(self.dataset.codec, noisy))
        return [NoisedExample(packed.source, segments)]


def pack_rows(dataset: ExampleDataset, workers: int) -> list[PackedRow]:
    """Return the items of a dataset by row and copy; copies of a row share their ids."""
    by_row: dict[int, list[int]] = {}
    copies: dict[tuple[int, int], None] = {}
    for maker, row, copy in dataset.items:
        copies.setdefault((row, copy))
        if copy == 0:
            by_row.setdefault(row, []).append(maker)
    rows = list(by_row)

    def encode(part: range) -> list[tuple[list[int], list[Segment]]]:
        return [_encode(dataset, row, by_row[row]) for row in rows[part.start : part.stop]]

    encoded = dict(zip(rows, map_slices(encode, len(rows), workers), strict=True))
    return [PackedRow(row, copy, *encoded[row], by_row[row]) for row, copy in copies]


def _encode(dataset: ExampleDataset, row: int, makers: Sequence[int]) -> tuple[list[int], list[Segment]]:
    """Return a row's source and its texts without noise."""
    clean = [dataset.makers[k].example(dataset.rows[row], dataset.scripts[row]) for k in makers]
    return dataset.encode(clean[0])["source"], [encode_text(dataset.codec, example) for example in clean]


def encode_text(codec: Codec, example: Example) -> Segment:
    """Return the text of an example; its source is that of its row, since no packed role reads operations."""
    start = codec.decoder_start(example.prompt)
    return Segment([*start, *codec.encode_target(example.target)], len(start))


def _round(length: int) -> int:
    return -(-length // _ROUND) * _ROUND


def pack(dataset: ExampleDataset, config: TrainConfig) -> Batches:
    """Return the batches of a run: roles that share their source learn from one encoding of it."""
    return (PackedBatches if config.one_source else RoleBatches)(dataset, config.optimisation, config.seed)


def fit_packed(model: Any, batches: Batches, config: TrainConfig, work: Path, device: str) -> int:
    """Fit the model to the batches in place and return how many updates it took; a stopped run goes on."""
    fit = config.optimisation
    steps = fit.steps or len(batches)
    logger.info("%d items, %d updates on %s", len(batches.sizes), steps, device)
    settings = LoopSettings(
        steps=min(steps, len(batches)),
        minutes=fit.minutes,
        learning_rate=fit.learning_rate,
        warmup=round(fit.warmup * steps),
        weight_decay=fit.weight_decay,
        clip=fit.clip,
        r_drop=fit.r_drop,
        ema=fit.ema,
        compile=fit.compile,
        log_every=config.writing.log_every,
        save_every=config.writing.checkpoint_epochs * batches.per_epoch,
    )
    target = torch.device(device)
    loop = Loop(PackedModel(model), settings, work, target)
    ahead = torch.utils.data.Subset(batches, range(loop.clock.step, len(batches)))
    loop.fit(iter(load_batches(ahead, fit.workers, target)))
    return loop.clock.step


def read_losses(work: Path) -> list[dict[str, float]]:
    """Return the steps and losses that the loop logged."""
    log = work / LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    entries = [json.loads(line) for line in lines]
    return [{"step": entry["step"], "loss": entry["decoder_loss"]} for entry in entries]
