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
        typer.Argument(metavar="FOLDER...", help="Two or more folders of models; teo-default is the embedded one."),
    ],
    share: Annotated[
        float,
        typer.Option(
            help="The first folder's share; the others have equal parts of the rest. 0: all have equal parts."
        ),
    ] = 0.0,
) -> None:
    """Average models of the same shape. Prints the folder that was written.

    A folder that is given several times counts several times.

    Example: teo-lab average runs/default runs/f1 runs/f2

    Example: teo-lab average runs/mean runs/mine teo-default --share 0.65
    """
    with training_libraries("averaging models"):
        from teo_lab.average import average as run

        run(out, folders, share)
    typer.echo(str(out))
