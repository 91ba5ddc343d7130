"""The `teo` command and its verbs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from teo.cli.batch import batch
from teo.cli.calibrate import calibrate
from teo.cli.data import data_app
from teo.cli.demo import demo
from teo.cli.evaluate import evaluate
from teo.cli.export import export
from teo.cli.help import add_verb, show_examples
from teo.cli.mcp import mcp
from teo.cli.rewrite import rewrite
from teo.cli.score import score
from teo.cli.serve import serve
from teo.cli.shell import run_command
from teo.cli.train import train
from teo.version import __version__

app = typer.Typer(
    name="teo",
    help="Rewrite the last utterance of a dialogue so that it stands on its own.",
    epilog="Options and examples of a verb: teo VERB --help",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
USE, ADAPT, MEASURE = "Use", "Adapt to your own data", "Measure"
for panel, verbs in {
    USE: (rewrite, batch, serve, mcp, demo),
    ADAPT: (train, calibrate, export),
    MEASURE: (evaluate, score),
}.items():
    for verb in verbs:
        add_verb(app, verb.__name__, verb, panel=panel)
app.add_typer(data_app, name="data", rich_help_panel=ADAPT, epilog=show_examples("data"))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"teo {__version__}")
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
    sys.exit(run_command(app, "teo"))
