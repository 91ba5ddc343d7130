"""`teo-lab average`: the mean of models that were fine-tuned from one start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import training_libraries


def average(
    out: Annotated[Path, typer.Argument(help="The folder to write; replaced as a whole if it exists.")],
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="Two or more folders of models."),
    ],
) -> None:
    """Average models of the same shape. Prints the folder that was written.

    A folder that is given several times counts several times.

    Example: teo-lab average runs/default runs/f1 runs/f2
    """
    with training_libraries("averaging models"):
        from teo_lab.average import average as run

        run(out, folders)
    typer.echo(str(out))
