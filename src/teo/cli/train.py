"""`teo train`: fine-tune a model as a configuration says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import Overrides, is_main_process, log_to_stderr, training_libraries


def _print_keys(wanted: bool) -> None:
    if wanted:
        typer.echo(keys_help())
        raise typer.Exit


def train(
    config: Annotated[
        Path, typer.Argument(help="A configuration in TOML, such as configs/own.toml.", show_default=False)
    ],
    overrides: Overrides = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a run that was stopped.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved configuration and exit.")] = False,
    keys: Annotated[
        bool,
        typer.Option("--keys", callback=_print_keys, is_eager=True, help="Print every key with its meaning and exit."),
    ] = False,
) -> None:
    """Fine-tune a model on your data.

    Prints the model's folder and its exact match on the development rows as one JSON line.
    """
    from teo.training.config import read_config
    from teo.training.settings import to_toml, to_tree

    if dry_run:
        typer.echo(to_toml(to_tree(read_config(config, overrides or ()))))
        return
    log_to_stderr()
    with training_libraries("training"):
        answer = _train(config, overrides or (), resume)
    if is_main_process():
        typer.echo(json.dumps(answer, ensure_ascii=False))


def _train(path: Path, overrides: Sequence[str], resume: bool) -> dict[str, object]:
    from teo.training.config import read_config

    config = read_config(path, overrides)  # before torch is imported, which takes seconds
    from teo.training.finetune import train as run

    result = run(config, resume=resume)
    return {"model": str(result.folder), "dev_em": result.em}


def keys_help() -> str:
    """Return every key of a configuration with its type, default and meaning."""
    from teo.training.config import TrainConfig
    from teo.training.settings import list_keys

    lines = []
    for key, kind, default, text in list_keys(TrainConfig):
        shown = f" = {json.dumps(default)}" if default != "" else ""
        lines.append(f"{key}{shown}  ({kind})\n    {text}")
    return "\n".join(lines)
