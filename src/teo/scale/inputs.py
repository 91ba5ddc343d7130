"""Input files, and the parts that they are cut into."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from teo.errors import InputError, MissingExtraError
from teo.records import BLANK
from teo.scale.parts import Part, Source
from teo.scale.stores import Store, open_store

Format = Literal["jsonl", "parquet"]
SUFFIXES: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_FOOTER = 1 << 16
"""Bytes at the end of a Parquet file that are hashed: its footer, or the end of a long one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do: the files' format, the files, and their parts in order."""

    format: Format
    sources: tuple[Source, ...]
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(source.rows for source in self.sources)


def plan_input(location: str, part_rows: int) -> Plan:
    """Return the files of an input, read once to count and hash them, and cut into parts of at most `part_rows`."""
    store, path = open_store(location)
    folder, files = store.find(path)
    wanted = [file for file in files if PurePosixPath(file).suffix in SUFFIXES] if len(files) != 1 else files
    if not wanted:
        raise InputError(
            f"{location}: expected files that end in {', '.join(SUFFIXES)}; found none; give a file, a folder or a glob"
        )
    formats = {file: SUFFIXES.get(PurePosixPath(file).suffix) for file in wanted}
    kinds = set(formats.values())
    if None in kinds:
        raise InputError(f"{location}: expected a file that ends in {', '.join(SUFFIXES)}; rename or convert it")
    if len(kinds) > 1:
        raise InputError(f"{location}: expected JSONL or Parquet, found both; give a glob such as {location}/*.jsonl")
    (kind,) = kinds
    sources: list[Source] = []
    parts: list[Part] = []
    for file in wanted:
        name = str(PurePosixPath(file).relative_to(folder)) if folder != "." else file
        source, pieces = _plan_file(store, file, name, kind or "jsonl", part_rows)
        sources.append(source)
        parts += [Part(len(parts) + k, file, name, *piece) for k, piece in enumerate(pieces)]
    if not parts:  # no rows at all: one part without any, so that there is an output
        parts = [Part(0, wanted[0], sources[0].name, 0, 1, 0, 0)]
    return Plan(kind or "jsonl", tuple(sources), tuple(parts))


_Piece = tuple[int, int, int, int]
"""Rows, number of the first, start and end, as in `Part`."""


def _plan_file(store: Store, file: str, name: str, kind: Format, part_rows: int) -> tuple[Source, list[_Piece]]:
    try:
        return (_plan_jsonl if kind == "jsonl" else _plan_parquet)(store, file, name, part_rows)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file}: cannot be read: {reason}; give files that are there and yours to read") from error


def _plan_jsonl(store: Store, file: str, name: str, part_rows: int) -> tuple[Source, list[_Piece]]:
    """Return a file of lines and its parts; blank lines are no rows."""
    digest = hashlib.blake2b(digest_size=16)
    pieces: list[_Piece] = []
    rows = total = position = start = 0
    first = 1
    with store.open(file) as lines:
        for number, line in enumerate(lines, 1):
            digest.update(line)
            position += len(line)
            if line.strip(BLANK):
                rows += 1
            if rows == part_rows:
                pieces.append((rows, first, start, position))
                rows, first, start, total = 0, number + 1, position, total + rows
    if rows:
        pieces.append((rows, first, start, position))
    return Source(name, total + rows, position, digest.hexdigest()), pieces


def _plan_parquet(store: Store, file: str, name: str, part_rows: int) -> tuple[Source, list[_Piece]]:
    """Return a Parquet file and its parts; only its footer is read."""
    from pyarrow import ArrowInvalid

    parquet = require_parquet(file)
    try:
        with store.open(file) as stream:
            rows = parquet.ParquetFile(stream).metadata.num_rows
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _FOOTER))
            digest = hashlib.blake2b(stream.read(), digest_size=16).hexdigest()
    except ArrowInvalid as error:
        raise InputError(f"{file}: expected a Parquet file, found something else ({error})") from error
    pieces = [
        (min(part_rows, rows - start), start + 1, start, min(start + part_rows, rows))
        for start in range(0, rows, part_rows)
    ]
    return Source(name, rows, size, digest), pieces


def require_parquet(feature: str) -> Any:
    """Return pyarrow's Parquet module; without it the extra to install is named."""
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{feature}: Parquet", str(error.name), "scale") from None
    return parquet
