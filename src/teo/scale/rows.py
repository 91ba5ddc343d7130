"""The rows of a part: their dialogues, and the file that is written of them, one row for each.

JSONL gets the records of `teo rewrite`. Parquet keeps the other columns as they are and gets the record's columns; a
person's `rewrite` becomes `reference` in both. A row that cannot be rewritten has `error` instead of a record.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.files import json_line
from teo.records import BLANK, INPUT_KEYS, make_record, parse_line, pass_through
from teo.result import Rewrite
from teo.scale.inputs import Format, require_parquet
from teo.scale.parts import Part
from teo.scale.stores import Store

Result = Rewrite | TeoError


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read; None: the column of that name, if there is one."""

    history: str | None = None
    utterance: str | None = None
    messages: str | None = None
    id: str | None = None

    def items(self) -> list[tuple[str, str]]:
        """Return the names that rows should have, with the columns that were named for them."""
        named = {"history": self.history, "utterance": self.utterance, "messages": self.messages, "id": self.id}
        return [(name, column) for name, column in named.items() if column is not None]


class PartRows(Protocol):
    """The rows of one part."""

    @property
    def dialogues(self) -> Sequence[Dialogue | InputError]:
        """The dialogue of each row, or its error."""

    def encode(self, results: Sequence[Result]) -> bytes:
        """Return the file of the part: a row for each result, in order."""


