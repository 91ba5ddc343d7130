"""Fast fine-tuning of the backbone: a row is encoded once, and all roles learn their texts from that one encoding.

The same examples and losses as teo.training.trainer has for shared roles, several times faster on a GPU; for models of
other families and for roles that read operations in their source, the trainer is the way.
"""

from __future__ import annotations

import json
import logging
import random
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
from teo.training.batches import ExampleDataset, like_batches
from teo.training.config import TrainConfig
from teo.training.examples import Example
from teo.training.loop import LOG, Loop, LoopSettings, PackedModel
from teo.training.pretraining.batches import Bucket, collate
from teo.training.pretraining.noise import NoisedExample, Segment
from teo.training.pretraining.pretrain import load_batches

PACKED_ROLES = ("direct", "fused", "fast")
_ROUND = 16
"""Lengths are filled up to multiples of this, so that few shapes are compiled."""

logger = logging.getLogger(__name__)


def check_packed(config: TrainConfig, model: Any, roles: Sequence[str], processes: int = 1) -> None:
    """Refuse what packing cannot train, naming the key and what can."""
    if not isinstance(model, TeoForConditionalGeneration):
        raise ConfigError(f"packed: expected our own backbone (model type teo), found {model.config.model_type}")
    if not config.shared or not set(roles) <= set(PACKED_ROLES):
        raise ConfigError(
            f"packed: expected shared = true and roles among {', '.join(PACKED_ROLES)}; found {', '.join(roles)}"
        )
    if processes > 1:
        raise ConfigError(f"packed: expected one process, found {processes}; start it without a launcher")
    refused = {
        "evaluation.every": (config.evaluation.every, 0),
        "optimisation.bf16": (config.optimisation.bf16, True),
        "perturbation.operations": (config.perturbation.operations == "predicted", False),
    }
    for key, (found, able) in refused.items():
        if found != able:
            wanted = '"perturbed" or "gold"' if key == "perturbation.operations" else json.dumps(able)
            raise ConfigError(f"{key}: packed training can do {wanted} only; change it, or set packed = false")


@dataclass(frozen=True, slots=True)
class _Packed:
    """A row's ids that no epoch changes, and the makers that add noisy texts to them."""

    row: int
    copy: int
    source: list[int]
    segments: list[Segment]
    makers: list[int]


class PackedBatches(Dataset[dict[str, torch.Tensor]]):
    """Batch n of a fine-tuning run; what it holds depends on the seed and n alone."""

    def __init__(self, dataset: ExampleDataset, *, batch_rows: int, epochs: int, seed: int) -> None:
        self.dataset, self.batch_rows, self.epochs, self.seed = dataset, batch_rows, epochs, seed
        self.packed = _pack(dataset)
        self.lengths = [len(packed.source) for packed in self.packed]
        self.per_epoch = -(-len(self.packed) // batch_rows)
        self._order = lru_cache(2)(self._make_order)

    def __len__(self) -> int:
        return self.per_epoch * self.epochs

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        epoch, number = divmod(index, self.per_epoch)
        examples = [self.example(item, epoch) for item in self._order(epoch)[number]]
        source = max(len(example.source) for example in examples)
        target = max(sum(len(segment.ids) - 1 for segment in example.segments) for example in examples)
        return collate(examples, Bucket(_round(source), _round(target), len(examples)))

    def example(self, item: int, epoch: int) -> NoisedExample:
        """Return a row's source and the texts of all its roles, as an epoch has them."""
        packed = self.packed[item]
        row, script = self.dataset.rows[packed.row], self.dataset.scripts[packed.row]
        segments = list(packed.segments)
        for number in packed.makers:
            noisy = self.dataset.makers[number].noisy_example(row, script, epoch, packed.copy)
            if noisy is not None:
                segments.append(_segment(self.dataset.codec, noisy))
        return NoisedExample(packed.source, segments)

    def _make_order(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"order/{self.seed}/{epoch}")
        return like_batches(range(len(self.packed)), self.lengths, self.batch_rows, rng)


def _pack(dataset: ExampleDataset) -> list[_Packed]:
    """Return the items of a dataset by row and copy; copies of a row share their ids."""
    by_row: dict[tuple[int, int], list[int]] = {}
    for maker, row, copy in dataset.items:
        by_row.setdefault((row, copy), []).append(maker)
    packed: list[_Packed] = []
    first: dict[int, _Packed] = {}
    for (row, copy), makers in by_row.items():
        if row not in first:
            clean = [dataset.makers[k].example(dataset.rows[row], dataset.scripts[row]) for k in makers]
            segments = [_segment(dataset.codec, example) for example in clean]
            first[row] = _Packed(row, copy, dataset.encode(clean[0])["source"], segments, makers)
        packed.append(_Packed(row, copy, first[row].source, first[row].segments, makers))
    return packed


def _segment(codec: Codec, example: Example) -> Segment:
    """Return the text of an example; its source is that of its row, since no packed role reads operations."""
    start = codec.decoder_start(example.prompt)
    return Segment([*start, *codec.encode_target(example.target)], len(start))


def _round(length: int) -> int:
    return -(-length // _ROUND) * _ROUND


def fit_packed(model: Any, dataset: ExampleDataset, config: TrainConfig, work: Path, device: str) -> int:
    """Fit the model to the examples in place and return how many updates it took; a stopped run goes on."""
    fit = config.optimisation
    batches = PackedBatches(dataset, batch_rows=fit.batch_size, epochs=fit.epochs, seed=config.seed)
    steps = fit.steps or len(batches)
    logger.info("%d rows, %d updates on %s", len(batches.packed), steps, device)
    settings = LoopSettings(
        steps=min(steps, len(batches)),
        learning_rate=fit.learning_rate,
        warmup=round(fit.warmup * steps),
        weight_decay=fit.weight_decay,
        clip=fit.clip,
        r_drop=fit.r_drop,
        ema=fit.ema,
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
