"""What the verbs of training share: arguments, log lines on stderr, and the extra that a missing library belongs to."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from teo.errors import MissingExtraError

Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Values that override the file's, such as optimisation.epochs=3."),
]
_LIBRARIES = frozenset({"onnx", "safetensors", "torch", "transformers"})


@contextmanager
def training_libraries(feature: str) -> Iterator[None]:
    """Name the extra to install if a library of training is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        raise MissingExtraError(feature, str(error.name), "train") from error


def is_main_process() -> bool:
    """Tell whether this is the process that writes; a launcher numbers them."""
    return os.environ.get("RANK", "0") == "0"


def log_to_stderr() -> None:
    """Send this package's log lines to stderr, with the time; only the main process speaks below a warning."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("teo")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(logging.INFO if is_main_process() else logging.WARNING)
