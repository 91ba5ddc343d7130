"""`teo batch`: rewrite files of any size, on all cores or on a Ray cluster; a job that was stopped resumes."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from teo.cli.rewrite import check_range

if TYPE_CHECKING:
    from teo.scale.job import JobProgress, Totals

BAD_ROWS = 3
"""Exit status of a job that is done and has bad rows: to run it again would change nothing."""
_MOST_ALTERNATIVES = 16
_SECONDS_BETWEEN_LINES = 60.0
"""How often a log gets a line; a terminal has a bar instead."""
_BAR = 24
_GPU_BATCH = 512


def batch(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A file, a folder, a glob or a URL: JSONL or Parquet.")
    ],
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="A folder for the parts, or one file; may be a URL.")],
    *,
    engine: Annotated[str, typer.Option(help="local (processes on this machine) or ray (actors).")] = "local",
    processes: Annotated[
        int | None, typer.Option(help="Number of processes; one per core by default.", metavar="N", min=1)
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="A Ray cluster; by default one is started on this machine.", metavar="ADDRESS")
    ] = None,
    history: Annotated[str | None, typer.Option(help="Column with the history.", metavar="COLUMN")] = None,
    utterance: Annotated[str | None, typer.Option(help="Column with the utterance.", metavar="COLUMN")] = None,
    messages: Annotated[
        str | None, typer.Option(help="Column with chat messages, instead of these two.", metavar="COLUMN")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column with the id of the record.", metavar="COLUMN")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A model folder, or hub:owner/name; by default the embedded model.", metavar="MODEL"),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="The pipeline: fast, fused, direct or teo; by default the model's own.", metavar="NAME"),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            help="A named threshold: search (0.2), balanced (0.5, the default) or careful (0.8).", metavar="NAME"
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(help="A threshold of your own, 0 to 1: below it, utterances stay unchanged."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Utterances and /patterns/ to leave unchanged, one per line.", metavar="FILE"),
    ] = None,
    n_best: Annotated[
        int, typer.Option(help=f"Up to K different rewrites, 1 to {_MOST_ALTERNATIVES}.", metavar="K")
    ] = 1,
    truncation: Annotated[
        str, typer.Option(help="If a dialogue is too long: oldest (drop the oldest turns) or error.", metavar="RULE")
    ] = "oldest",
    device: Annotated[str, typer.Option(help="cpu, or cuda for the torch weights of a trained folder.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, or bfloat16 on a GPU.")] = "float32",
    batch_size: Annotated[
        int | None, typer.Option(help=f"Rows per batch; by default 32, or {_GPU_BATCH} on a GPU.", metavar="N", min=1)
    ] = None,
    part_rows: Annotated[
        int | None,
        typer.Option(help="Rows per part: at most what a stopped process repeats; by default 64 to 2,048.", min=1),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads per process.", metavar="N", min=1)] = 1,
) -> None:
    """Rewrite large files on all cores or on a Ray cluster.

    Every input row gets one output row, in order. To resume a job that was stopped, run the same command again. A bad
    row becomes an error row, and the exit status is then 3. Parquet, URLs and --engine ray need the extra scale.
    """
    from teo.errors import InputError
    from teo.scale.job import Job, run_job
    from teo.scale.rows import Columns
    from teo.scale.worker import BatchTask, ModelChoice

    check_range("--min-confidence", min_confidence, 0, 1)
    check_range("--n-best", n_best, 1, _MOST_ALTERNATIVES)
    if device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", device):
        raise InputError(f"--device: expected cpu or cuda, found '{device}'")
    chosen = ModelChoice(
        model,
        variant,
        device=device,
        bf16=_require("dtype", dtype, "float32", "bfloat16") == "bfloat16",
        threads=threads,
        keep=_read_keep(keep),
        batch_size=batch_size or (32 if device == "cpu" else _GPU_BATCH),
    )
    task = BatchTask(
        source,
        target,
        "jsonl",
        chosen,
        Columns(history, utterance, messages, row_id),
        prefer,  # type: ignore[arg-type]
        min_confidence,
        "error" if _require("truncation", truncation, "oldest", "error") == "error" else "oldest",
        n_best,
    )
    kind: Literal["local", "ray"] = "ray" if _require("engine", engine, "local", "ray") == "ray" else "local"
    if address is not None and kind == "local":
        raise InputError("--address: expected --engine ray with it; add that, or leave the address out")
    display = Display(sys.stderr)
    try:
        totals, progress = run_job(Job(task, kind, processes, address, part_rows), display)
    except KeyboardInterrupt:
        typer.echo("teo: stopped; to resume, run the same command again", err=True)
        raise
    finally:
        display.finish()
    typer.echo(f"teo: {summarise(totals, progress)}", err=True)
    if totals.fault:
        typer.echo(f"teo: the first bad row is {totals.fault}", err=True)
    raise typer.Exit(BAD_ROWS if totals.errors else 0)


def _require(name: str, value: str, *choices: str) -> str:
    """Return an option's value; raises if it is none of the choices."""
    from teo.errors import InputError

    if value not in choices:
        raise InputError(f"--{name}: expected {' or '.join(choices)}, found '{value}'")
    return value


def _read_keep(keep: Path | None) -> tuple[str, ...]:
    from teo.rules import read_keep_file

    return tuple(read_keep_file(keep)) if keep is not None else ()


class Display:
    """The progress of a job on stderr: a bar on a terminal, else a line a minute."""

    def __init__(self, log: TextIO) -> None:
        self._log, self._bar, self._shown = log, log.isatty(), time.monotonic()
        self._open = False

    def __call__(self, progress: JobProgress) -> None:
        """Show the progress."""
        if self._bar:
            self._log.write(f"\r\x1b[K{draw_bar(progress)} {describe(progress)}")
            self._open = True
        elif time.monotonic() - self._shown >= _SECONDS_BETWEEN_LINES:
            self._shown = time.monotonic()
            self._log.write(f"teo: {describe(progress)}\n")
        self._log.flush()

    def finish(self) -> None:
        """End the line of the bar."""
        if self._open:
            self._log.write("\n")
            self._open = False


def draw_bar(progress: JobProgress) -> str:
    """Return the finished share as a bar."""
    full = _BAR * (progress.before + progress.done) // max(progress.rows, 1)
    return f"[{'#' * full}{'.' * (_BAR - full)}]"


def describe(progress: JobProgress) -> str:
    """Return the progress of a job in words."""
    text = f"{progress.before + progress.done:,} of {progress.rows:,} rows"
    if progress.left is not None:
        text += f", {progress.rate:,.1f} rows/s, {duration(progress.left)} left"
    return text + (f", {progress.errors:,} bad" if progress.errors else "")


def summarise(totals: Totals, progress: JobProgress) -> str:
    """Return the totals and the speed of a finished job in words."""
    rows = f"{totals.rows:,} rows: {totals.changed:,} changed, {totals.errors:,} bad, {totals.repeated:,} repeated"
    if not totals.rows:
        return f"{rows}; the input has none"
    if not progress.done:
        return f"{rows}; all of them were done before"
    before = f" ({progress.before:,} were done before)" if progress.before else ""
    speed = f"{progress.done:,} in {duration(progress.seconds)}{before}, {progress.rate:,.1f} rows/s"
    if progress.processes > 1:
        speed += f", {progress.rate / progress.processes:,.1f} for each of {progress.processes} processes"
    return f"{rows}; {speed}, idle {progress.idle:.0%} of the time"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
