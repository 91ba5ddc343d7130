"""Our own rows, one JSON object a line: {"id", "history", "utterance", "rewrite"}, or "messages" for the first two.

A folder holds `train.jsonl`, `dev.jsonl` and `test.jsonl`; without `dev.jsonl` the development set is carved from
train. Of a single file `train` and `dev` are the two sides of the carved split, and `test` and `all` the whole file;
a file named after a part (`dev.jsonl`) is that part. Rows without an id are named by their line. Text is taken exactly
as it is. Rows that share a history and an utterance stay together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from teo.data.files import NOT_UTF8, PARTS, find_part, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import CARVED, PUBLISHED, Splits, of_one_file
from teo.dialogue import Dialogue
from teo.errors import InputError


class JsonlReader:
    """Rows of JSON lines."""

    name = "jsonl"
    form = 'lines of JSON objects with "history", "utterance" and "rewrite" (JSONL)'
    options: Mapping[str, tuple[str, ...]] = {}

    def splits(self, path: Path) -> Splits:
        """Return the splits that the file, or the files of the folder, can give."""
        if path.is_file():
            held_out = path.stem in PARTS and path.stem != "train"
            return of_one_file(PUBLISHED, path.stem) if held_out else of_one_file(CARVED, "train")
        return PUBLISHED if (path / "dev.jsonl").is_file() else CARVED

    def locate(self, path: Path, part: str) -> Path:
        """Return the file of a part."""
        return find_part(path, part, (f"{part}.jsonl",))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows of a file."""
        for number, line in read_lines(file):
            try:
                row = _read_row(line, number)
            except InputError as error:
                yield Skipped(file, str(number), str(error))
            else:
                yield Entry(row, group="\t".join([*row.dialogue.history, row.dialogue.utterance]))


def _read_row(line: str | None, number: int) -> Row:
    """Return the row of a JSON line."""
    if line is None:
        raise InputError(NOT_UTF8)
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"expected a JSON object, found text that is not JSON ({error.msg})") from error
    dialogue = Dialogue.from_row(value)
    rewrite = value.get("rewrite")
    if not isinstance(rewrite, str):
        raise InputError("rewrite: expected a string with the complete utterance")
    return Row(str(value.get("id", number)), dialogue, rewrite)


JSONL = JsonlReader()
