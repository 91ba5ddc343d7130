"""`teo rewrite`: one dialogue from the arguments, or a stream of JSON lines, one record per line in the same order."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from teo.cli.options import DeviceOption, DtypeOption
from teo.cli.output import STANDARD, open_input, open_output, write_line
from teo.cli.show import show_reason, show_result, wants_colour
from teo.cli.stream import stream
from teo.errors import InputError
from teo.files import json_line

if TYPE_CHECKING:
    from teo.result import Rewrite
    from teo.rewriter import Rewriter

_MOST_ALTERNATIVES = 16
"""The rewriter's limit; written out here, since importing the rewriter would slow down `teo --help`."""
_FILE_NAME = re.compile(r"\S+\.(?:jsonl?|ndjson|csv|tsv|txt|parquet)(?:\.(?:gz|bz2|xz|zst))?", re.IGNORECASE)


def rewrite(
    turns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TURN]... [UTTERANCE]", help="The turns so far, then the utterance. Without any: JSONL from stdin."
        ),
    ] = None,
    *,
    source: Annotated[
        Path | None, typer.Option("--input", help="Read JSONL from a file; - is stdin.", metavar="FILE")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", help="Write to a file; - is stdout.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.", metavar="")] = False,
    model: Annotated[
        str | None,
        typer.Option(help="A model folder, or hub:owner/name; by default the embedded model.", metavar="MODEL"),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="The pipeline: fast, fused, direct or teo; by default the model's own.", metavar="NAME"),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            help="A named threshold: search (0.2), balanced (0.5, the default) or careful (0.8).", metavar="NAME"
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(help="A threshold of your own, 0 to 1: below it, utterances stay unchanged.", metavar="NUMBER"),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Utterances and /patterns/ to leave unchanged, one per line.", metavar="FILE"),
    ] = None,
    n_best: Annotated[
        int,
        typer.Option(
            help=f"Up to K different rewrites, 1 to {_MOST_ALTERNATIVES}; fused, fast and direct only.", metavar="K"
        ),
    ] = 1,
    truncation: Annotated[
        str, typer.Option(help="If a dialogue is too long: oldest (drop the oldest turns) or error.", metavar="RULE")
    ] = "oldest",
    batch_size: Annotated[int, typer.Option(help="Lines per batch.", metavar="N", min=1)] = 32,
    threads: Annotated[int | None, typer.Option(help="Number of threads.", metavar="N", min=1)] = None,
    runtime: Annotated[
        str, typer.Option(help="onnx, or torch for a folder that was not exported.", metavar="NAME")
    ] = "onnx",
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
) -> None:
    """Rewrite one utterance, or a stream of JSON lines.

    teo rewrite TURN... UTTERANCE prints the rewrite. Without arguments it reads one dialogue per line from stdin or
    --input, {"history", "utterance"} or {"messages"}, and writes one record per line. Other keys are passed through. A
    bad line gives an error record. A "rewrite" in a row comes back as "reference", so that teo score can compare.
    """
    check_arguments(turns or (), source)
    check_range("--min-confidence", min_confidence, 0, 1)
    check_range("--n-best", n_best, 1, _MOST_ALTERNATIVES)
    loading = {"variant": variant, "threads": threads, "runtime": runtime, "device": device, "dtype": dtype}
    options: dict[str, Any] = {
        "prefer": prefer,
        "min_confidence": min_confidence,
        "truncation": truncation,
        "n_best": n_best,
    }
    if turns:
        rewriter = _load(model, keep, loading)
        _write_result(turns[-1], rewriter.rewrite(turns[:-1], turns[-1], **options), target, as_json=as_json)
        return
    with open_input(source) as lines:
        rewriter = _load(model, keep, loading)  # before the output file is cut off
        with open_output(target, lines) as out:
            status = stream(rewriter, lines, out, sys.stderr, batch_size, options)
    raise typer.Exit(status)


def _load(model: str | None, keep: Path | None, settings: dict[str, Any]) -> Rewriter:
    from teo.rewriter import Rewriter

    if keep is not None:
        from teo.rules import read_keep_file

        settings = {**settings, "keep": read_keep_file(keep)}
    return Rewriter.from_pretrained(model, **settings)


def _write_result(utterance: str, result: Rewrite, target: Path | None, *, as_json: bool) -> None:
    """Write one rewrite: its record, or its text; on a terminal in colour, with the reason if it is unchanged."""
    to_terminal = target is None or str(target) == STANDARD
    text = show_result(utterance, result, colour=wants_colour() and to_terminal) + "\n"
    if to_terminal and not as_json:
        typer.echo(text, nl=False)  # in the encoding of standard output
        if sys.stdout.isatty() and not result.changed:
            write_line(show_reason(result, colour=wants_colour()))
        return
    with open_output(target) as out:
        out.write((json_line(result.to_dict()) if as_json else text).encode(errors="backslashreplace"))


def check_range(name: str, value: float | None, low: int, high: int) -> None:
    """Raise if an option is outside its range; called before the model is loaded."""
    if value is not None and not low <= value <= high:
        raise InputError(f"{name}: expected {low} to {high}, found {value:g}")


def check_arguments(turns: Sequence[str], source: Path | None) -> None:
    """Raise if the arguments cannot be a dialogue, or if there is neither a dialogue nor a stream to read."""
    if not turns:
        if source is None and sys.stdin.isatty():
            raise InputError(
                "expected TURN... UTTERANCE, --input FILE, or JSON lines on stdin; found none; see teo rewrite --help"
            )
        return
    if source is not None:
        raise InputError("expected either TURN... UTTERANCE or --input FILE, found both")
    if len(turns) == 1 and os.path.isfile(turns[0]):  # noqa: PTH113 -- any text may come here, also a long one
        raise InputError(
            f"{turns[0]}: expected TURN... UTTERANCE, found the name of a file; "
            f"to rewrite the file's rows: teo rewrite --input {turns[0]}"
        )
    if len(turns) == 1 and _FILE_NAME.fullmatch(turns[0]):
        raise InputError(
            f"{turns[0]}: expected TURN... UTTERANCE, found what looks like the name of a file, which does not exist; "
            "was a file meant? teo rewrite --input FILE rewrites its rows"
        )
    for number, turn in enumerate(turns, 1):
        # Python decodes arguments so that a byte that is not text becomes half a surrogate pair.
        if bad := next((character for character in turn if "\udc80" <= character <= "\udcff"), None):
            raise InputError(f"argument {number}: expected UTF-8, found byte 0x{ord(bad) - 0xDC00:02x}")
