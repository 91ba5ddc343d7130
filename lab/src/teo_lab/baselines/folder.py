"""Telling a baseline's folder from a model's, without torch."""

from __future__ import annotations

from pathlib import Path

BASELINE_FILE = "baseline.json"
"""The file that makes a folder a baseline's."""


def is_baseline(path: str | Path | None) -> bool:
    """Tell whether a folder holds a baseline."""
    return path is not None and (Path(path) / BASELINE_FILE).is_file()
