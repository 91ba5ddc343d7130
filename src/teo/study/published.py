"""The paper's figures, from results/published.json: what stands beside ours in every table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.errors import InputError

_PAPER = "Cao et al. 2025"
_ELSEWHERE = ("GPT-4",)
"""Rows of the paper's other tables."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of the paper, in percent as printed."""

    dataset: str
    system: str
    metrics: Mapping[str, float | None]


def read_paper(path: Path) -> list[PublishedRow]:
    """Return the paper's rows of tables 2 to 5 in the order of the file; those of other papers are left out."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        found = [
            PublishedRow(row["dataset"], row["system"], row["metrics"])
            for row in rows
            if row["source"].startswith(_PAPER) and row["system"] not in _ELSEWHERE
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: expected the published figures ({error}); give results/published.json") from None
    return found
