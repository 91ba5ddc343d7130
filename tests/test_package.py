"""The package's front door."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

import teo
from checkout import ROOT


def test_the_public_names_are_listed_and_there() -> None:
    assert set(teo.__all__) <= set(dir(teo))
    assert {"Rewriter", "Rewrite", "Dialogue", "TeoError"} <= set(dir(teo))
    for name in teo.__all__:
        assert getattr(teo, name) is not None


@pytest.mark.process
def test_listing_them_loads_nothing() -> None:
    code = "import sys, teo; assert 'Rewriter' in dir(teo); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_notice_names_what_asks_for_attribution_and_is_packed() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for source in (
        "SGD",
        "CANARD",
        "Taskmaster",
        "AMI",
        "ICSI",
        "MTS-Dialog",
        "ACI-Bench",
        "HWU64",
        "BANKING77",
        "CLINC150",
    ):
        assert source in notice
    for card in re.findall(r"[\w/]+/README\.md", notice):
        assert (ROOT / card).is_file()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["license-files"] == ["LICENSE", "NOTICE"]
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "LICENSE NOTICE " in image
    assert "!NOTICE" in (ROOT / ".dockerignore").read_text(encoding="utf-8")
