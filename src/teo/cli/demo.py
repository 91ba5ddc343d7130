"""`teo demo`: a few dialogues in English and Chinese, and what the model makes of them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from teo.cli.show import show_edits, wants_colour

SAMPLES: tuple[tuple[str, ...], ...] = (
    ("Who wrote Dune?", "Frank Herbert.", "When was he born?"),
    (
        "I am looking for a cheap restaurant in the north part of town.",
        "Da Vinci Pizzeria serves pizza.",
        "What is the phone number?",
    ),
    ("Did Marie Curie discover radium alone?", "No, together with Pierre Curie.", "When did he die?"),
    ("What is the capital of France?", "Paris.", "Thank you very much!"),
    ("谁唱的青花瓷", "周杰伦唱的", "他还唱过什么歌"),
    ("小米14多少钱", "小米14售价3999元", "有几种颜色"),
    ("你看过流浪地球吗", "看过，很好看", "谁导演的"),
)
"""Each the turns so far, then the utterance."""

BY_HAND: tuple[str, ...] = (
    "When was Frank Herbert born?",
    "What is the phone number of Da Vinci Pizzeria?",
    "When did Pierre Curie die?",
    "Thank you very much!",
    "周杰伦还唱过什么歌",
    "小米14有几种颜色",
    "流浪地球是谁导演的",
)
"""What a person would make of each sample; shown where there is no model."""


def demo(
    *,
    model: Annotated[
        str | None, typer.Option(help="A model folder or a hub id; the embedded model without it.", metavar="MODEL")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline; the model's own by default.", metavar="NAME")
    ] = None,
    runtime: Annotated[str, typer.Option(help="onnx, or torch for a folder that was not exported.")] = "onnx",
) -> None:
    """Show what the model makes of a few dialogues: edits in colour, confidence, time."""
    from teo.loading import has_default, require_runtime
    from teo.rewriter import Rewriter

    if model is None and not has_default():
        _show_by_hand()
        return
    started = time.perf_counter()
    rewriter = Rewriter.from_pretrained(model, variant=variant, runtime=require_runtime(runtime))
    loaded = time.perf_counter()
    for *history, utterance in SAMPLES:
        result = rewriter.rewrite(history, utterance)
        for turn in history:
            typer.echo(f"    {turn}")
        typer.echo(f"  > {utterance}")
        kept = "" if result.changed else f"  (kept: {result.reason})"
        typer.echo(f"  = {show_edits(utterance, result.edits, colour=wants_colour())}{kept}")
        if result.confidence is not None:
            typer.echo(f"    confidence {result.confidence:.2f}  {result.operations}".rstrip())
        typer.echo()
    each = (time.perf_counter() - loaded) / len(SAMPLES)
    typer.echo(
        f"{rewriter.name}, {rewriter.variant}: loaded in {loaded - started:.2f} s, {each * 1000:.0f} ms per dialogue",
        err=True,
    )


def _show_by_hand() -> None:
    """Show the samples with a person's rewrites, and the edits derived from them."""
    from teo.alignment import derive_edits
    from teo.edits import format_operations

    for (*history, utterance), rewrite in zip(SAMPLES, BY_HAND, strict=True):
        script = derive_edits(utterance, rewrite)
        for turn in history:
            typer.echo(f"    {turn}")
        typer.echo(f"  > {utterance}")
        typer.echo(f"  = {show_edits(utterance, script, colour=wants_colour())}")
        typer.echo(f"    {format_operations(script.operations)}".rstrip() + "\n")
    typer.echo(
        "This installation has no embedded model: the rewrites above are a person's, with the edits derived from them. "
        "For a model's own: teo demo --model FOLDER",
        err=True,
    )
