"""Batches of pretraining examples: batch n is the same whatever made it, so that a resumed run continues as it was.

Of several processes each draws from a share of the corpora of its own (`Corpus.share`), and has batches of its own: at
step n the batches number n * processes + rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random

import torch
from torch.utils.data import Dataset

from teo.errors import DataError
from teo.training.packing import Bucket, PackedExample, collate
from teo_lab.pretraining.noise import Noise
from teo_lab.pretraining.streams import Corpus
from teo_lab.pretraining.vocabulary import Ids

_FULL = 0.6
"""Share of a bucket's source that an example must fill: padding costs as much as text."""


_TRIES = 20_000


class PretrainBatches(Dataset[dict[str, torch.Tensor]]):
    """Batch n of the run, made on the fly from the corpora."""

    def __init__(
        self,
        corpora: Sequence[Corpus],
        noise: Noise,
        buckets: Sequence[Bucket],
        batches: int,
        seed: int,
        first: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.corpora = corpora = [corpus.share(rank, world) for corpus in corpora]
        self.noise = noise
        self.buckets = buckets
        self.batches = batches
        self.seed = seed
        self.first = first
        self.rank, self.world = rank, world
        self._corpus_bounds = list(accumulate(corpus.weight for corpus in corpora))
        self._bucket_bounds = list(accumulate(bucket.share for bucket in buckets))

    def __len__(self) -> int:
        return self.batches - self.first

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        rng = Random(f"{self.seed}/{(self.first + index) * self.world + self.rank}")
        bucket = rng.choices(self.buckets, cum_weights=self._bucket_bounds)[0]
        return collate([self.example(bucket, rng) for _ in range(bucket.rows)], bucket)

    def example(self, bucket: Bucket, rng: Random) -> PackedExample:
        """Return one example that fits the bucket."""
        infilling = rng.random() < self.noise.settings.infilling
        unchanged = rng.random() < self.noise.settings.unchanged
        for _ in range(_TRIES):
            corpus = rng.choices(self.corpora, cum_weights=self._corpus_bounds)[0]
            turns = corpus.draw_dialogue(rng.random())
            last = rng.randrange(1, len(turns))
            wanted = max(24, bucket.source // 8) if rng.random() < 0.6 else rng.randint(1, 4)
            history = fitting(turns[max(0, last - wanted) : last], bucket.source - len(turns[last]) - 4)
            length = len(turns[last]) + sum(len(turn) + 1 for turn in history)
            if not history or length < _FULL * bucket.source:
                continue
            history = self.noise.join(history, rng)
            if infilling:
                made = self.noise.infilling([*history, turns[last]], rng, bucket.target)
            else:
                made = self.noise.rewriting(history, turns[last], rng, bucket.target, unchanged=unchanged)
            if made is not None and len(made.source) <= bucket.source:
                return made
        raise DataError(
            f"no dialogue of {_TRIES:,} drawn gives an example of {bucket.source} tokens: the shards are too small, "
            "their turns too long for it, or every repeated word counts as frequent; change buckets or frequent"
        )


def fitting(history: list[Ids], room: int) -> list[Ids]:
    """Return the latest turns that fit into `room` tokens with their separators."""
    first = len(history)
    while first and room >= len(history[first - 1]) + 1:
        room -= len(history[first - 1]) + 1
        first -= 1
    return history[first:]
