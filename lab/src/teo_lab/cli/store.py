"""`teo-lab store`: evaluations among the stored results, without the datasets' text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def store(
    folder: Annotated[Path, typer.Argument(help="Where to, such as lab/results/default.", metavar="RESULTS/MODEL")],
    runs: Annotated[list[Path], typer.Argument(help="Folders that teo evaluate wrote.", metavar="RUN...")],
) -> None:
    """Store evaluations without the dataset's text. Prints the files that it wrote.

    The metrics of a run are copied as DATASET-SPLIT-VARIANT.json. DATASET-SPLIT-VARIANT.rows.jsonl.gz has of each
    predicted row its id, whether it was right and changed, the log-probability, and a hash of the text, by which a
    repeated run can be checked.

    Example: teo-lab store lab/results/default runs/task-test
    """
    from teo_lab.reproduce.stored_rows import store as store_run

    for run in runs:
        typer.echo(str(store_run(folder, run)))
