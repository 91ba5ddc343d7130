"""The `teo` command: its verbs, and the one place where errors become a line on stderr and an exit status."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from teo.cli.average import average
from teo.cli.base import base
from teo.cli.batch import batch
from teo.cli.build import build
from teo.cli.calibrate import calibrate
from teo.cli.data import data_app
from teo.cli.demo import demo
from teo.cli.evaluate import evaluate
from teo.cli.export import export
from teo.cli.judge import judge
from teo.cli.label import label
from teo.cli.mcp import mcp
from teo.cli.output import prepare_streams, show_warnings, silence, write_line
from teo.cli.pretrain import pretrain
from teo.cli.report import report
from teo.cli.reproduce import reproduce
from teo.cli.retrieval import retrieval
from teo.cli.rewrite import rewrite
from teo.cli.score import score
from teo.cli.serve import serve
from teo.cli.train import train
from teo.errors import explain
from teo.version import __version__

app = typer.Typer(
    name="teo",
    help="Complete incomplete utterances of a dialogue: rewrite, train, evaluate, score.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    *(rewrite, batch, demo, score, evaluate, judge, calibrate, retrieval, report, serve, mcp),
    *(train, reproduce, label, average, export, build, pretrain, base),
):
    app.command(verb.__name__)(verb)
app.add_typer(data_app, name="data")

_INTERRUPTED = 130
"""The status that shells give to a command that Ctrl-C ended."""
_HINTS = {
    ("rewrite", "NoSuchOption"): "a turn that starts with - must come after --, as in teo rewrite -- TURN... UTTERANCE"
}
"""What to do, by the verb and the class of the parser's error."""
# typer does not export the class of the parser's errors, which is click's or, in later versions, a copy of it.
_ParserError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


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
    """Run the command; an error is one line on stderr, exit 2 for the user's mistake and 1 for ours."""
    sys.exit(_run())


def _run() -> int:
    """Return the exit status of the command."""
    try:
        prepare_streams()
        with show_warnings():
            status = app(prog_name="teo", standalone_mode=False)
        sys.stdout.flush()  # while an error can still be explained
    except BrokenPipeError:  # the reader of our output left, which is no error
        silence(sys.stdout)
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:
        if os.environ.get("TEO_DEBUG"):
            raise
        parsing = isinstance(error, _ParserError)
        message, status = _explain_parser_error(error) if parsing else explain(error)
        if message:
            write_line(f"teo: {message}")
        silence(sys.stdout)
        return status
    return status if isinstance(status, int) else 0


def _explain_parser_error(error: Exception) -> tuple[str, int]:
    """Return what is wrong with the arguments, in one line, and the exit status."""
    message = " ".join(error.format_message().split()).removesuffix(".")  # type: ignore[attr-defined]
    context, name = getattr(error, "ctx", None), type(error).__name__
    if name == "NoArgsIsHelpError":  # the help was printed when it was made, unless it is the message
        return message, 2
    hints = [f"see {context.command_path} --help"] if context else []
    if context and (hint := _HINTS.get((str(context.info_name), name))):
        hints.insert(0, hint)
    return "; ".join([message, *hints]), 2
