"""The package's front door."""

from __future__ import annotations

import subprocess
import sys

import teo


def test_the_public_names_are_listed_and_there() -> None:
    assert set(teo.__all__) <= set(dir(teo))
    assert {"Rewriter", "Rewrite", "Dialogue", "TeoError"} <= set(dir(teo))
    for name in teo.__all__:
        assert getattr(teo, name) is not None


def test_listing_them_loads_nothing() -> None:
    code = "import sys, teo; assert 'Rewriter' in dir(teo); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
