"""The help of a verb: its docstring, and under the options examples that can be copied."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "rewrite": (
        'teo rewrite "Who wrote Dune?" "Frank Herbert." "When was he born?"',
        "teo rewrite --input dialogues.jsonl --output records.jsonl",
        "teo rewrite --input gold.jsonl | teo score -",
    ),
    "batch": (
        "teo batch dialogues.jsonl rewrites",
        "teo batch 'logs/*.parquet' rewrites --messages chat --id chat_id",
        "teo batch s3://bucket/rows s3://bucket/rewrites --engine ray",
    ),
    "serve": (
        "teo serve",
        "TEO_TOKEN=secret teo serve --host 0.0.0.0 --workers 4",
        "teo serve --model runs/own-int8 --port 9000",
    ),
    "mcp": (
        "teo mcp",
        "teo mcp --url http://127.0.0.1:8000",
    ),
    "demo": (
        "teo demo",
        "teo demo --model runs/own-int8",
    ),
    "train": (
        "teo train configs/own.toml data.path=mine.jsonl",
        "teo train configs/own.toml data.path=mine.jsonl --resume",
        "teo train --keys",
    ),
    "calibrate": (
        "teo calibrate runs/own-int8 dev.jsonl",
        "teo calibrate runs/own-int8 dev.jsonl test.jsonl --out runs/calibration",
    ),
    "export": (
        "teo export runs/own runs/own-int8",
        "teo export runs/own runs/own-int8 --compare dev.jsonl",
    ),
    "evaluate": (
        "teo evaluate --data jsonl --path mine.jsonl --out runs/test",
        "teo evaluate --data task --path data/task --model runs/own --out runs/task",
    ),
    "score": (
        "teo score predictions.jsonl",
        "teo score predictions.jsonl other.jsonl --intervals",
    ),
    "data": (
        "teo data list",
        "teo data stats jsonl mine.jsonl",
    ),
    "data list": ("teo data list",),
    "data download": ("teo data download task --to data/task",),
    "data stats": (
        "teo data stats jsonl mine.jsonl",
        "teo data stats task data/task --forms both",
    ),
    "data convert": (
        "teo data convert jsonl mine.jsonl dev.jsonl --split dev",
        "teo data convert task data/task task.jsonl",
    ),
    "data edits": ("teo data edits jsonl mine.jsonl -",),
}


def add_verb(
    app: typer.Typer, name: str, verb: Callable[..., Any], path: str = "", *, panel: str | None = None
) -> None:
    """Add a function as a verb of an app; `path` is the verb with the words before it, if there are some."""
    app.command(name, help=unwrap(verb.__doc__ or ""), epilog=show_examples(path or name), rich_help_panel=panel)(verb)


def show_examples(path: str) -> str:
    """Return the end of a verb's help: its examples, one per line."""
    return "\n".join(["Examples:", *EXAMPLES[path]])


def unwrap(docstring: str) -> str:
    """Return a docstring with each paragraph on one line, which the terminal's width then breaks."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))
