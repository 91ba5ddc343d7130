"""What the lab's tests share: log handlers that a command sets are taken off again."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Put the loggers of both packages back as they were: a command sends their lines to its own stderr."""
    loggers = [logging.getLogger(name) for name in ("teo", "teo_lab")]
    before = [(log, log.handlers, log.propagate, log.level) for log in loggers]
    yield
    for log, handlers, propagate, level in before:
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)
