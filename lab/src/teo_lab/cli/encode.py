"""`teo-lab encode`: the rows of a configuration, encoded for training."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import Overrides, training_libraries
from teo_lab.cli.logs import log_both_to_stderr


def encode(
    config: Annotated[Path, typer.Argument(help="Configuration of the training run, in TOML.")],
    out: Annotated[Path, typer.Argument(help="The file to write, such as runs/rows.npz.")],
    overrides: Overrides = None,
) -> None:
    """Encode the rows of a training run beforehand. Prints how many there are.

    Encoding half a million rows takes minutes of several cores, in which a GPU would have nothing to do.

    Example: teo-lab encode lab/configs/shipped/default.toml runs/rows.npz
    """
    log_both_to_stderr()
    with training_libraries("encoding rows"):
        from teo.training.config import read_config
        from teo_lab.encoded import encode as run

        with tempfile.TemporaryDirectory() as work:
            rows = run(read_config(config, overrides or ()), Path(work))
    rows.save(out)
    typer.echo(f"{out}: {len(rows.repeats)} rows, {rows.repeats.sum()} an epoch, {len(rows.ids)} tokens")
