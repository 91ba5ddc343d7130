"""Examples to tensors: the dataset that redraws its noise every epoch, the order of its rows, and the collator."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import DataError
from teo.layouts import Pieces, Truncation
from teo.models.backbone import IGNORED
from teo.runtime.torch_codec import Codec
from teo.training.config import TrainConfig
from teo.training.examples import Example, ExampleMaker
from teo.training.forked import map_slices
from teo.training.perturbation import LONGEST_SPAN
from teo.training.rows import RunRows

_POOL = 50
"""Batches whose rows are sorted by length together."""

logger = logging.getLogger(__name__)


class Feature(TypedDict):
    """The ids of one example: what is read, what the decoder's text starts with, and what it is to write."""

    source: list[int]
    start: list[int]
    target: list[int]


@dataclass(frozen=True, slots=True)
class DataReport:
    """What preparing the rows found."""

    examples: int
    truncated: int
    """Examples that lost turns to the source limit."""
    dropped_turns: int
    left_out: int
    """Examples whose target is longer than the target limit."""

    def __str__(self) -> str:
        text = f"{self.examples} examples"
        if self.truncated:
            text += (
                f", {self.truncated} of them read in part ({self.dropped_turns} turns dropped whole, over source_limit)"
            )
        return text + (f", {self.left_out} left out (target over target_limit)" if self.left_out else "")


class ExampleDataset(Dataset[list[Feature]]):
    """Every row once for each role, encoded; `set_epoch` redraws the noise."""

    def __init__(
        self,
        rows: Sequence[Row],
        makers: Sequence[ExampleMaker],
        codec: Codec,
        *,
        source_limit: int,
        target_limit: int,
        positions: int = 0,
        repeats: Sequence[int] | None = None,
        workers: int = 0,
    ) -> None:
        self.codec = codec
        self.rows = list(rows)
        self.scripts = map_slices(self._derive, len(self.rows), workers)
        self.makers = list(makers)
        self.source_limit = source_limit
        self.epoch = 0
        self.sizes: list[tuple[int, int]] = []
        """Of each item: tokens of its source and of its target."""
        self.items: list[tuple[int, int, int]] = []
        """Of each item: the number of its maker, of its row, and of the copy of a repeated row."""
        repeats = repeats or [1] * len(self.rows)
        measured = map_slices(self._measure, len(self.rows), workers)
        truncated = dropped = left_out = 0
        for k in range(len(self.makers)):
            for n, row in enumerate(self.rows):
                source, target, truncation = measured[n][k]
                if positions and source + 2 * LONGEST_SPAN > positions:
                    raise DataError(
                        f"row {row.id}: its utterance and operations take {source} tokens, and the model has "
                        f"{positions} positions; leave the row out"
                    )
                if target > target_limit:
                    left_out += repeats[n]
                    continue
                truncated += repeats[n] * bool(truncation)
                dropped += repeats[n] * truncation.turns
                self.items += [(k, n, copy) for copy in range(repeats[n])]
                self.sizes += [(source, target)] * repeats[n]
        self.report = DataReport(len(self.items), truncated, dropped, left_out)
        if not self.items:
            raise DataError(f"no rows to train on: {self.report}; raise model.target_limit or give other data")

    @classmethod
    def of_config(
        cls, config: TrainConfig, rows: RunRows, makers: Sequence[ExampleMaker], codec: Codec, positions: int = 0
    ) -> ExampleDataset:
        """Return the examples of a run."""
        return cls(
            rows.train,
            makers,
            codec,
            source_limit=config.model.source_limit,
            target_limit=config.model.target_limit,
            positions=positions,
            repeats=rows.repeats,
            workers=config.optimisation.workers,
        )

    @property
    def lengths(self) -> list[int]:
        """Of each item: tokens of source and target together."""
        return [source + target for source, target in self.sizes]

    def _derive(self, part: range) -> list[EditScript]:
        rows = (self.rows[n] for n in part)
        return [derive_edits(row.dialogue.utterance, row.rewrite) for row in rows]

    def _measure(self, part: range) -> list[list[tuple[int, int, Truncation]]]:
        """Return of each row and maker the tokens of source and target and what was cut, with the gold operations."""
        # In one process this also fills the codec's cache for the workers.
        return [self._measure_row(n) for n in part]

    def _measure_row(self, number: int) -> list[tuple[int, int, Truncation]]:
        sources: dict[tuple[Dialogue, Pieces | None], tuple[int, Truncation]] = {}
        measured = []
        for maker in self.makers:
            example = maker.example(self.rows[number], self.scripts[number])
            key = (example.dialogue, example.operations)
            if key not in sources:  # most roles read the same
                fitted, truncation = self._fit(example)
                sources[key] = (len(self.codec.encode(fitted.source)), truncation)
            source, truncation = sources[key]
            measured.append((source, len(self.codec.encode_target(example.target)), truncation))
        return measured

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose noise the examples get."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> list[Feature]:
        return self.features(index, self.epoch)

    def features(self, index: int, epoch: int) -> list[Feature]:
        """Return what an item teaches in an epoch."""
        maker, row, copy = self.items[index]
        examples = self.makers[maker].training_examples(self.rows[row], self.scripts[row], epoch, copy)
        return [self.encode(example) for example in examples]

    def encode(self, example: Example) -> Feature:
        """Return the ids of an example, read in part where it does not fit."""
        fitted, _ = self._fit(example)
        return {
            "source": self.codec.encode(fitted.source),
            "start": self.codec.decoder_start(fitted.prompt),
            "target": self.codec.encode_target(fitted.target),
        }

    def _fit(self, example: Example) -> tuple[Example, Truncation]:
        return example.fit(self.codec.encode, self.codec.measure, self.source_limit)


class EpochOrder(Sampler[int]):
    """The order of a dataset's examples: shuffled each epoch, batches of like length, the same in every process."""

    def __init__(self, dataset: ExampleDataset, seed: int, batch_size: int) -> None:
        self.dataset, self.seed, self.batch_size = dataset, seed, batch_size

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"order/{self.seed}/{self.dataset.epoch}")
        batches = like_batches(range(len(self.dataset)), self.dataset.lengths, self.batch_size, rng)
        return iter([index for batch in batches for index in batch])


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


@dataclass(frozen=True, slots=True)
class Collator:
    """Features to padded tensors; the decoder's prompt carries no loss."""

    pad_id: int

    def __call__(self, items: Sequence[Sequence[Feature]]) -> dict[str, Tensor]:
        """Return input_ids, attention_mask, decoder_input_ids and labels."""
        features = [feature for item in items for feature in item]
        sources = [feature["source"] for feature in features]
        written = [feature["start"] + feature["target"][:-1] for feature in features]
        labels = [[IGNORED] * (len(feature["start"]) - 1) + feature["target"] for feature in features]
        return {
            "input_ids": pad(sources, self.pad_id),
            "attention_mask": pad([[1] * len(source) for source in sources], 0),
            "decoder_input_ids": pad(written, self.pad_id),
            "labels": pad(labels, IGNORED),
        }


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Return the rows as one tensor, filled up on the right."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])
