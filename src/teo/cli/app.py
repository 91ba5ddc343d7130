"""The `teo` command: its verbs, and the one place where errors become a line on stderr and an exit status."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from teo.cli.average import average
from teo.cli.base import base
from teo.cli.build import build
from teo.cli.calibrate import calibrate
from teo.cli.data import data_app
from teo.cli.demo import demo
from teo.cli.evaluate import evaluate
from teo.cli.export import export
from teo.cli.label import label
from teo.cli.mcp import mcp
from teo.cli.pretrain import pretrain
from teo.cli.rewrite import rewrite
from teo.cli.score import score
from teo.cli.serve import serve
from teo.cli.train import train
from teo.errors import TeoError
from teo.version import __version__

app = typer.Typer(
    name="teo",
    help="Complete incomplete utterances of a dialogue: rewrite, train, evaluate, score.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    *(rewrite, demo, score, evaluate, calibrate, serve, mcp),
    *(train, label, average, export, build, pretrain, base),
):
    app.command(verb.__name__)(verb)
app.add_typer(data_app, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"teo {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if debug:
        os.environ["TEO_DEBUG"] = "1"


def main() -> None:
    """Run the command; a known error is one line on stderr, exit 2 for the user's mistake and 1 for ours."""
    try:
        app()
    except TeoError as error:
        if os.environ.get("TEO_DEBUG"):
            raise
        typer.echo(f"teo: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output left: not an error, but Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
