"""Input files, and the parts that they are cut into."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from teo.errors import InputError, MissingExtraError
from teo.records import BLANK, require_lines
from teo.scale.parts import InputFile, Part
from teo.scale.stores import Store, is_there, open_store

Format = Literal["jsonl", "parquet"]
SUFFIXES: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
MOST_PART_ROWS = 2048
"""Rows of a part in a large job: the window in which rows are sorted by length."""
_MANY_PARTS = 256
"""Parts that are enough to keep every core busy: beyond them, parts grow."""
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of a job: the files' format, the files, and their parts in order."""

    format: Format
    sources: tuple[InputFile, ...]
    parts: tuple[Part, ...]
    part_rows: int = MOST_PART_ROWS
    """Rows of a part; the last part of a file may have fewer."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(source.rows for source in self.sources)


def plan_input(location: str, part_rows: int | None, least: int = 1) -> Plan:
    """Return the files of an input, read once to count and hash them, and cut into parts of `part_rows`.

    None: between `least` and 2,048 rows, as the number of rows asks for. A small job has enough parts for every core
    and repeats little after a kill.
    """
    store, path = open_store(location)
    folder, files = store.find(path)
    kind = _require_format(location, files, missing=files == [path] and not is_there(store, path))
    cutter = _Cutter(part_rows, min(least, MOST_PART_ROWS))
    sources = []
    for file in files:
        name = str(PurePosixPath(file).relative_to(folder)) if folder != "." else file
        sources.append(_plan_file(store, file, name, kind, cutter))
    parts = [
        (file, source.name, piece)
        for file, source, pieces in zip(files, sources, cutter.files, strict=True)
        for piece in pieces
    ]
    if not parts:  # no rows at all: one part without any, so that there is an output
        parts = [(files[0], sources[0].name, (0, 1, 0, 0))]
    numbered = (Part(number, file, name, *piece) for number, (file, name, piece) in enumerate(parts))
    return Plan(kind, tuple(sources), tuple(numbered), cutter.rows)


def format_of(path: str) -> Format | None:
    """Return the format of a file by the end of its name, in capitals or not; None if it is no input's."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())


def _require_format(location: str, files: Sequence[str], *, missing: bool) -> Format:
    """Return the one format that all files have; raises for a file of no format: it must not be skipped in silence."""
    endings = ", ".join(SUFFIXES)
    kinds = {kind for kind in map(format_of, files) if kind is not None}
    others = [file for file in files if format_of(file) is None]
    if missing and others:
        raise InputError(f"{location}: expected a file, a folder or a glob, found nothing of that name; check the path")
    if not kinds and len(files) == 1:
        raise InputError(f"{location}: expected a file that ends in {endings}; rename or convert it")
    if not kinds:
        raise InputError(
            f"{location}: expected files that end in {endings}; found none; give a file, a folder or a glob"
        )
    if others:
        more = f" and {len(others) - 1} more" if others[1:] else ""
        raise InputError(
            f"{location}: expected only files that end in {endings}, found {others[0]}{more}; convert or move them, or "
            "give a glob that leaves them out, such as 'FOLDER/*.jsonl'"
        )
    if len(kinds) > 1:
        raise InputError(f"{location}: expected JSONL or Parquet, found both; give a glob such as {location}/*.jsonl")
    return kinds.pop()


_Piece = tuple[int, int, int, int]
"""Rows, number of the first, start and end, as in `Part`."""


class _Cutter:
    """Cuts files into pieces of equal rows; while there are very many, neighbours are joined."""

    def __init__(self, part_rows: int | None, least: int) -> None:
        self.rows, self._grows = part_rows or least, part_rows is None
        self.files: list[list[_Piece]] = []
        self._count = 0

    def add(self, piece: _Piece) -> _Piece | None:
        """Add a full piece of the last file; returns one that is no longer full, to be continued."""
        self.files[-1].append(piece)
        self._count += 1
        if not self._grows or self._count <= _MANY_PARTS or 2 * self.rows > MOST_PART_ROWS:
            return None
        self.rows *= 2
        self.files = [_join_pairs(pieces) for pieces in self.files]
        self._count = sum(map(len, self.files))
        last = self.files[-1][-1]
        if last[0] == self.rows:
            return None
        self._count -= 1
        return self.files[-1].pop()


def _join_pairs(pieces: list[_Piece]) -> list[_Piece]:
    joined = []
    for place in range(0, len(pieces), 2):
        rows, first, start, end = pieces[place]
        if place + 1 < len(pieces):
            rows, end = rows + pieces[place + 1][0], pieces[place + 1][3]
        joined.append((rows, first, start, end))
    return joined


def _plan_file(store: Store, file: str, name: str, kind: Format, cutter: _Cutter) -> InputFile:
    cutter.files.append([])
    try:
        return (_plan_jsonl if kind == "jsonl" else _plan_parquet)(store, file, name, cutter)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file}: cannot be read: {reason}; give files that are there and yours to read") from error


def _plan_jsonl(store: Store, file: str, name: str, cutter: _Cutter) -> InputFile:
    """Return a file of lines, and cut it into parts; blank lines are no rows."""
    digest = hashlib.blake2b(digest_size=16)
    total = position = rows = start = 0
    first, opening = 1, b""
    with store.open(file) as lines:
        for number, line in enumerate(lines, 1):
            digest.update(line)
            position += len(line)
            if line.strip(BLANK):
                rows, total = rows + 1, total + 1
                if total == 1:
                    opening = line
                elif total == 2 and not line.strip(BLANK).endswith(b"}"):  # a first row alone may just be a bad one
                    _require_lines(file, opening)
            if rows == cutter.rows:
                reopened = cutter.add((rows, first, start, position))
                rows, first, start = reopened[:3] if reopened else (0, number + 1, position)
    if rows:
        cutter.files[-1].append((rows, first, start, position))
    return InputFile(name, total, position, digest.hexdigest())


def _require_lines(file: str, first: bytes) -> None:
    try:
        require_lines(first)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _plan_parquet(store: Store, file: str, name: str, cutter: _Cutter) -> InputFile:
    """Return a Parquet file, and cut it into parts; all of it is hashed."""
    parquet, digest, size = require_parquet(file), hashlib.blake2b(digest_size=16), 0
    from pyarrow import ArrowInvalid

    try:
        with store.open(file) as stream:
            total = int(parquet.ParquetFile(stream).metadata.num_rows)
            stream.seek(0)
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except ArrowInvalid as error:
        raise InputError(f"{file}: expected a Parquet file, found something else ({error})") from error
    start = 0
    while total - start >= cutter.rows:
        end = start + cutter.rows
        reopened = cutter.add((cutter.rows, start + 1, start, end))
        start = reopened[2] if reopened else end
    if start < total:
        cutter.files[-1].append((total - start, start + 1, start, total))
    return InputFile(name, total, size, digest.hexdigest())


def require_parquet(feature: str) -> Any:
    """Return pyarrow's Parquet module; without it the extra to install is named."""
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{feature}: Parquet", str(error.name), "scale") from None
    return parquet
