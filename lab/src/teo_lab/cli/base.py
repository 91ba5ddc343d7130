"""`teo-lab base`: a backbone in int8, as weights/base holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import training_libraries


def base(
    checkpoint: Annotated[
        Path, typer.Argument(help="The model folder that pretraining wrote, or the output folder of an unfinished run.")
    ],
    out: Annotated[Path, typer.Argument(help="The folder to write, such as weights/base.")],
) -> None:
    """Store a backbone in int8. Prints the folder that was written.

    Of a fine-tuning run that is not finished, what it has learned by its last checkpoint is stored; another run can
    start from it (model.base).

    Example: teo-lab base runs/pretrain/model weights/base
    """
    with training_libraries("storing a backbone"):
        from teo_lab.pretraining.base import save_checkpoint

        save_checkpoint(checkpoint, out)
    typer.echo(str(out))
