"""The `teo-lab` command and its verbs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from teo.cli.shell import run_command
from teo_lab import __version__
from teo_lab.cli.average import average
from teo_lab.cli.base import base
from teo_lab.cli.clean import clean
from teo_lab.cli.encode import encode
from teo_lab.cli.evaluate import evaluate
from teo_lab.cli.help import add_verb
from teo_lab.cli.judge import judge
from teo_lab.cli.pages import pages
from teo_lab.cli.pretrain import pretrain
from teo_lab.cli.rank import rank
from teo_lab.cli.report import report
from teo_lab.cli.reproduce import reproduce
from teo_lab.cli.retrieval import retrieval
from teo_lab.cli.rows import rows
from teo_lab.cli.sheets import sheets_app
from teo_lab.cli.store import store
from teo_lab.cli.teacher import teacher_app
from teo_lab.cli.train import train

app = typer.Typer(
    name="teo-lab",
    help="Make the models of teo, and measure and compare them.",
    epilog="Options and examples of a verb: teo-lab VERB --help",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
MAKE, MEASURE = "Make a model", "Measure and compare"
PANELS: dict[str, tuple[Callable[..., Any], ...]] = {
    MAKE: (rows, encode, train, rank, clean, pretrain, base, average),
    MEASURE: (reproduce, evaluate, judge, retrieval, store, pages, report),
}
for panel, verbs in PANELS.items():
    for verb in verbs:
        add_verb(app, verb, panel)
app.add_typer(teacher_app, name="teacher", rich_help_panel=MAKE)
app.add_typer(sheets_app, name="sheets", rich_help_panel=MEASURE)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"teo-lab {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if debug:
        os.environ["TEO_DEBUG"] = "1"


def main() -> None:
    """Run the command; an error is one line on stderr, exit 2 for the user's mistake and 1 for ours."""
    sys.exit(run_command(app, "teo-lab"))
