"""Files of predictions that the tests of human judging compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def make_lines(system: str, rows: int = 24, equal: int = 4) -> list[Line]:
    """Lines of predictions; the first ones are equal in every system."""
    return [
        {
            "id": f"row-{number:03}",
            "history": [f"Person {number} wrote a book.", "<b>Which</b> one?"],
            "current": f"number {number}, where was he born?",
            "reference": f"where was person {number} born?",
            "prediction": f"where was person {number} born{'' if number < equal else f', {system}'}?",
        }
        for number in range(rows)
    ]


def write_lines(file: Path, lines: list[Line]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file
