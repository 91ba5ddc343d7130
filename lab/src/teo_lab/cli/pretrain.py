"""`teo-lab pretrain`: pretrain the backbone on plain dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import is_main_process, training_libraries
from teo_lab.cli.logs import log_both_to_stderr


def pretrain(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML, such as lab/configs/shipped/pretrain.toml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Values that override the file's, such as loop.steps=20000."),
    ] = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Stop once the tokenizer and the token streams are made.")
    ] = False,
) -> None:
    """Pretrain the backbone on plain dialogues. Prints the model's folder.

    The same command resumes a run that was stopped; with other settings, loop.steps apart, it is refused.

    Example: teo-lab pretrain lab/configs/shipped/pretrain.toml

    Example: teo-lab pretrain lab/configs/shipped/pretrain.toml --prepare
    """
    log_both_to_stderr()
    with training_libraries("pretraining"):
        from teo.training.settings import read_settings
        from teo_lab.pretraining import pretrain as module

        settings = read_settings(config, module.PretrainConfig, overrides or ())
        if prepare:
            module.prepare(settings)
            typer.echo(settings.output)
        else:
            folder = module.pretrain(settings)
            if is_main_process():
                typer.echo(str(folder))
