"""`teo-lab rows`: training rows of a recipe, as JSONL that `teo train` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo_lab.cli.logs import log_both_to_stderr

RecipeOverrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Values in the place of the recipe's, such as everyday_en=100."),
]


def rows(
    recipe: Annotated[Path, typer.Argument(help="Recipe in TOML, such as lab/configs/shipped/rows.toml.")],
    out: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    overrides: RecipeOverrides = None,
) -> None:
    """Make training rows as JSONL. Prints the file and the number of rows.

    teo train reads the file as a dataset of its own: name = "jsonl", train = "all", dev = "".

    Example: teo-lab rows lab/configs/shipped/rows.toml runs/rows.jsonl

    Example: teo-lab rows lab/configs/shipped/rows.toml few.jsonl everyday_en=100
    """
    from teo.training.settings import read_settings
    from teo_lab.rows.build import build_rows
    from teo_lab.rows.settings import RowsRecipe

    log_both_to_stderr()
    count = build_rows(read_settings(recipe, RowsRecipe, overrides or ()), out)
    typer.echo(f"{out}: {count} rows")
