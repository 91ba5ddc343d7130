"""`teo rewrite`: one dialogue from the arguments, or a stream of JSON lines, same order, one record a line."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from teo.cli.show import print_text, show_result, wants_colour
from teo.cli.stream import encode_record, stream
from teo.errors import InputError


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
        str | None, typer.Option(help="The pipeline: fast, fused, direct or teo.", metavar="NAME")
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
    from teo.loading import require_runtime
    from teo.rewriter import Rewriter

    options: dict[str, Any] = {"min_confidence": min_confidence, "truncation": truncation, "n_best": n_best}
    rewriter = Rewriter.from_pretrained(model, variant=variant, threads=threads, runtime=require_runtime(runtime))
    if turns:
        result = rewriter.rewrite(turns[:-1], turns[-1], **options)
        if as_json:
            typer.echo(encode_record(result.to_dict()), nl=False)
        else:
            print_text(show_result(turns[-1], result, colour=wants_colour()))
        return
    raise typer.Exit(stream(rewriter, sys.stdin.buffer, sys.stdout.buffer, sys.stderr, batch_size, options))
