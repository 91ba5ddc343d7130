"""What goes wrong, in the user's words: what was expected, what was found, what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable


class TeoError(Exception):
    """Anything this package raises on purpose; the message is one sentence for the user."""

    exit_code = 1


class InputError(TeoError):
    """The caller's input cannot be used: a bad field, line, option or file."""

    exit_code = 2


class DataError(InputError):
    """A dataset file does not have the published form."""


class ConfigError(InputError, ValueError):
    """A configuration holds an unknown key or an impossible value."""


class ModelError(InputError):
    """A model folder cannot be loaded as asked."""


class MissingExtraError(InputError):
    """An optional part is used whose libraries are not installed."""

    def __init__(self, feature: str, library: str, extra: str) -> None:
        super().__init__(f"{feature} needs the library '{library}', which is not installed: pip install 'teo[{extra}]'")


def exit_status(run: Callable[[], object]) -> int:
    """Return the exit status of a command that needs no more than Python: a known error is one line on stderr."""
    try:
        run()
    except TeoError as error:
        sys.stderr.write(f"teo: {error}\n")
        return error.exit_code
    return 0
