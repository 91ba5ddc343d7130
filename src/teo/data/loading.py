"""load_rows(name, path, split): the entry point, from a dataset's files to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from teo.data.canard import CANARD
from teo.data.files import MissingPartError
from teo.data.followup import FOLLOWUP
from teo.data.formats import describe, wrong_format
from teo.data.jsonl import JSONL
from teo.data.reader import Entry, Loaded, Reader, Skipped
from teo.data.res200k import RES200K
from teo.data.rewrite import REWRITE
from teo.data.row import Row
from teo.data.splits import Source
from teo.data.task import TASK
from teo.errors import DataError, InputError

READERS: Mapping[str, Reader] = {reader.name: reader for reader in (REWRITE, RES200K, TASK, CANARD, FOLLOWUP, JSONL)}


def load_rows(name: str, path: str | Path, split: str = "all", *, strict: bool = False, **options: str) -> Loaded:
    """Return the rows of one split of a dataset, and a report of every malformed row.

    `path` is the dataset's folder or its file. `strict` makes a malformed row an error. The options are the reader's
    own: TASK has `history` ("full" or "last-two") and `forms` ("one" or "both").
    """
    reader = find_reader(name)
    chosen = _choose_options(reader, options)
    path = Path(path)
    splits = reader.splits(path)
    if split not in splits:
        raise InputError(f"split: {name} has {', '.join(splits)}; found '{split}'")
    rows: list[Row] = []
    skipped: list[Skipped] = []
    sources = _present(reader, path, splits[split]) if split == "all" else splits[split]
    for source in sources:
        loaded = _read_source(reader, path, source, chosen)
        rows += loaded.rows
        skipped += loaded.skipped
    if strict and skipped:
        raise DataError(f"{skipped[0]} ({len(skipped)} malformed in all; without strict they are skipped)")
    if not rows:
        raise DataError(f"{path}: the split '{split}' of {name} has no rows in these files; choose another, or all")
    return Loaded(tuple(rows), tuple(skipped))


def split_names(name: str, path: str | Path) -> tuple[str, ...]:
    """Return the splits that a dataset's files at this path can give."""
    return tuple(find_reader(name).splits(Path(path)))


def find_reader(name: str) -> Reader:
    """Return the reader of a dataset by its name."""
    if name not in READERS:
        raise InputError(f"dataset: expected one of {', '.join(READERS)}; found '{name}'")
    return READERS[name]


def _choose_options(reader: Reader, options: Mapping[str, str]) -> dict[str, str]:
    for option, value in options.items():
        choices = reader.options.get(option)
        if choices is None:
            known = ", ".join(reader.options) or "no options"
            raise InputError(f"{option}: the dataset {reader.name} has {known}; leave it out")
        if value not in choices:
            raise InputError(f"{option}: expected {' or '.join(choices)}; found '{value}'")
    return {option: options.get(option, choices[0]) for option, choices in reader.options.items()}


def _present(reader: Reader, path: Path, sources: Sequence[Source]) -> list[Source]:
    """Return the sources whose files are there; it is an error when none is."""
    present, missing = [], []
    for source in sources:
        try:
            reader.locate(path, source.part)
        except MissingPartError as error:
            missing.append(error)
        else:
            present.append(source)
    if not present:
        raise missing[0]
    return present


def _read_source(reader: Reader, path: Path, source: Source, options: Mapping[str, str]) -> Loaded:
    """Return the rows of a published part that belong to the source."""
    file = reader.locate(path, source.part)
    entries: list[Entry] = []
    skipped: list[Skipped] = []
    for item in reader.read(file, source.part, options):
        if isinstance(item, Entry):
            entries.append(item)
        else:
            skipped.append(item)
    if not entries and file.is_file():
        _explain_no_rows(reader, file, skipped)
    rows = (entry.row for entry in entries if source.holds(reader.name, entry.group))
    return Loaded(tuple(rows), tuple(skipped))


def _explain_no_rows(reader: Reader, file: Path, skipped: Sequence[Skipped]) -> None:
    """Raise for a file without one good row: one sentence says more than a thousand skipped lines."""
    dataset = describe(file)[1]
    if skipped and dataset == reader.name == JSONL.name:
        # JSON lines have no other published format: the rows themselves are at fault.
        raise DataError(f"{skipped[0]} (no row of this file can be used; {len(skipped)} are malformed)")
    if skipped or dataset != reader.name:
        raise DataError(wrong_format(file, reader.file_format, reader.name))


__all__ = ["READERS", "find_reader", "load_rows", "split_names"]
