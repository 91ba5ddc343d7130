"""Errors as one line and an exit status."""

from __future__ import annotations

import errno
import os

import pytest

from teo.errors import InputError, TeoError, explain


def refused(number: int, *names: str) -> OSError:
    first, second = (*names, None, None)[:2]
    return OSError(number, os.strerror(number), first, None, second)


@pytest.mark.parametrize(
    ("error", "message", "status", "reason"),
    [
        (InputError("x: expected y"), "x: expected y", 2, "the user's mistake"),
        (TeoError("the connection failed"), "the connection failed", 1, "not the user's"),
        (InputError("a\nb  c\n"), "a b c", 2, "one line whatever was quoted"),
        (
            refused(errno.ENOSPC),
            "writing failed: No space left on device; free some space or write elsewhere",
            2,
            "a full disk behind an open stream",
        ),
        (refused(errno.EACCES, "f"), "f: cannot be read or written: Permission denied", 2, "the file is named"),
        (
            refused(errno.EXDEV, "f", "g"),
            "f (with g): cannot be read or written: Invalid cross-device link",
            2,
            "both files",
        ),
        (refused(errno.EIO), "reading or writing failed: Input/output error", 2, "no name to name"),
        (KeyError("k"), "KeyError: 'k'; this is a defect of teo, please report it", 1, "ours"),
    ],
)
def test_one_line_and_a_status(error: Exception, message: str, status: int, reason: str) -> None:
    assert explain(error) == (message, status), reason
