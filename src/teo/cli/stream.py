"""A stream of JSON lines through a rewriter: same order, one record a line, whole lines even when interrupted."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError

if TYPE_CHECKING:
    from teo.rewriter import Rewriter

_CHUNK = 1 << 16
_LONGEST_LINE = 64 << 20
_INPUT_KEYS = frozenset({"history", "utterance", "messages"})
Line = tuple[int, bytes]


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of UTF-8; lone surrogates are written as escapes."""
    try:
        return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:
        return (json.dumps(record) + "\n").encode("ascii")


def stream(
    rewriter: Rewriter,
    source: BinaryIO,
    out: BinaryIO,
    log: TextIO,
    batch_size: int,
    options: Mapping[str, Any],
) -> int:
    """Return the exit status after rewriting every line: 0, 1 where a line was bad, 130 where it was interrupted."""
    progress = _Progress(log)
    try:
        with _whole_writes() as writing:
            for lines in read_batches(source, batch_size):
                records = rewrite_lines(rewriter, lines, batch_size, options)
                errors = [record["error"] for record in records if set(record) == {"error"}]
                data = b"".join(map(encode_record, records))
                with writing:
                    out.write(data)
                    out.flush()
                progress.advance(len(records), errors)
    except KeyboardInterrupt:
        progress.finish(f"stopped after {progress.done} lines")
        return 130
    progress.finish()
    return 1 if progress.bad else 0


def rewrite_lines(
    rewriter: Rewriter, lines: Sequence[Line], batch_size: int, options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a record for each line, in order; for a bad line an error record."""
    records: list[dict[str, Any]] = [{} for _ in lines]
    rows: dict[int, tuple[dict[str, Any], Dialogue]] = {}
    for place, (number, line) in enumerate(lines):
        try:
            row = parse_line(line)
            rows[place] = (row, Dialogue.from_row(row))
        except InputError as error:
            records[place] = _error_record(number, error)
    results = rewriter.try_many([dialogue for _, dialogue in rows.values()], batch_size, **options)
    for (place, (row, _)), result in zip(rows.items(), results, strict=True):
        if isinstance(result, TeoError):
            records[place] = _error_record(lines[place][0], result)
        else:
            passed = {key: value for key, value in row.items() if key not in _INPUT_KEYS}
            records[place] = {**passed, **result.to_dict()}
    return records


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line."""
    if len(line) > _LONGEST_LINE:
        raise InputError(f"expected a line of at most {_LONGEST_LINE >> 20} MB, found {len(line) >> 20} MB")
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8, found byte 0x{line[error.start]:02x} at {error.start}") from None
    except RecursionError:
        raise InputError("expected a JSON object, found one nested too deep") from None
    except ValueError as error:
        raise InputError(f"expected a JSON object, found something else ({error})") from None
    if not isinstance(row, dict):
        raise InputError("expected a JSON object with history and utterance, or messages; found another JSON value")
    return row


def read_batches(source: BinaryIO, size: int) -> Iterator[list[Line]]:
    """Yield numbered lines in batches: as many as have come, at most `size`. Blank lines are left out."""
    batch: list[Line] = []
    number = 0
    for line in _lines(source):
        if line is not None:
            number += 1
            if line.strip():
                batch.append((number, line))
        if batch and (line is None or len(batch) == size):
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line, and None each time that there is no more to read yet."""
    parts: list[bytes] = []
    for chunk in _chunks(source):
        if chunk is None:
            yield None
            continue
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for part in others:
            yield b"".join(parts)
            parts = [part]
    if any(parts):
        yield b"".join(parts)


def _chunks(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield input as it comes, and None each time that there is none to read yet."""
    try:
        number = source.fileno()
        select.select([number], [], [], 0)
    except (OSError, ValueError):  # no file of the operating system: read what there is
        yield from iter(lambda: source.read(_CHUNK), b"")
        return
    while True:
        if not select.select([number], [], [], 0)[0]:
            yield None
            select.select([number], [], [])
        data = os.read(number, _CHUNK)
        if not data:
            return
        yield data


def _error_record(number: int, error: Exception) -> dict[str, Any]:
    return {"error": {"line": number, "message": str(error)}}


@dataclass(slots=True)
class _Writing:
    """While it is entered, an interrupt waits, so that only whole lines are written."""

    entered: bool = False
    interrupted: bool = False

    def __enter__(self) -> None:
        self.entered = True

    def __exit__(self, *_: object) -> None:
        self.entered = False
        if self.interrupted:
            raise KeyboardInterrupt

    def handle(self, *_: object) -> None:
        if self.entered:
            self.interrupted = True
        else:
            raise KeyboardInterrupt


@contextmanager
def _whole_writes() -> Iterator[_Writing]:
    """Give what must be entered to write; takes interrupts over for as long, where that is allowed."""
    writing = _Writing()
    try:
        before = signal.signal(signal.SIGINT, writing.handle)
    except ValueError:  # not the main thread, which alone may
        yield writing
        return
    try:
        yield writing
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True)
class _Progress:
    """How many lines are done: one line on a terminal that changes; bad lines are named anywhere."""

    log: TextIO
    done: int = 0
    bad: int = 0
    started: float = field(default_factory=time.monotonic)

    def advance(self, lines: int, errors: Sequence[Mapping[str, Any]]) -> None:
        """Count lines, and say which were bad."""
        self.done += lines
        self.bad += len(errors)
        for error in errors:
            self._clear()
            self.log.write(f"teo: line {error['line']}: {error['message']}\n")
        if self.log.isatty():
            rate = self.done / max(time.monotonic() - self.started, 1e-9)
            self.log.write(f"\r{self.done} lines, {rate:.1f} lines/s")
        self.log.flush()

    def finish(self, message: str = "") -> None:
        """End the changing line."""
        if self.log.isatty() and self.done:
            self.log.write("\n")
        if message:
            self.log.write(f"teo: {message}\n")

    def _clear(self) -> None:
        if self.log.isatty():
            self.log.write("\r\x1b[K")
