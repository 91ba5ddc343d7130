"""`teo label`: training rows from plain dialogues that a trained model rewrites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import Overrides, log_to_stderr, training_libraries


def label(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML: the model, the dialogues, what is kept.")],
    overrides: Overrides = None,
) -> None:
    """Label plain dialogues with a trained model; prints the JSONL file that was written."""
    log_to_stderr()
    with training_libraries("labelling"):
        from teo.training.label import LabelConfig
        from teo.training.label import label as run
        from teo.training.settings import read_settings

        settings = read_settings(config, LabelConfig, overrides or ())
        run(settings)
    typer.echo(settings.output)
