"""The pieces of a job: input files, the parts that they are cut into, and the record of a finished part."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file as it was found when the job was planned."""

    name: str
    """Its path below the input's folder, as error rows name it."""
    rows: int
    size: int
    digest: str
    """A hash of its content."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one file that are rewritten together and written as one file."""

    number: int
    file: str
    """The path of the input file in its store."""
    name: str
    """The input file's name, as in `InputFile`."""
    rows: int
    first: int
    """The number of the first row, counted from 1: of its line in JSONL, of the row in Parquet."""
    start: int
    """Its start in the file: a byte of JSONL, a row of Parquet."""
    end: int
    """Its end, likewise."""

    @property
    def stem(self) -> str:
        """The name of its output file, without a suffix."""
        return f"part-{self.number:06d}"


@dataclass(frozen=True, slots=True)
class Done:
    """The record of a finished part."""

    number: int
    rows: int
    errors: int
    """Rows that could not be rewritten and are error rows."""
    changed: int
    """Rows whose utterance was changed."""
    repeated: int
    """Rows whose dialogue another row of the part has too, so that the model was not called for them."""
    size: int
    """Bytes of the part's file."""
    digest: str
    """A hash of the part's file."""
    fault: str = ""
    """The first bad row and what is wrong with it."""

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Done | None:
        """Return the record that was stored; None if something is missing in it."""
        known = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        return cls(**known) if known.keys() >= {field.name for field in fields(cls)} - {"fault"} else None
