"""What goes wrong, in the user's words: what was expected, what was found, what to do."""

from __future__ import annotations

import errno

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The operating system's numbers for a place that takes no more."""


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
        install = f"pip install 'teo-rewriter[{extra}]'"  # the name teo belongs to another project on PyPI
        super().__init__(f"{feature} needs the library '{library}', which is not installed: {install}")


def explain(error: Exception) -> tuple[str, int]:
    """Return an error as one line for the user, and the exit status: 2 for the user's mistake, 1 for ours."""
    if isinstance(error, TeoError):
        message, status = str(error), error.exit_code
    elif isinstance(error, OSError):
        message, status = _explain_os_error(error), 2
    else:
        message, status = f"{type(error).__name__}: {error}; this is a defect of teo, please report it", 1
    return " ".join(message.split()) if "\n" in message else message, status


def _explain_os_error(error: OSError) -> str:
    """Return what the operating system refused: which file, where it says so, and why."""
    reason = error.strerror or str(error) or type(error).__name__
    full = error.errno in NO_SPACE
    advice = "; free some space or write elsewhere" if full else ""
    if error.filename is None:  # a stream that was open already
        return f"{'writing' if full else 'reading or writing'} failed: {reason}{advice}"
    other = f" (with {error.filename2})" if error.filename2 is not None else ""
    return f"{error.filename}{other}: cannot be read or written: {reason}{advice}"
