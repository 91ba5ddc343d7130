"""REWRITE (Su et al., 2019): Chinese chat, two turns of history, the utterance and its rewrite, a double tab between.

The published protocol has no test file: lines 1 to 18,000 are for training, the rest for testing. The border is a line
number of the file as published, so malformed lines count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from teo.data.files import NOT_UTF8, find_file, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import CARVED, Splits
from teo.dialogue import Dialogue

LAST_TRAIN_LINE = 18_000
_COLUMNS = 4


class RewriteReader:
    """Rows of `corpus.txt`."""

    name = "rewrite"
    file_format = "lines of four columns with a double tab between (REWRITE)"
    options: Mapping[str, tuple[str, ...]] = {}

    def splits(self, path: Path) -> Splits:
        """Return the splits: the dataset has no development set of its own."""
        return CARVED

    def locate(self, path: Path, part: str) -> Path:
        """Return the corpus; both parts are in it."""
        return find_file(path, ("corpus.txt",))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows on the part's side of the border."""
        for number, line in read_lines(file):
            if (number <= LAST_TRAIN_LINE) == (part == "train"):
                yield _read_line(file, number, line)


def _read_line(file: Path, number: int, line: str | None) -> Entry | Skipped:
    if line is None:
        return Skipped(file, str(number), NOT_UTF8)
    columns = [column.strip() for column in line.split("\t\t")]
    filled = [column for column in columns if column]
    if len(columns) != _COLUMNS or len(filled) != _COLUMNS:
        return Skipped(file, str(number), f"expected {_COLUMNS} columns with a double tab between, found {len(filled)}")
    *history, utterance, rewrite = columns
    row = Row(f"rewrite-{number:05d}", Dialogue(tuple(history), utterance), rewrite)
    return Entry(row, group="\t".join([*history, utterance]))


REWRITE = RewriteReader()
