"""The interface of every dataset reader, and what reading returns: rows, and a report of skipped ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from teo.data.row import Row
from teo.data.splits import Splits


@dataclass(frozen=True, slots=True)
class Skipped:
    """A malformed row that was left out: the file, the location in it (a line or a field path), and why."""

    file: Path
    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.location}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row, and the group that stays together when a split is carved."""

    row: Row
    group: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of a split in the order of their files, and the malformed ones that were left out."""

    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...] = ()


class Reader(Protocol):
    """One dataset's published format.

    A reader strips white space from both ends of every published text and changes nothing else; JSONL, our own format,
    is taken exactly as it is.
    """

    @property
    def name(self) -> str:
        """The name that users type."""

    @property
    def file_format(self) -> str:
        """The published format in words, for the error on a file of another format."""

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """The choices of each option, the default first."""

    def splits(self, path: Path) -> Splits:
        """Return which published parts make up each split, given the files that are there."""

    def locate(self, path: Path, part: str) -> Path:
        """Return the file (or the folder of files) of a published part."""

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the part's rows in order, with a report for each malformed one."""
