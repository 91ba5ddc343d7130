"""`teo-lab teacher`: a pretrained decoder that learns our rows and writes new ones for the smaller model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import training_libraries
from teo_lab.cli.help import add_verb
from teo_lab.cli.logs import log_both_to_stderr
from teo_lab.cli.rows import RecipeOverrides

teacher_app = typer.Typer(
    help="Let a pretrained decoder learn our rows and write new ones, on a GPU.", no_args_is_help=True
)
TeacherArgument = Annotated[Path, typer.Argument(help="The folder that teo-lab teacher tune wrote.")]
GgufArgument = Annotated[Path, typer.Argument(metavar="MODEL.gguf", help="A pretrained decoder in a GGUF file.")]
OutArgument = Annotated[Path, typer.Argument(help="The JSONL file to write.")]
SeedOption = Annotated[int, typer.Option(help="Seed of everything that is drawn.")]


def prepare(
    recipe: Annotated[Path, typer.Argument(help="Recipe of rows in TOML, such as lab/configs/shipped/rows.toml.")],
    folder: Annotated[Path, typer.Argument(help="Folder for rows.jsonl and openings.jsonl.")],
    overrides: RecipeOverrides = None,
    *,
    dialogues: Annotated[
        list[Path] | None,
        typer.Option(help="A shard of dialogues that lends openings; may be given again.", metavar="FILE"),
    ] = None,
    seed: SeedOption = 1,
) -> None:
    """Write what a teacher learns and starts from: English rows and openings.

    Example: teo-lab teacher prepare lab/configs/shipped/rows.toml runs/teacher --dialogues en.jsonl.xz
    """
    log_both_to_stderr()
    from teo.training.settings import read_settings
    from teo_lab.rows.settings import RowsRecipe
    from teo_lab.teacher.prepare import prepare as run

    rows, openings = run(read_settings(recipe, RowsRecipe, overrides or ()), folder, dialogues or (), seed)
    typer.echo(f"{folder}: {rows} rows, {openings} openings")


def tune(
    model: GgufArgument,
    rows: Annotated[Path, typer.Argument(help="rows.jsonl of teo-lab teacher prepare.")],
    teacher: Annotated[Path, typer.Argument(help="The folder to write.")],
    *,
    seconds: Annotated[float, typer.Option(help="Wall clock of the tuning.", metavar="S")] = 150.0,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 4e-4,
    batch_tokens: Annotated[int, typer.Option(help="Tokens of a batch, padding included.", metavar="N")] = 32_768,
    length: Annotated[int, typer.Option(help="Tokens of a row; longer ones are left out.", metavar="N")] = 448,
    seed: SeedOption = 1,
) -> None:
    """Tune a pretrained decoder to the rows. Prints its folder and the number of updates.

    Example: teo-lab teacher tune tinyllama.gguf runs/teacher/rows.jsonl runs/teacher/model
    """
    log_both_to_stderr()
    with training_libraries("tuning a teacher"):
        from teo_lab.teacher.model import tune_teacher
        from teo_lab.teacher.tune import TuneSettings

        settings = TuneSettings(seconds, learning_rate, batch_tokens=batch_tokens, seed=seed)
        updates = tune_teacher(model, rows, teacher, settings, length)
    typer.echo(f"{teacher}: {updates} updates")


def rewrite(
    teacher: TeacherArgument,
    rows: Annotated[Path, typer.Argument(help="JSONL rows with history and utterance.")],
    out: OutArgument,
    *,
    length: Annotated[int, typer.Option(help="Tokens of a dialogue with its rewrite, at most.", metavar="N")] = 448,
    columns: Annotated[int, typer.Option(help="Rows rewritten at once.", metavar="N")] = 1024,
) -> None:
    """Write rows with the teacher's rewrites. Prints how many there are.

    Example: teo-lab teacher rewrite runs/teacher/model rows.jsonl rewritten.jsonl
    """
    with training_libraries("rewriting with a teacher"):
        from teo_lab.teacher.rewrite import rewrite_rows

        count = rewrite_rows(teacher, rows, out, length, columns)
    typer.echo(f"{out}: {count} rows")


def sample(
    teacher: TeacherArgument,
    openings: Annotated[Path, typer.Argument(help="openings.jsonl of teo-lab teacher prepare.")],
    out: OutArgument,
    *,
    count: Annotated[int, typer.Option(help="Dialogues to start.", metavar="N")] = 500_000,
    seconds: Annotated[float, typer.Option(help="Wall clock, at most.", metavar="S")] = 150.0,
    length: Annotated[int, typer.Option(help="Tokens of a dialogue with its rewrite, at most.", metavar="N")] = 224,
    columns: Annotated[int, typer.Option(help="Dialogues sampled at once.", metavar="N")] = 4096,
    seed: SeedOption = 1,
) -> None:
    """Sample dialogues with their rewrites. Prints how many were taken.

    A row is taken if the teacher is sure of it and the dialogue bears it out.

    Example: teo-lab teacher sample runs/teacher/model runs/teacher/openings.jsonl sampled.jsonl
    """
    log_both_to_stderr()
    with training_libraries("sampling from a teacher"):
        from teo_lab.teacher.sample import SampleSize, sample_rows

        written = sample_rows(teacher, openings, out, SampleSize(count, seconds, length, columns, seed))
    typer.echo(f"{out}: {written} rows")


def answers(
    model: GgufArgument,
    out: OutArgument,
    *,
    count: Annotated[int, typer.Option(help="Questions of the English templates.", metavar="N")] = 5000,
    batch: Annotated[int, typer.Option(help="Questions answered at once.", metavar="N")] = 1024,
    tokens: Annotated[int, typer.Option(help="Tokens of an answer, at most.", metavar="N")] = 220,
    seed: SeedOption = 1,
) -> None:
    """Let a chat model answer the templates' questions. Prints how many answers were added.

    A run that was stopped resumes with the questions that are left. A recipe of rows takes the file as its answers.

    Example: teo-lab teacher answers smollm2.gguf answers.jsonl --count 5000
    """
    with training_libraries("sampling answers"):
        from teo_lab.teacher.answers import sample_answers

        written = sample_answers(model, out, count, batch, tokens, seed)
    typer.echo(f"{out}: {written} answers added")


for verb in (prepare, tune, rewrite, sample, answers):
    add_verb(teacher_app, verb)
