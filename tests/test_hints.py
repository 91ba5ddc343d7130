"""Every hint installs our own distribution."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = sorted((ROOT / "src" / "teo").rglob("*.py"))
TEXTS = sorted(
    [
        *SOURCES,
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(path for path in (ROOT / "examples").rglob("*") if path.is_file()),
    ]
)


def test_hints_install_our_own_distribution_and_extras_that_exist() -> None:
    """The name teo on PyPI is another project's."""
    hints = [
        (path.name, *hint)
        for path in TEXTS
        if path.suffix != ".pyc"
        for hint in re.findall(r"pip install '([\w.-]+)\[([\w,{}-]+)\]'", path.read_text(encoding="utf-8"))
    ]
    assert len(hints) > 8
    assert {name for _, name, _ in hints} <= {PROJECT["name"], "."}
    extras = {extra for _, _, found in hints for extra in found.split(",")}
    assert extras - {"{extra}"} <= set(PROJECT["optional-dependencies"])
