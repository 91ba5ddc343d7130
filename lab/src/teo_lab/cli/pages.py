"""`teo-lab pages`: the pages whose figures come from stored results."""

from __future__ import annotations

from typing import Annotated

import typer

from teo.cli.output import write_line


def pages(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 and name the pages that would change.")
    ] = False,
) -> None:
    """Write the figures of the READMEs and of the generated pages from lab/results. Prints the pages that changed.

    Example: teo-lab pages --check
    """
    from teo_lab.pages.make import find_stale, write_pages

    stale = find_stale() if check else write_pages()
    for name in stale:
        typer.echo(name)
    if check and stale:
        write_line("teo-lab: these pages are not what lab/results makes; run teo-lab pages")
        raise typer.Exit(1)
