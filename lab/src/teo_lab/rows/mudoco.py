"""MuDoCo-QR (Apple): assistant dialogues with rewrites, of which only train and dev can be had.

Its dev part covers all six domains, its train part two. So half of the dialogues of dev serve for training, the other
half for development; a dialogue is never in both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from teo.data import load_rows
from teo.data.row import Row

Part = Literal["train", "dev"]
_TURN = re.compile(r"-turn\d+$")


def dialogue_id(row_id: str) -> str:
    """Return the dialogue that a row's id names: `calling-dial3` of `calling-dial3-turn2`."""
    return _TURN.sub("", row_id)


def part_of(row_id: str) -> Part:
    """Return the part of a row of dev, by a hash of its dialogue."""
    digest = hashlib.sha256(f"mudoco/{dialogue_id(row_id)}".encode()).digest()
    return "train" if digest[0] % 2 else "dev"


def mudoco_rows(path: Path, part: Part) -> Iterator[Row]:
    """Yield the rows of a part: of `dev.jsonl` half of the dialogues, of `train.jsonl` all for training, none for dev.

    Rows of one dialogue share an id in the file of train, so ids get the row's number.
    """
    whole = path.stem == "train"
    if whole and part != "train":
        return
    for number, row in enumerate(load_rows("jsonl", path, "all", strict=False).rows):
        if whole or part_of(row.id) == part:
            yield Row(f"mudoco-{path.stem}:{row.id}:{number}", row.dialogue, row.rewrite)
