"""FollowUp (Liu et al., 2019): English questions to a table; a question, the follow-up to it, and both fused into one.

Four tab columns; the last is the number of the table, which is no input. The fused question is the rewrite. Rows with
the same first question stay together when the development set is carved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from teo.data.files import PARTS, find_part, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import CARVED, Splits, of_one_file, of_unnamed_file
from teo.dialogue import Dialogue

_COLUMNS = 4


class FollowUpReader:
    """Rows of `train.tsv` and `test.tsv`."""

    name = "followup"
    file_format = "lines of 4 tab columns: question, follow-up, fused question, table (FollowUp)"
    options: Mapping[str, tuple[str, ...]] = {}

    def splits(self, path: Path) -> Splits:
        """Return the splits: the dataset has no development set of its own."""
        if path.is_file():
            return of_one_file(CARVED, path.stem) if path.stem in PARTS else of_unnamed_file()
        return CARVED

    def locate(self, path: Path, part: str) -> Path:
        """Return the file of a part."""
        return find_part(path, part, (f"{part}.tsv",))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows of a part."""
        for number, line in read_lines(file):
            columns = [column.strip() for column in line.split("\t")] if line is not None else []
            if len(columns) != _COLUMNS or not all(columns):
                found = len([column for column in columns if column])
                yield Skipped(file, str(number), f"expected {_COLUMNS} tab columns in UTF-8, found {found}")
                continue
            question, follow_up, fused, table = columns
            if not table.isdecimal():
                yield Skipped(file, str(number), f"expected the number of a table in column 4, found '{table}'")
                continue
            row = Row(f"followup-{part}-{number:04d}", Dialogue((question,), follow_up), fused)
            yield Entry(row, group=question)


FOLLOWUP = FollowUpReader()
