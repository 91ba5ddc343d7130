"""The page on speed says what the stored files say."""

from __future__ import annotations

from pathlib import Path

from performance_page import render

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_made_from_the_files() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page == render(ROOT / "results"), "run python tools/performance_page.py"
