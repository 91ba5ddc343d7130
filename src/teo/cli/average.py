"""`teo average`: the mean of models that were fine-tuned from one start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import training_libraries


def average(
    out: Annotated[Path, typer.Argument(help="The folder to write; replaced whole if it is there.")],
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Two or more folders of models.")],
) -> None:
    """Average the weights of models of the same shape; prints the folder that was written."""
    with training_libraries("averaging models"):
        from teo.training.average import average as run

        run(out, folders)
    typer.echo(str(out))
