"""`teo rewrite`: one dialogue from the arguments, or a stream of JSON lines, same order, one record a line."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer

from teo.errors import InputError, TeoError

if TYPE_CHECKING:
    from teo.edits import EditScript
    from teo.result import Rewrite
    from teo.rewriter import Rewriter

_CHUNK = 1 << 16
_LONGEST_LINE = 64 << 20
_INPUT_KEYS = frozenset({"history", "utterance", "messages"})
_RED, _GREEN, _PLAIN = "\x1b[31;9m", "\x1b[32m", "\x1b[0m"
Line = tuple[int, bytes]


def rewrite(
    turns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TURN]... [UTTERANCE]", help="The turns so far, then the utterance; none: JSONL on stdin."
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of the text.")] = False,
    model: Annotated[
        str | None, typer.Option(help="A model folder or a hub id; the embedded model without it.", metavar="MODEL")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline: fused, teo, direct, fast or rerank.", metavar="NAME")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="Keep utterances below this confidence, 0 to 1; the model's own by default.")
    ] = None,
    n_best: Annotated[
        int, typer.Option(help="Up to so many different rewrites, 1 to 16; fused, fast and direct.", metavar="K")
    ] = 1,
    truncation: Annotated[
        str, typer.Option(help="Dialogues longer than the model reads: oldest (drop turns) or error.", metavar="RULE")
    ] = "oldest",
    batch_size: Annotated[int, typer.Option(help="Lines rewritten at a time.", metavar="N", min=1)] = 32,
    threads: Annotated[int | None, typer.Option(help="Processor threads.", metavar="N", min=1)] = None,
    runtime: Annotated[str, typer.Option(help="onnx, or torch for a folder that was not exported.")] = "onnx",
) -> None:
    """Rewrite an utterance so that it can be understood without the turns before it.

    `teo rewrite TURN... UTTERANCE` prints the rewrite. Without arguments, JSON lines {"history", "utterance"} or
    {"messages"} are read from stdin; other keys are passed through, a bad line gives an error record in its place.
    """
    if not turns and sys.stdin.isatty():
        raise InputError("expected TURN... UTTERANCE, or JSON lines on stdin; found neither; see teo rewrite --help")
    options = {"min_confidence": min_confidence, "truncation": truncation, "n_best": n_best}
    rewriter = load_rewriter(model, variant=variant, threads=threads, runtime=runtime)
    if turns:
        result = rewriter.rewrite(turns[:-1], turns[-1], **options)  # type: ignore[arg-type]
        if as_json:
            typer.echo(encode_record(result.to_dict()), nl=False)
        else:
            colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
            print_text(show_result(turns[-1], result, colour=colour))
        return
    raise typer.Exit(stream(rewriter, sys.stdin.buffer, sys.stdout.buffer, sys.stderr, batch_size, options))


def print_text(text: str) -> None:
    """Print a line whatever it holds: what the terminal's encoding lacks is shown as a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding))


def load_rewriter(model: str | Path | None, **settings: Any) -> Rewriter:
    """Return the rewriter of a model."""
    from teo.rewriter import Rewriter

    return Rewriter.from_pretrained(model, **settings)


def show_result(utterance: str, result: Rewrite, *, colour: bool) -> str:
    """Return the rewrite with its edits shown, and under it each alternative with its confidence."""
    others = [
        f"    {one.confidence:.2f}  {show_edits(utterance, one.edits, colour=colour)}"
        for one in result.alternatives[1:]
    ]
    return "\n".join([show_edits(utterance, result.edits, colour=colour), *others])


def show_edits(utterance: str, edits: EditScript, *, colour: bool) -> str:
    """Return the rewrite; in colour with what went struck out and what came in green."""
    if not colour:
        return edits.apply(utterance)
    shown, reached = [], 0
    for edit in edits:
        shown.append(utterance[reached : edit.start])
        shown += [f"{_RED}{edit.old}{_PLAIN}"] if edit.old else []
        shown += [f"{_GREEN}{edit.new}{_PLAIN}"] if edit.new else []
        reached = edit.end
    return "".join([*shown, utterance[reached:]])


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of UTF-8; one that holds lone surrogates is written with escapes."""
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
    from teo.dialogue import Dialogue

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
    except (OSError, ValueError):  # not a file of the system's: read what there is
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
