"""`teo demo`: the model's rewrites of a few dialogues in English and Chinese."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from teo.cli.options import ModelOption, VariantOption
from teo.cli.show import show_deleted, show_edits, show_reason, wants_colour

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
"""Each is the history, then the utterance."""


def demo(
    *,
    model: ModelOption = None,
    variant: VariantOption = None,
    runtime: Annotated[str, typer.Option(help="onnx, or torch for a folder that was not exported.")] = "onnx",
) -> None:
    """Show a few sample rewrites with their edits and confidence."""
    from teo.loading import require_runtime
    from teo.rewriter import Rewriter

    started = time.perf_counter()
    rewriter = Rewriter.from_pretrained(model, variant=variant, runtime=require_runtime(runtime))
    loaded, colour = time.perf_counter(), wants_colour()
    for *history, utterance in SAMPLES:
        result = rewriter.rewrite(history, utterance)
        for turn in history:
            typer.echo(f"    {turn}")
        typer.echo(f"  > {show_deleted(utterance, result.edits, colour=colour)}")
        typer.echo(f"  = {show_edits(utterance, result.edits, colour=colour)}")
        if not result.changed:
            typer.echo(f"    {show_reason(result, colour=colour)}")
        elif result.confidence is not None:
            typer.echo(f"    confidence {result.confidence:.2f}  {result.operations}")
        typer.echo()
    each = (time.perf_counter() - loaded) / len(SAMPLES)
    typer.echo(
        f"{rewriter.name}, {rewriter.variant}: loaded in {loaded - started:.2f} s, {each * 1000:.0f} ms per dialogue",
        err=True,
    )
