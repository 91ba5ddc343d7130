"""The page on speed says what the stored files say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_is_made_from_the_files() -> None:
    spec = importlib.util.spec_from_file_location("report", ROOT / "benchmarks" / "report.py")
    assert spec is not None
    assert spec.loader is not None
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    assert (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == report.render(ROOT / "results")
