"""`teo demo`: a few dialogues in English and Chinese, and what the model makes of them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from teo.cli.show import show_edits, wants_colour

SAMPLES: tuple[tuple[str, ...], ...] = (
    ("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck.", "It is he who acted."),
    (
        "I am looking for a cheap restaurant in the north part of town.",
        "Da Vinci Pizzeria serves pizza.",
        "Where is it?",
    ),
    ("Who wrote Pride and Prejudice?", "Jane Austen wrote it in 1813.", "When was she born?"),
    ("What is the capital of France?", "Paris.", "Thank you very much!"),
    ("天龙八部里你最喜欢谁", "我最喜欢乔峰", "为什么喜欢他"),
    ("西安今天天气怎么样", "西安今天多云转小雨", "明天呢"),
    ("你会弹什么乐器", "我会弹钢琴", "弹了多久了"),
)
"""Each the turns so far, then the utterance."""

BY_HAND: tuple[str, ...] = (
    "It is Ben Affleck who acted as Batman.",
    "Where is Da Vinci Pizzeria?",
    "When was Jane Austen born?",
    "Thank you very much!",
    "为什么喜欢乔峰",
    "西安明天天气怎么样",
    "钢琴弹了多久了",
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
        kept = "" if result.changed else "  (kept)"
        typer.echo(f"  = {show_edits(utterance, result.edits, colour=wants_colour())}{kept}")
        asked = result.confidence is not None
        typer.echo((f"    confidence {result.confidence:.2f}  {result.operations}".rstrip() if asked else "") + "\n")
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
