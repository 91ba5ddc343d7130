"""What tests of batch jobs share: rows, and a rewriter by rule for this process and for those that a job starts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.interface import BaseRewriter, DialogueLike
from teo.result import Rewrite

SITE = """
import sys
if sys.argv[:1] != ["-c"] or "ray" not in sys.executable:
    from batch_jobs import Shouting
    from teo.scale.worker import ModelChoice
    ModelChoice.load = lambda self, number=0: Shouting()
"""
"""A `sitecustomize.py`: with it every process of a job loads the rewriter by rule."""


class Shouting(BaseRewriter):
    """It can be slow, fail on a word, be broken, and kill its process once."""

    def __init__(self) -> None:
        self.asked: list[list[Dialogue]] = []
        self.broken = False
        self.seconds = float(os.environ.get("SHOUTING_SECONDS", "0"))

    def try_many(self, dialogues: Iterable[DialogueLike], batch_size: int = 32, **options: Any) -> list[Any]:
        rows = [row if isinstance(row, Dialogue) else Dialogue.from_row(row) for row in dialogues]
        self.asked.append(rows)
        time.sleep(self.seconds * len(rows))
        if self.broken or any("explode" in row.utterance for row in rows):
            raise RuntimeError("the graph failed")
        mark = os.environ.get("SHOUTING_KILL")
        if mark and not Path(mark).exists() and any(row.utterance == "say 17" for row in rows):
            Path(mark).write_text("killed")
            os.abort()
        if any(row.utterance == os.environ.get("SHOUTING_ABORT") for row in rows):
            os.abort()
        return [self._shout(row, options) for row in rows]

    def _shout(self, dialogue: Dialogue, options: dict[str, Any]) -> Rewrite | TeoError:
        if options.get("truncation") == "error" and "long" in dialogue.utterance:
            return InputError("history: too long")
        edits = derive_edits(dialogue.utterance, dialogue.utterance.upper())
        return Rewrite(edits.apply(dialogue.utterance), bool(edits), edits, "", 0.5)


def make_rows(count: int) -> list[dict[str, Any]]:
    """Rows of several lengths, some of them the same, each with a number of its own."""
    return [
        {"id": number, "history": ["a b", "c" * (number % 7)], "utterance": f"say {number % 40}", "note": "é 字"}
        for number in range(count)
    ]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read_output(folder: Path) -> list[dict[str, Any]]:
    lines = [line for part in sorted(folder.glob("part-*.jsonl")) for line in part.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too, by its path."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
