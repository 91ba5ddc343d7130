"""A stream of JSON lines through a rewriter: same order, one record a line, whole lines even when interrupted."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from teo.cli.progress import LineProgress
from teo.cli.records import Line, rewrite_lines
from teo.files import json_line
from teo.records import BLANK, LONGEST_LINE, require_lines

if TYPE_CHECKING:
    from teo.rewriter import Rewriter

_CHUNK = 1 << 16


def stream(
    rewriter: Rewriter,
    source: BinaryIO,
    out: BinaryIO,
    log: TextIO,
    batch_size: int,
    options: Mapping[str, Any],
) -> int:
    """Return the exit status after rewriting every line: 0, 1 if a line was bad, 130 if it was interrupted."""
    progress = LineProgress(log)
    try:
        with _whole_writes() as writing:
            for lines in read_batches(source, batch_size):
                outcomes = rewrite_lines(rewriter, lines, batch_size, options)
                data = "".join(json_line(outcome.record) for outcome in outcomes).encode()
                with writing:
                    out.write(data)
                    out.flush()
                    progress.advance(len(outcomes), [outcome.error for outcome in outcomes if outcome.error])
    except KeyboardInterrupt:
        progress.finish(f"stopped after {progress.done} lines")
        return 130
    progress.finish()
    return 1 if progress.bad else 0


def read_batches(source: BinaryIO, size: int) -> Iterator[list[Line]]:
    """Yield numbered lines in batches: all that have arrived, at most `size`. Blank lines are left out.

    Raises if the first line shows that the input is no JSON lines.
    """
    batch: list[Line] = []
    number = 0
    first = True
    for line in _lines(source):
        if line is not None:
            number += 1
            if line.strip(BLANK):
                if first:
                    require_lines(line)
                first = False
                batch.append((number, line))
        if batch and (line is None or len(batch) == size):
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line, and None each time that there is no more to read yet.

    Of a line that is too long, no more is kept than shows it.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in _chunks(source):
        if chunk is None:
            yield None
            continue
        first, *others = chunk.split(b"\n")
        if size <= LONGEST_LINE:
            parts.append(first)
            size += len(first)
        for part in others:
            yield b"".join(parts)
            parts, size = [part], len(part)
    if any(parts):
        yield b"".join(parts)


def _chunks(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield input as it arrives, and None each time that there is none to read yet."""
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
    """Give a context to write in, which delays interrupts; only the main thread can do so."""
    writing = _Writing()
    try:
        before = signal.signal(signal.SIGINT, writing.handle)
    except ValueError:  # not the main thread
        yield writing
        return
    try:
        yield writing
    finally:
        signal.signal(signal.SIGINT, before)
