"""Standard streams and output files: UTF-8 for JSON, no character lost, nothing replaced that is no plain file."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

import typer

from teo.errors import NO_SPACE, InputError

_CHUNK = 1 << 16
STANDARD = "-"
"""The name of standard input and standard output, instead of a file's."""


def prepare_streams() -> None:
    """Make standard streams safe to use: a character that their encoding lacks is written as an escape."""
    if sys.stdout is None:
        raise InputError("standard output is closed; expected somewhere to write to, such as > FILE or > /dev/null")
    if sys.stdin is None:
        sys.stdin = _open_nothing("r")
    if sys.stderr is None:
        sys.stderr = _open_nothing("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO | None) -> None:
    """Discard what a stream still holds: Python would complain when it flushes the stream at exit."""
    if stream is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # no stream of the operating system
        return


def write_line(line: str) -> None:
    """Write a line to stderr; if that fails too, there is nobody left to tell."""
    try:
        typer.echo(line, err=True)
    except OSError:
        silence(sys.stderr)


class WarningHandler(logging.Handler):
    """Shows a warning of the package as one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line."""
        write_line(f"teo: {record.getMessage()}")


@contextmanager
def show_warnings() -> Iterator[None]:
    """Show the package's warnings as long as the command runs."""
    handler, logger = WarningHandler(logging.WARNING), logging.getLogger("teo")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as JSON, in UTF-8 whatever the terminal's encoding; half a surrogate pair stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value, indent=indent).encode()
    typer.echo(data)


@contextmanager
def open_input(path: Path | None) -> Iterator[BinaryIO]:
    """Give the bytes of a file; of standard input if the path is None or `-`."""
    if path is None or str(path) == STANDARD:
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; expected a file of JSON lines") from error
    with stream:
        yield stream


@contextmanager
def open_output(path: Path | None, source: BinaryIO | None = None) -> Iterator[BinaryIO]:
    """Give what writes into a file, from its start; into standard output if the path is None or `-`.

    A link is followed, and a FIFO or a device is written into. A file that is being read is refused.
    """
    if path is None or str(path) == STANDARD:
        yield sys.stdout.buffer
        return
    try:
        stream = path.open("ab")  # unlike "wb" it cuts nothing off yet
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; name a file that can be made") from error
    try:
        with stream:
            status = os.fstat(stream.fileno())
            if _is_same(status, sys.stdout):  # /dev/stdout: continue at its position
                yield sys.stdout.buffer
                return
            if source is not None and stat.S_ISREG(status.st_mode) and _is_same(status, source):
                raise InputError(f"{path}: expected another file for output, found the file that is read")
            if stat.S_ISREG(status.st_mode):
                stream.truncate(0)
            yield stream
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        _drop_half_line(path)
        raise InputError(f"{path}: cannot be written: {error.strerror}; free some space or write elsewhere") from error


def _drop_half_line(path: Path) -> None:
    """Cut a file off after its last whole line; what is no plain file stays as it is."""
    if not path.is_file():
        return
    with path.open("r+b") as stream:
        end = stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _CHUNK)
            stream.seek(start)
            found = stream.read(end - start).rfind(b"\n")
            if found >= 0:
                stream.truncate(start + found + 1)
                return
            end = start
        stream.truncate(0)


def _is_same(status: os.stat_result, stream: TextIO | BinaryIO) -> bool:
    """Tell whether a stream of the operating system is an open file."""
    try:
        return os.path.samestat(status, os.fstat(stream.fileno()))
    except (OSError, ValueError):
        return False


def _open_nothing(mode: Literal["r", "w"]) -> TextIO:
    return io.TextIOWrapper(Path(os.devnull).open(f"{mode}b"), encoding="utf-8")
