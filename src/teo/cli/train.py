"""`teo train`: fine-tune the stages as a configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.errors import MissingExtraError


def _print_keys(wanted: bool) -> None:
    if wanted:
        from teo.training.command import keys_help

        typer.echo(keys_help())
        raise typer.Exit


def train(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML; recipes are in configs/.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Values in the place of the file's, such as optimisation.epochs=3."
        ),
    ] = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved configuration and stop.")] = False,
    sweep: Annotated[
        str, typer.Option(metavar="KEY=A,B,C", help="A run for each value, and a plot of dev EM against it.")
    ] = "",
    keys: Annotated[
        bool,
        typer.Option("--keys", callback=_print_keys, is_eager=True, help="Print every key with its meaning and stop."),
    ] = False,
) -> None:
    """Train a rewriter's stages; prints the model's folder and dev EM as one JSON line."""
    from teo.training.command import run_command

    try:
        run_command(config, overrides or (), resume=resume, dry_run=dry_run, sweep=sweep)
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "transformers", "accelerate", "safetensors"}:
            raise
        raise MissingExtraError("training", str(error.name), "train") from error
