"""Work on many rows, split among forked processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_FEW = 20_000
"""Below this number of items one process is as fast."""
_PARTS = 4
"""Slices per process, so that slow ones even out."""

_work: Callable[[range], list[Any]] | None = None


def map_slices(work: Callable[[range], list[T]], count: int, processes: int) -> list[T]:
    """Return what `work` makes of the numbers below `count`, in order; forked processes take slices of them.

    `work` needs no pickling, since a fork inherits it; what it returns does.
    """
    if processes < 2 or count < max(_FEW, 1) or "fork" not in multiprocessing.get_all_start_methods():
        return work(range(count))
    global _work  # noqa: PLW0603
    _work = work
    size = -(-count // (processes * _PARTS))
    slices = [range(first, min(first + size, count)) for first in range(0, count, size)]
    try:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            return [item for part in pool.imap(_run, slices) for item in part]
    finally:
        _work = None


def _run(part: range) -> list[Any]:
    assert _work is not None
    return _work(part)
