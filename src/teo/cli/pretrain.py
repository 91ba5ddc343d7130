"""`teo pretrain`: pretrain the backbone on plain dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.errors import MissingExtraError


def pretrain(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML, such as configs/pretrain.toml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Values in the place of the file's, such as loop.steps=100."),
    ] = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Stop once the tokenizer and the token streams are made.")
    ] = False,
) -> None:
    """Pretrain the backbone; a run that was stopped goes on. Prints the model's folder."""
    try:
        from teo.training.pretraining import pretrain as module
        from teo.training.settings import read_settings
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "transformers", "safetensors"}:
            raise
        raise MissingExtraError("pretraining", str(error.name), "train") from error
    settings = read_settings(config, module.PretrainConfig, overrides or ())
    if prepare:
        module.prepare(settings)
        typer.echo(settings.output)
    else:
        typer.echo(str(module.pretrain(settings)))
