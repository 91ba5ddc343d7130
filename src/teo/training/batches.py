"""Batch n of a fine-tuning run: rows of like length, in an order that the seed and the epoch alone decide.

Roles that share weights and read the dialogue alone can be packed: a row is encoded once, and all of them learn their
texts from that one encoding. Only our own backbone reads packed batches.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset

from teo.models import TeoForConditionalGeneration
from teo.training.config import OptimisationSettings, TrainConfig
from teo.training.dataset import ExampleDataset
from teo.training.forked import map_slices
from teo.training.packing import PackedExample, Segment, collate_plain, collate_rounded, round_up

_POOL = 50
"""Batches whose rows are sorted by length together."""

Collate = Callable[[Sequence[PackedExample]], dict[str, Tensor]]


class Batches(Dataset[dict[str, Tensor]], ABC):
    """The batches of a run; what batch n holds depends on the seed and n alone."""

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]],
        settings: OptimisationSettings,
        seed: int,
        collate: Collate = collate_rounded,
    ) -> None:
        self.sizes = list(sizes)
        """Of each item: tokens of its source and of its texts."""
        self.rows, self.tokens = settings.batch_size, settings.batch_tokens
        self.epochs, self.seed, self.collate = settings.epochs, seed, collate
        self._order = lru_cache(2)(self._make_order)
        self.per_epoch = len(self._order(0)) if self.tokens else -(-len(sizes) // self.rows)

    @abstractmethod
    def examples(self, item: int, epoch: int) -> list[PackedExample]:
        """Return what an item teaches in an epoch."""

    def __len__(self) -> int:
        return self.per_epoch * self.epochs

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        epoch, number = divmod(index, self.per_epoch)
        items = self._order(epoch)[number]
        return self.collate([example for item in items for example in self.examples(item, epoch)])

    def _make_order(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"order/{self.seed}/{epoch}")
        if self.tokens:
            padded = [(round_up(source), round_up(target)) for source, target in self.sizes]
            return budget_batches(padded, self.rows, self.tokens, rng)
        return like_batches(range(len(self.sizes)), [source + target for source, target in self.sizes], self.rows, rng)


class RoleBatches(Batches):
    """Batches of any roles, for any family: every example has a source of its own."""

    def __init__(
        self, dataset: ExampleDataset, settings: OptimisationSettings, seed: int, collate: Collate = collate_rounded
    ) -> None:
        super().__init__(dataset.sizes, settings, seed, collate)
        self.dataset = dataset

    def examples(self, item: int, epoch: int) -> list[PackedExample]:
        """Return the examples of one role and row, each with its source."""
        return self.dataset.examples(item, epoch)


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

    def __init__(self, dataset: ExampleDataset, settings: OptimisationSettings, seed: int) -> None:
        self.dataset = dataset
        self.packed = pack_rows(dataset, settings.workers)
        sizes = [(len(packed.source), sum(len(text.ids) for text in packed.segments)) for packed in self.packed]
        super().__init__(sizes, settings, seed)

    def examples(self, item: int, epoch: int) -> list[PackedExample]:
        """Return a row's source and the texts of all its roles."""
        packed = self.packed[item]
        row, script = self.dataset.rows[packed.row], self.dataset.scripts[packed.row]
        segments = list(packed.segments)
        for number in packed.makers:
            noisy = self.dataset.makers[number].noisy_example(row, script, epoch, packed.copy)
            if noisy is not None:  # its source is that of its row, since no packed role reads operations
                segments.append(self.dataset.encode_text(noisy))
        return [PackedExample(packed.source, segments)]


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
    return dataset.encode_source(clean[0]), [dataset.encode_text(example) for example in clean]


def make_batches(model: Any, dataset: ExampleDataset, config: TrainConfig) -> Batches:
    """Return the batches of a run: our own backbone learns roles that share their source from one encoding of it."""
    settings, seed = config.optimisation, config.seed
    if not isinstance(model, TeoForConditionalGeneration):
        return RoleBatches(dataset, settings, seed, partial(collate_plain, pad_id=dataset.codec.pad_id))
    return (PackedBatches if config.one_source else RoleBatches)(dataset, settings, seed)


class ProcessShare(Dataset[dict[str, Tensor]]):
    """The batches of one process: an update takes as many batches of an epoch as there are processes, one for each.

    If an epoch's batches do not come out even, its last update takes some of them again.
    """

    def __init__(self, batches: Batches, rank: int = 0, world: int = 1) -> None:
        self.batches, self.rank, self.world = batches, rank, world
        self.per_epoch = -(-batches.per_epoch // world)
        """Updates of an epoch."""
        self.first = 0
        """The update that the first batch is for."""

    def __len__(self) -> int:
        return self.per_epoch * self.batches.epochs - self.first

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        epoch, update = divmod(self.first + index, self.per_epoch)
        number = (update * self.world + self.rank) % self.batches.per_epoch
        return self.batches[epoch * self.batches.per_epoch + number]


def like_batches(items: Iterable[int], lengths: Sequence[int], size: int, rng: random.Random) -> list[list[int]]:
    """Return the items in batches of like length, in random order; a batch that is not full comes last."""
    order = list(items)
    rng.shuffle(order)
    batches: list[list[int]] = []
    for first in range(0, len(order), size * _POOL):
        part = sorted(order[first : first + size * _POOL], key=lengths.__getitem__)
        batches += [part[k : k + size] for k in range(0, len(part), size)]
    last = [] if len(batches[-1]) == size else [batches.pop()]
    rng.shuffle(batches)
    return batches + last


def budget_batches(sizes: Sequence[tuple[int, int]], rows: int, tokens: int, rng: random.Random) -> list[list[int]]:
    """Return the numbers of the sizes (tokens of source and target) in batches of like size, in random order.

    A batch has at most `rows` items and, padding included, at most `tokens` tokens, unless one item has more. How many
    batches there are depends on the sizes alone.
    """
    order = list(range(len(sizes)))
    rng.shuffle(order)
    order.sort(key=sizes.__getitem__)
    batches: list[list[int]] = [[]]
    longest = 0
    for item in order:
        source, target = sizes[item]  # sorted: no source before it is longer
        longest = max(longest, target)
        if batches[-1] and (len(batches[-1]) == rows or (len(batches[-1]) + 1) * (source + longest) > tokens):
            batches.append([])
            longest = target
        batches[-1].append(item)
    rng.shuffle(batches)
    return batches
