"""Our own rows, one JSON object a line: {"id", "history", "utterance", "rewrite"}, or "messages" for the middle two.

Instead of "rewrite" a row may have "rewrites", a list of rewrites that are all accepted: the first is the reference,
and EM counts a match with any (a row with both keys names the first of them twice). Meaning keys ("need", "forbid";
`teo.metrics.meaning`) let an evaluation tell whether other wordings mean the same; "judged", an object of rewrites and
true or false, holds what a person said of them.

A folder holds `train.jsonl`, `dev.jsonl` and `test.jsonl`; without `dev.jsonl` the development set is carved from
train. A file named after a part (`dev.jsonl`, `test.jsonl`) is that part, and `train.jsonl` by itself is carved into
train and dev. Any other single file is split by the carved rule into train (80%), dev (10%) and test (10%), no row in
two of them, and `all` is the whole file. Rows without an id are named by their line. Text is taken exactly as it is.
Rows that share a history and an utterance stay together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from teo.data.files import NOT_UTF8, PARTS, find_part, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import MeaningKeys, Row
from teo.data.splits import CARVED, PUBLISHED, Splits, of_one_file, of_unnamed_file
from teo.dialogue import Dialogue
from teo.errors import InputError


class JsonlReader:
    """Rows of JSON lines."""

    name = "jsonl"
    file_format = 'lines of JSON objects with "history", "utterance" and "rewrite" (JSONL)'
    options: Mapping[str, tuple[str, ...]] = {}

    def splits(self, path: Path) -> Splits:
        """Return the splits that the file, or the files of the folder, can give."""
        if path.is_file():
            if path.stem not in PARTS:
                return of_unnamed_file()
            return of_one_file(CARVED if path.stem == "train" else PUBLISHED, path.stem)
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
    except (ValueError, RecursionError) as reason:  # a number too long, lists too deep
        raise InputError(f"expected a JSON object, found text that is not JSON ({reason})") from None
    dialogue = Dialogue.from_row(value)
    rewrite, *references = _read_rewrites(value)
    return Row(str(value.get("id", number)), dialogue, rewrite, tuple(references), _read_keys(value))


def _read_rewrites(value: Mapping[str, object]) -> list[str]:
    """Return the accepted rewrites of a row, the reference first."""
    if "rewrite" not in value and "rewrites" not in value:
        raise InputError('rewrite: missing; a row needs the complete utterance as "rewrite" (or a list as "rewrites")')
    rewrites = value.get("rewrites", [value.get("rewrite")])
    if not isinstance(rewrites, list) or not rewrites or not all(isinstance(text, str) for text in rewrites):
        name = "rewrites: expected a list of strings" if "rewrites" in value else "rewrite: expected a string"
        raise InputError(f"{name} with the complete utterance")
    if value.get("rewrite", rewrites[0]) != rewrites[0]:
        raise InputError("rewrites: expected the rewrite first, as the reference; leave one of the two keys out")
    return rewrites


def _read_keys(value: Mapping[str, object]) -> MeaningKeys | None:
    """Return the meaning keys of a row; None if it has none."""
    if not {"need", "forbid", "judged"} & set(value):
        return None
    judged = value.get("judged", {})
    if not isinstance(judged, dict) or not all(isinstance(verdict, bool) for verdict in judged.values()):
        raise InputError("judged: expected an object of rewrites, each with true (it means the right thing) or false")
    need, forbid = value.get("need", []), value.get("forbid", [])
    if not isinstance(need, list) or not all(_are_texts(group) and group for group in need):
        raise InputError("need: expected a list of lists of strings, one list for each part that a right rewrite has")
    if not _are_texts(forbid):
        raise InputError("forbid: expected a list of strings that a right rewrite does not have")
    return MeaningKeys(tuple(map(tuple, need)), tuple(forbid), tuple(judged.items()))


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)


JSONL = JsonlReader()
