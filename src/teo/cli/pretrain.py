"""`teo pretrain`: pretrain the backbone on plain dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import Overrides, is_main_process, training_libraries


def pretrain(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML, such as configs/shipped/pretrain.toml.")],
    overrides: Overrides = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Stop once the tokenizer and the token streams are made.")
    ] = False,
) -> None:
    """Pretrain the backbone; a run that was stopped goes on. Prints the model's folder."""
    with training_libraries("pretraining"):
        from teo.training.pretraining import pretrain as module
        from teo.training.settings import read_settings

        settings = read_settings(config, module.PretrainConfig, overrides or ())
        if prepare:
            module.prepare(settings)
            typer.echo(settings.output)
        else:
            folder = module.pretrain(settings)
            if is_main_process():
                typer.echo(str(folder))
