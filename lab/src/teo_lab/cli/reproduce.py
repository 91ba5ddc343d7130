"""`teo-lab reproduce`: a table of the paper, trained, evaluated and printed beside the paper's own figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teo.cli.training import Overrides, training_libraries
from teo.errors import InputError
from teo_lab.cli.logs import log_both_to_stderr
from teo_lab.paths import CONFIGS, RESULTS

if TYPE_CHECKING:
    from teo_lab.reproduce.runs import Workspace

_BASELINES = "baselines"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="table2 to table5, table9, architectures, figure2, errors, cases, figure3 or all; or baselines.",
        ),
    ],
    overrides: Overrides = None,
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder that holds task, rewrite and res200k; may be left out with --stored."),
    ] = None,
    base: Annotated[
        str, typer.Option(help="Folder or hub name of the model to start from; by default that of each recipe.")
    ] = "",
    t5: Annotated[
        str,
        typer.Option(
            help="The T5 that TEO-T5 starts from (the paper: t5-base; for Chinese mt5-base); without it that row is "
            "left out."
        ),
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Train each model with seeds 0 to N - 1; by default 1, with --stored all that are stored.", metavar="N"
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="This dataset alone (task, rewrite, res200k); may be given again.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Train and evaluate this kind of run alone, such as teo, direct or shared; may be given again.",
            metavar="KIND",
        ),
    ] = None,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Train nothing: make the tables of what is stored, with the stored settings."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained and evaluated, and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables and stored results; by default lab/results/reproduce/BASE.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder for models and predictions; by default runs/reproduce/BASE.")
    ] = None,
    recipes: Annotated[
        Path, typer.Option(help="The folder of the paper's recipes.", show_default="lab/configs/paper")
    ] = CONFIGS / "paper",
    published: Annotated[
        Path, typer.Option(help="The published figures.", show_default="lab/results/published.json")
    ] = RESULTS / "published.json",
) -> None:
    """Reproduce a table of the paper; what is finished is not done again. Prints the table as Markdown.

    The name baselines trains and evaluates the baselines instead: other published methods on our backbone.

    Example: teo-lab reproduce table3 --base teo-base --data data --dry-run

    Example: teo-lab reproduce all --stored --base teo-base
    """
    if name == _BASELINES:
        if t5 or seeds not in (None, 1) or dataset or only or stored:
            raise InputError(
                "t5, seeds, dataset, only, stored: expected none with baselines; choose a seed with seed=1"
            )
        folders = runs or Path("runs/baselines"), out or RESULTS / "baselines"
        typer.echo(
            _reproduce_baselines(base, _require_data(data), folders, published, overrides or (), dry_run=dry_run),
            nl=False,
        )
        return
    from teo_lab.reproduce.reproduce import Part, describe_plan
    from teo_lab.reproduce.reproduce import reproduce as run
    from teo_lab.reproduce.runs import Workspace
    from teo_lab.reproduce.stored_runs import count_seeds, take_settings

    if not stored:
        _require_data(data)
    folder = Path(base).name or "recipes"
    workspace = Workspace(
        base=base,
        data=data,
        runs=runs or Path("runs/reproduce") / folder,
        out=out or RESULTS / "reproduce" / folder,
        recipes=recipes,
        t5=t5,
        overrides=tuple(overrides or ()),
    )
    part = Part(dataset or (), only or (), stored)
    log_both_to_stderr()
    if stored:
        workspace = take_settings(workspace)
    count = seeds if seeds is not None else count_seeds(workspace) if stored else 1
    if dry_run:
        typer.echo(describe_plan(workspace, name, seeds=count, part=part), nl=False)
        return
    command = _training_command(name, workspace, count)
    with training_libraries("training"):
        page = run(workspace, name, published, seeds=count, command=command, part=part)
    typer.echo(page, nl=False)


def _require_data(data: Path | None) -> Path:
    if data is None:
        raise InputError(
            "data: expected --data with the folder that holds task, rewrite and res200k, found none; only --stored "
            "does without"
        )
    return data


def _training_command(name: str, workspace: Workspace, seeds: int) -> str:
    """Return the command that trains and evaluates what a table shows, without the paths of this machine."""
    names = {"base": workspace.base, "t5": workspace.t5, "data": "data"}
    options = {option: Path(value).name for option, value in names.items()} | {"seeds": str(seeds) if seeds > 1 else ""}
    words = [word for option, value in options.items() if value for word in (f"--{option}", value)]
    return shlex.join(["teo-lab", "reproduce", name, *workspace.overrides, *words])


def _reproduce_baselines(
    base: str, data: Path, folders: tuple[Path, Path], published: Path, overrides: Sequence[str], *, dry_run: bool
) -> str:
    """Return the table of the baselines, or the plan of what would be trained and evaluated."""
    with training_libraries("training a baseline"):
        from teo_lab.baselines.experiment import BaselineExperiment, describe_baselines, reproduce_baselines

        experiment = BaselineExperiment(base or "teo-base", data, *folders, published, tuple(overrides))
        log_both_to_stderr()
        return describe_baselines(experiment) if dry_run else reproduce_baselines(experiment)
