"""`teo-lab clean`: pretraining text with free licences alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo_lab.cli.logs import log_both_to_stderr


def clean(
    corpora: Annotated[Path, typer.Argument(help="The folder of the collected corpora.")],
    sampled: Annotated[Path, typer.Argument(help="Dialogues that a teacher wrote, as JSONL.")],
    out: Annotated[Path, typer.Argument(help="Folder for the shards.")],
) -> None:
    """Write the shards of free text that weights/base was pretrained on. Prints how many dialogues each has.

    Example: teo-lab clean corpora data/teacher_en/sampled.jsonl.xz runs/clean
    """
    from teo_lab.pretraining.clean_text import write_clean_shards

    log_both_to_stderr()
    for name, count in write_clean_shards(corpora, sampled, out).items():
        typer.echo(f"{name}: {count}")
