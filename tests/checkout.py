"""Where things lie that tests of both packages read: the checkout, and the data beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "TEO_TEST_DATA"
TEST_DATA = (ROOT / os.environ.get(VARIABLE, "../shared")).resolve()
"""Published datasets (data/), outputs and scores of other systems (oracles/), the paper (paper/)."""


def reason(*parts: str) -> str:
    """Return why a test is skipped that needs this part of the data."""
    return f"no {TEST_DATA.joinpath(*parts)}: let {VARIABLE} name the folder that holds {'/'.join(parts)}"


def find_data(*parts: str) -> Path:
    """Return a file or folder of the data; the test is skipped if it is absent."""
    path = TEST_DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(reason(*parts))
    return path


def needs_data(*parts: str) -> pytest.MarkDecorator:
    """Return the mark of tests that are skipped if this part of the data is absent."""
    return pytest.mark.skipif(not TEST_DATA.joinpath(*parts).exists(), reason=reason(*parts))
