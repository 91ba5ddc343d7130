"""What a job is made of: input files, the parts that they are cut into, and what is known of a part that is done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """An input file as it was found when the job was planned."""

    name: str
    """Its path below the input's folder: what error rows call it."""
    rows: int
    size: int
    digest: str
    """A hash of its content; of a Parquet file, of its end, where its footer is."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one file that are rewritten together and written as one file."""

    number: int
    file: str
    """The path of the input file in its store."""
    name: str
    """The input file's name, as in `Source`."""
    rows: int
    first: int
    """The number of the first row, counted from 1: of its line in JSONL, of the row in Parquet."""
    start: int
    """Where it begins in the file: at a byte of JSONL, before a row of Parquet."""
    end: int
    """Where it ends, alike."""

    @property
    def stem(self) -> str:
        """The name of what is written of it, without a suffix."""
        return f"part-{self.number:06d}"


@dataclass(frozen=True, slots=True)
class Done:
    """What is known of a part that is done."""

    number: int
    rows: int
    errors: int
    """Rows that could not be rewritten and are error rows."""
    changed: int
    """Rows whose utterance was changed."""
    repeated: int
    """Rows whose dialogue another row of the part has too, so that the model was not asked for them."""
    size: int
    """Bytes of the part's file."""
    digest: str
    """A hash of the part's file."""

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Done:
        """Return what was stored."""
        return cls(**{field.name: stored[field.name] for field in fields(cls)})
