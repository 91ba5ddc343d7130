"""Runs a command: the one function that turns errors into a line on stderr and an exit status."""

from __future__ import annotations

import os
import sys

import typer

from teo.cli.output import prepare_streams, show_warnings, silence, write_line
from teo.errors import explain

_INTERRUPTED = 130
"""The status that shells give to a command that Ctrl-C ended."""
_HINTS = {
    ("rewrite", "NoSuchOption"): "a turn that starts with - must come after --, as in teo rewrite -- TURN... UTTERANCE"
}
"""What to do, by the verb and the class of the parser's error."""
# typer does not export the class of the parser's errors, which is click's or, in later versions, a copy of it.
_ParserError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def run_command(app: typer.Typer, name: str) -> int:
    """Return the exit status of a command: 0, 2 for the user's mistake, 1 for ours, 130 if it was interrupted."""
    try:
        prepare_streams()
        with show_warnings():
            status = app(prog_name=name, standalone_mode=False)
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
            write_line(f"{name}: {message}")
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
