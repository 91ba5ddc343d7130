"""`teo reproduce`: a table of the paper, trained, evaluated and printed beside the paper's own figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import Overrides, log_to_stderr, training_libraries
from teo.errors import InputError

_PEERS = "peers"


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="TABLE", help="table2, table3, table4, table5, table9, figure3 or all.")
    ],
    overrides: Overrides = None,
    *,
    data: Annotated[Path, typer.Option(help="The folder that holds task, rewrite and res200k.")],
    base: Annotated[
        str, typer.Option(help="Folder or hub name of the model to start from; by default that of each recipe.")
    ] = "",
    t5: Annotated[str, typer.Option(help="The T5 that TEO-T5 starts from; without it that row is left out.")] = "",
    seeds: Annotated[int, typer.Option(help="Train each model with seeds 0 to N - 1.", metavar="N")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained and evaluated, and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables and stored results; by default results/reproduce/BASE.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder for models and predictions; by default runs/reproduce/BASE.")
    ] = None,
    recipes: Annotated[Path, typer.Option(help="The folder of the paper's recipes.")] = Path("configs/paper"),
    published: Annotated[Path, typer.Option(help="The published figures.")] = Path("results/published.json"),
) -> None:
    """Reproduce a table of the paper; what is finished is not done again. Prints the table as Markdown.

    The name peers trains and evaluates the runnable peers instead.
    """
    if name == _PEERS:
        if t5 or seeds != 1:
            raise InputError("t5, seeds: expected none with peers; choose a seed with seed=1")
        folders = runs or Path("runs/peers"), out or Path("results/peers")
        typer.echo(_reproduce_peers(base, data, folders, published, overrides or (), dry_run=dry_run), nl=False)
        return
    from teo.study.reproduce import describe_plan
    from teo.study.reproduce import reproduce as run
    from teo.study.runs import Study

    folder = Path(base).name or "recipes"
    study = Study(
        base=base,
        data=data,
        runs=runs or Path("runs/reproduce") / folder,
        out=out or Path("results/reproduce") / folder,
        recipes=recipes,
        t5=t5,
        overrides=tuple(overrides or ()),
    )
    log_to_stderr()
    if dry_run:
        typer.echo(describe_plan(study, name, seeds=seeds), nl=False)
        return
    options = {"base": folder if base else "", "t5": Path(t5).name, "seeds": str(seeds) if seeds > 1 else ""}
    said = [part for option, value in options.items() if value for part in (f"--{option}", value)]
    command = shlex.join(["teo", "reproduce", name, *(overrides or ()), *said])  # without places on this machine
    with training_libraries("training"):
        page = run(study, name, published, seeds=seeds, command=command)
    typer.echo(page, nl=False)


def _reproduce_peers(
    base: str, data: Path, folders: tuple[Path, Path], published: Path, overrides: Sequence[str], *, dry_run: bool
) -> str:
    """Return the table of the peers, or the plan of what would be trained and evaluated."""
    with training_libraries("training a peer"):
        from teo.study.peers.study import PeerStudy, describe_peers, reproduce_peers

        study = PeerStudy(base or "teo-base", data, *folders, published, tuple(overrides))
        log_to_stderr()
        return describe_peers(study) if dry_run else reproduce_peers(study)