def read_rows(store: Store, part: Part, kind: Format, columns: Columns) -> PartRows:
    """Return the rows of a part."""
    try:
        return read_jsonl(store, part, columns) if kind == "jsonl" else ParquetRows(store, part, columns)
    except OSError as error:
        raise InputError(f"{part.file}: cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class JsonlRows:
    """Rows of a file of JSON lines."""

    name: str
    numbers: list[int]
    rows: list[dict[str, Any]]
    dialogues: list[Dialogue | InputError]

    def encode(self, results: Sequence[Result]) -> bytes:
        """Return a line for each result, in order."""
        every = zip(self.numbers, self.rows, self.dialogues, results, strict=True)
        return "".join(json_line(self._record(*item)) for item in every).encode()

    def _record(self, number: int, row: dict[str, Any], dialogue: Dialogue | InputError, result: Result) -> Any:
        if isinstance(result, Rewrite) and isinstance(dialogue, Dialogue):
            return make_record(row, dialogue.utterance, result.to_dict())
        return {**pass_through(row), "error": {"file": self.name, "line": number, "message": str(result)}}


def read_jsonl(store: Store, part: Part, columns: Columns) -> JsonlRows:
    """Return the rows of a part of a file of JSON lines."""
    with store.open(part.file) as stream:
        stream.seek(part.start)
        data = stream.read(part.end - part.start)
    found = JsonlRows(part.name, [], [], [])
    for number, line in enumerate(data.split(b"\n"), part.first):
        if line.strip(BLANK):
            row: dict[str, Any] = {}
            dialogue: Dialogue | InputError
            try:
                row = parse_line(line)
                found_columns = list(row)
                row = rename(row, columns)
                require_columns(found_columns, columns)
                dialogue = Dialogue.from_row(row)
            except InputError as error:
                dialogue = error
            found.numbers.append(number)
            found.rows.append(row)
            found.dialogues.append(dialogue)
    return found


def rename(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return a row with its columns under the names that dialogues have."""
    renamed = dict(row)
    for name, column in columns.items():
        if column == name or column not in row:
            continue
        if name in row:
            raise InputError(f"{name}: expected it in the column '{column}' only, found a column '{name}' too")
        if column in renamed:
            renamed[name] = renamed.pop(column)
    return renamed


def require_columns(found: Sequence[str], columns: Columns) -> None:
    """Raise if a row or a table lacks a column that was named."""
    for name, column in columns.items():
        if column not in found:
            raise InputError(f"{column}: expected the column of the {name}, found {', '.join(found) or 'no columns'}")


def require_parquet_columns(store: Store, parts: Sequence[Part], columns: Columns) -> None:
    """Raise if a Parquet file of a job lacks columns, before any of it is rewritten."""
    for file in dict.fromkeys(part.file for part in parts):
        with store.open(file) as stream:
            _name_columns(require_parquet(file).read_schema(stream).names, columns, file)


def _name_columns(found: Sequence[str], columns: Columns, file: str) -> dict[str, str]:
    """Return the columns of a Parquet file by the names that dialogues have; raises if it cannot be read by them."""
    if twice := next((name for name in found if found.count(name) > 1), None):
        raise InputError(f"{file}: expected columns of different names, found '{twice}' twice; rename one of them")
    try:
        require_columns(found, columns)
        named = rename({name: name for name in found}, columns)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if not {"utterance", "messages"} & set(named):
        raise InputError(
            f"{file}: expected a column utterance or messages, found {', '.join(named) or 'none'}; "
            "say which it is with --utterance or --messages"
        )
    return named


class ParquetRows:
    """Rows of a Parquet file."""

    def __init__(self, store: Store, part: Part, columns: Columns) -> None:
        self._name, self._first = part.name, part.first
        with store.open(part.file) as stream:
            table = _read_slice(require_parquet(part.file).ParquetFile(stream), part)
        named = _name_columns(table.column_names, columns, part.file)
        self._table = table.select(list(named.values())).rename_columns(list(named))
        wanted = [name for name in named if name in INPUT_KEYS]
        rows = self._table.select(wanted).to_pylist()
        self.dialogues: Sequence[Dialogue | InputError] = list(map(_read_row, rows))

    def encode(self, results: Sequence[Result]) -> bytes:
        """Return a Parquet file: the other columns as they are, then the record's."""
        import pyarrow

        renamed = {"rewrite": "reference", "rewrites": "references"}
        kept = self._table.drop_columns([name for name in self._table.column_names if name in INPUT_KEYS])
        taken = set(kept.column_names)
        kept = kept.rename_columns(
            [renamed[name] if name in renamed and renamed[name] not in taken else name for name in kept.column_names]
        )
        records = [
            result.to_dict() | {"error": None} if isinstance(result, Rewrite) else {"error": self._error(place, result)}
            for place, result in enumerate(results)
        ]
        made = pyarrow.Table.from_pylist(records, schema=_record_schema())
        table = kept.drop_columns([name for name in kept.column_names if name in made.column_names])
        for field in made.schema:
            table = table.append_column(field, made[field.name])
        out = io.BytesIO()
        require_parquet("output").write_table(table.replace_schema_metadata(None), out)
        return out.getvalue()

    def _error(self, place: int, error: TeoError) -> dict[str, Any]:
        return {"file": self._name, "line": self._first + place, "message": str(error)}


def _read_row(row: dict[str, Any]) -> Dialogue | InputError:
    try:
        present = {name: value for name, value in row.items() if value is not None or name == "history"}
        return Dialogue.from_row(present)
    except InputError as error:
        return error


def _read_slice(file: Any, part: Part) -> Any:
    """Return the rows of a part, read from the row groups that hold them, a batch at a time."""
    import pyarrow

    groups, before, rows = [], 0, 0
    for number in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        if rows + count <= part.start:
            before = rows + count
        elif rows < part.end:
            groups.append(number)
        rows += count
    taken, position = [], before
    for batch in file.iter_batches(row_groups=groups, batch_size=max(1, part.rows)) if groups else _nothing():
        start, end = max(part.start - position, 0), min(part.end - position, batch.num_rows)
        position += batch.num_rows
        if start < end:
            taken.append(batch.slice(start, end - start))
        if position >= part.end:
            break
    return pyarrow.Table.from_batches(taken, schema=file.schema_arrow)


def _nothing() -> Iterator[Any]:
    yield from ()


def _record_schema() -> Any:
    """Return the columns of a record in Parquet."""
    import pyarrow as pa

    edit = pa.struct(
        [("op", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("old", pa.string()), ("new", pa.string())]
    )
    shared = [("rewrite", pa.string()), ("edits", pa.list_(edit)), ("operations", pa.string())]
    alternative = pa.struct([*shared, ("confidence", pa.float64()), ("score", pa.float64())])
    return pa.schema(
        [
            ("rewrite", pa.string()),
            ("changed", pa.bool_()),
            ("edits", pa.list_(edit)),
            ("operations", pa.string()),
            ("confidence", pa.float64()),
            ("reason", pa.string()),
            ("truncated", pa.struct([("turns", pa.int64()), ("characters", pa.int64())])),
            ("alternatives", pa.list_(alternative)),
            ("error", pa.struct([("file", pa.string()), ("line", pa.int64()), ("message", pa.string())])),
        ]
    )
