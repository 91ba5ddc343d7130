"""Log lines of both packages on stderr."""

from __future__ import annotations

import logging

from teo.cli.training import log_to_stderr


def log_both_to_stderr() -> None:
    """Send the log lines of teo and of the lab to stderr, with the time."""
    log_to_stderr()
    teo, lab = logging.getLogger("teo"), logging.getLogger("teo_lab")
    lab.handlers, lab.propagate = teo.handlers, False
    lab.setLevel(teo.level)
