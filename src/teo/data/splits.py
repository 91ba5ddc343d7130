"""Which rows are for development: the one rule for every dataset without a development set of its own.

REWRITE, TASK and FollowUp publish a train and a test part only, and choosing on test would be choosing on the answer
(the paper's "dev" sets are its test sets). So a tenth of the train part is set aside. A row belongs to it when the
first eight bytes of the BLAKE2s hash of the dataset's name, a line feed and the row's group, read as a fraction of 1,
lie below 0.1. The group is what must stay together: the dialogue where a dataset has dialogues, else the history and
the utterance. The rule knows nothing of the order of a file, of its other rows or of chance, so it never changes.

    train      the train part without that tenth (all of it where a dataset publishes its own development set)
    dev        that tenth, or the published development set
    train+dev  both
    test       the published test part
    all        every row there is
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Side = Literal["all", "dev", "rest"]

DEV_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Source:
    """A published part, or one side of it once the development rows are set aside."""

    part: str
    side: Side = "all"


Splits = Mapping[str, tuple[Source, ...]]

CARVED: Splits = {
    "train": (Source("train", "rest"),),
    "dev": (Source("train", "dev"),),
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


def of_one_file(splits: Splits, part: str) -> Splits:
    """Return the splits of a dataset of which one file is given: all of it is all of that file, the part."""
    return {**splits, "all": (Source(part),)}


def is_development(dataset: str, group: str) -> bool:
    """Tell whether the rows of a group belong to the carved development set."""
    digest = hashlib.blake2s(f"{dataset}\n{group}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < DEV_SHARE * 2**64


def on_side(dataset: str, group: str, side: Side) -> bool:
    """Tell whether the rows of a group lie on a side of the carved split."""
    return side == "all" or is_development(dataset, group) == (side == "dev")
