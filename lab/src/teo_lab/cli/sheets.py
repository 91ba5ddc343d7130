"""`teo-lab sheets`: what is to be read by meaning, what readers said, and rows to calibrate with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo_lab.cli.help import add_verb

DataFolder = Annotated[Path, typer.Option("--data", help="The folder of the published datasets.")]
SetNames = Annotated[
    list[str] | None, typer.Option("--set", help="A set, such as everyday-dev-en or task; by default all.")
]
sheets_app = typer.Typer(help="Read rewrites by meaning, and keep what was said of them.", no_args_is_help=True)


def make(
    out: Annotated[Path, typer.Argument(help="Folder for the sheets, one for each set.")],
    *,
    data: DataFolder = Path("data"),
    sets: SetNames = None,
    model: Annotated[str | None, typer.Option(help="A model folder; by default the embedded model.")] = None,
    variant: Annotated[str | None, typer.Option(help="The pipeline; by default the model's own.")] = None,
    sample: Annotated[int, typer.Option(min=0, help="Judge N rewrites of each set; 0: all.", metavar="N")] = 0,
) -> None:
    """Write sheets of the rewrites that nobody has read yet. Prints how many each has.

    Example: teo-lab sheets make runs/sheets --data data --set everyday-held-zh
    """
    from teo.rewriter import Rewriter
    from teo_lab.sheets import SETS, make_sheets

    rewriter = Rewriter.from_pretrained(model, variant=variant)
    for name, count in make_sheets(rewriter, sets or SETS, data, out, sample).items():
        typer.echo(f"{name}: {count} to read")


def take(
    name: Annotated[str, typer.Argument(help="The set.")],
    sheet: Annotated[Path, typer.Argument(help="The sheet that was read.")],
    readings: Annotated[list[Path], typer.Argument(help="Lines `NUMBER VERDICT`, a file for each reader.")],
    *,
    model: Annotated[str, typer.Option(help="Name or fingerprint of the model whose rewrites these are.")],
) -> None:
    """Store what readers said of a sheet in lab/results/judged. Where they differ, the last file decides.

    Example: teo-lab sheets take task runs/sheets/task.jsonl reader.txt --model 3f2a9c
    """
    from teo_lab.sheets import take_verdicts

    count, differing = take_verdicts(name, sheet, readings, model)
    typer.echo(f"{name}: {count} verdicts stored, readers differ on {len(differing)}")


def rows(
    out: Annotated[Path, typer.Argument(help="Folder for the JSONL files, one for each set.")],
    *,
    data: DataFolder = Path("data"),
    sets: SetNames = None,
    model: Annotated[str | None, typer.Option(help="With --sample: the model; by default the embedded one.")] = None,
    sample: Annotated[
        int,
        typer.Option(min=0, help="Only the rows up to the last of N rewrites that were judged; 0: all.", metavar="N"),
    ] = 0,
) -> None:
    """Write the rows of the sets with all verdicts, for `teo calibrate`. Prints the files.

    Give the --sample that the sheets were made with.

    Example: teo-lab sheets rows runs/judged --data data --set canard --sample 250

    Example: teo calibrate runs/own runs/judged/*.jsonl
    """
    from teo.files import write_jsonl
    from teo.rewriter import Rewriter
    from teo_lab.sheets import SETS, judged_rows, sampled_rows

    rewriter = Rewriter.from_pretrained(model) if sample else None
    for name in sets or SETS:
        file = out / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        found = sampled_rows(name, data, rewriter, sample) if rewriter else judged_rows(name, data)
        write_jsonl(file, (row.to_dict() for row in found))
        typer.echo(str(file))


for verb in (make, take, rows):
    add_verb(sheets_app, verb)
