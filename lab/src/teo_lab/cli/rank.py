"""`teo-lab rank`: a trained model learns to prefer right rewrites among its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import training_libraries
from teo_lab.cli.logs import log_both_to_stderr


def rank(
    model: Annotated[Path, typer.Argument(help="The folder of a model with the roles fused, direct and fast.")],
    rows: Annotated[Path, typer.Argument(help="JSONL file of rows that the model has not seen.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; replaced as a whole if it exists.")],
    *,
    minutes: Annotated[float, typer.Option(help="The time to learn in.", min=0.01)] = 5.0,
    rounds: Annotated[int, typer.Option(help="Stop after N rounds; 0: when the time is over.", metavar="N")] = 0,
    weight: Annotated[float, typer.Option(help="Weight of ranking; 0 learns the references alone.", min=0.0)] = 0.5,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.", min=0.0)] = 1e-4,
    round_rows: Annotated[int, typer.Option(help="Rows to draw rewrites for at a time.", min=1)] = 8192,
    workers: Annotated[int, typer.Option(help="Processes that encode the rows.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all drawing.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Let a model prefer right rewrites among those that it draws itself. Prints the folder that was written.

    A rewrite is right if it says what the row's reference says. Hold rows out of training for this: of rows that it
    knows by heart, a model draws nothing wrong.

    Example: teo-lab rank runs/clean runs/held.jsonl runs/ranked --minutes 5
    """
    log_both_to_stderr()
    with training_libraries("ranking"):
        from teo.data import load_rows
        from teo_lab.ranking.rank import RankSettings
        from teo_lab.ranking.rank import rank as run

        settings = RankSettings(
            minutes=minutes,
            rounds=rounds,
            weight=weight,
            learning_rate=learning_rate,
            round_rows=round_rows,
            workers=workers,
            seed=seed,
        )
        run(model, load_rows("jsonl", rows, strict=True).rows, out, settings, device)
    typer.echo(str(out))
