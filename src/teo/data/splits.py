"""Which rows are for development: the one rule for every dataset without a development set of its own.

REWRITE, TASK and FollowUp publish a train and a test part only, and choosing on test would be choosing on the answer
(the paper's "dev" sets are its test sets). So a tenth of the train part is set aside. A row's position is the first
eight bytes of the BLAKE2s hash of the dataset's name, a line feed and the row's group, read as a fraction of 1; it
belongs to development if its position lies below 0.1. The group is what must stay together: the dialogue if a
dataset has dialogues, else the history and the utterance. The rule knows nothing of the order of a file, of its other
rows or of chance, so it never changes.

    train      the train part without that tenth (all of it if a dataset publishes its own development set)
    dev        that tenth, or the published development set
    train+dev  both
    test       the published test part
    all        every row there is

A single file that is no published part has no test part either: its test rows are those from position 0.9 on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

DEV_SHARE = 0.1
TEST_SHARE = 0.1
"""The share of a single file that is for testing."""


@dataclass(frozen=True, slots=True)
class Source:
    """A published part, or its rows whose position by the rule lies from `start` to `end`."""

    part: str
    start: float = 0.0
    end: float = 1.0

    def holds(self, dataset: str, group: str) -> bool:
        """Tell whether the rows of a group belong to this source."""
        digest = hashlib.blake2s(f"{dataset}\n{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.start * 2**64 <= int.from_bytes(digest, "big") < self.end * 2**64


Splits = Mapping[str, tuple[Source, ...]]

CARVED: Splits = {
    "train": (Source("train", start=DEV_SHARE),),
    "dev": (Source("train", end=DEV_SHARE),),
    "train+dev": (Source("train"),),
    "test": (Source("test"),),
    "all": (Source("train"), Source("test")),
}
"""For a dataset of a train and a test part."""

PUBLISHED: Splits = {
    "train": (Source("train"),),
    "dev": (Source("dev"),),
    "train+dev": (Source("train"), Source("dev")),
    "test": (Source("test"),),
    "all": (Source("train"), Source("dev"), Source("test")),
}
"""For a dataset with a development part of its own."""


def of_unnamed_file(part: str = "train") -> Splits:
    """Return the splits of a single file that is no published part: about 80% train, 10% dev and 10% test."""
    return {
        "train": (Source(part, start=DEV_SHARE, end=1 - TEST_SHARE),),
        "dev": (Source(part, end=DEV_SHARE),),
        "train+dev": (Source(part, end=1 - TEST_SHARE),),
        "test": (Source(part, start=1 - TEST_SHARE),),
        "all": (Source(part),),
    }


def of_one_file(splits: Splits, part: str) -> Splits:
    """Return the splits of a dataset of which one file is at hand: all of it is all of that file, the part."""
    return {**splits, "all": (Source(part),)}
