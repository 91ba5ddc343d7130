"""Packed examples: one source and the texts that the decoder learns for it, and the tensors made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from teo.layouts import Marker
from teo.models.backbone import IGNORED
from teo.models.tokenizer import SPECIAL_TOKENS

CLS_ID = SPECIAL_TOKENS.index(Marker.CLS)
_ROUND = 16
"""Lengths are filled up to multiples of this."""

Ids = list[int]


@dataclass(frozen=True, slots=True)
class Segment:
    """One decoder text: its tokens, of which the first `free` are given and carry no loss."""

    ids: Ids
    free: int


@dataclass(frozen=True, slots=True)
class PackedExample:
    """A source, the decoder's texts for it, and what the encoder must fill (position, token)."""

    source: Ids
    segments: list[Segment]
    masked: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One shape of batch; fixed shapes keep compiled code from being compiled again."""

    source: int
    """Tokens of a source."""
    target: int
    """Tokens of all decoder texts of a source together."""
    rows: int
    """Examples in a batch."""
    share: float = 1.0
    """How often batches of this shape come, against the others."""


def collate(examples: Sequence[PackedExample], bucket: Bucket) -> dict[str, torch.Tensor]:
    """Return the batch as tensors; a row's decoder texts stand one behind the other, told apart by `segment`."""
    rows = len(examples)
    source = np.zeros((rows, bucket.source), dtype=np.int32)
    decoder_input = np.zeros((rows, bucket.target), dtype=np.int32)
    labels = np.full((rows, bucket.target), IGNORED, dtype=np.int32)
    segment = np.zeros((rows, bucket.target), dtype=np.uint8)
    places: list[int] = []
    tokens: list[int] = []
    decoder_input[:, 0] = CLS_ID
    for row, example in enumerate(examples):
        source[row, : len(example.source)] = example.source
        at = 0
        for number, text in enumerate(example.segments, 1):
            length = len(text.ids) - 1
            decoder_input[row, at : at + length] = text.ids[:-1]
            labels[row, at + text.free - 1 : at + length] = text.ids[text.free :]
            segment[row, at : at + length] = number
            at += length
        for position, token in example.masked:
            places.append(row * bucket.source + position)
            tokens.append(token)
    return {
        "source": torch.from_numpy(source),
        "decoder_input": torch.from_numpy(decoder_input),
        "labels": torch.from_numpy(labels),
        "segment": torch.from_numpy(segment),
        "masked_places": torch.tensor(places, dtype=torch.int32),
        "masked_tokens": torch.tensor(tokens, dtype=torch.int32),
    }


def collate_rounded(examples: Sequence[PackedExample]) -> dict[str, torch.Tensor]:
    """Return the batch as tensors of a rounded length, so that few shapes are compiled."""
    source = max(len(example.source) for example in examples)
    target = max(sum(len(text.ids) - 1 for text in example.segments) for example in examples)
    return collate(examples, Bucket(round_up(source), round_up(target), len(examples)))


def round_up(length: int) -> int:
    """Return the length that a text takes in a batch of rounded length."""
    return -(-length // _ROUND) * _ROUND


def collate_plain(examples: Sequence[PackedExample], pad_id: int) -> dict[str, torch.Tensor]:
    """Return the batch as tensors for any family, one decoder text a row; the prompt carries no loss."""
    rows = [(example.source, text) for example in examples for text in example.segments]
    return {
        "source": pad([source for source, _ in rows], pad_id),
        "source_mask": pad([[1] * len(source) for source, _ in rows], 0),
        "decoder_input": pad([text.ids[:-1] for _, text in rows], pad_id),
        "labels": pad([[IGNORED] * (text.free - 1) + text.ids[text.free :] for _, text in rows], IGNORED),
    }


def pad(rows: Sequence[Ids], value: int) -> torch.Tensor:
    """Return the rows as one tensor, filled up on the right."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def load_batches(batches: Dataset, workers: int, device: torch.device) -> DataLoader:
    """Return a loader of ready batches, in order, made by other processes."""
    return DataLoader(
        batches,
        batch_size=None,
        num_workers=workers,
        prefetch_factor=4 if workers else None,
        pin_memory=device.type == "cuda",
    )
