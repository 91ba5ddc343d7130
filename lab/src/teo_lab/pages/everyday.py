"""The tables of benchmarks/everyday/README.md: what becomes of everyday utterances, by meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teo.evaluation.markdown import percent, table
from teo_lab.reproduce.stored import read_json

_LANGUAGES = {"en": "English", "zh": "Chinese"}
_FILES = {"benchmark": ("everyday.json", ""), "held": ("everyday-held.json", "held out, ")}
"""By the name of a block: the stored file, and what stands before the language."""
_VERDICTS = ("right", "partly", "wrong", "missed", "kept")


def make_everyday(results: Path) -> dict[str, str]:
    """Return the tables by the names of their blocks."""
    return {name: _table(results / "default" / file, before) for name, (file, before) in _FILES.items()}


def _table(file: Path, before: str) -> str:
    stored = read_json(file)["languages"]
    rows = [
        [f"{before}{name}", prefer, *meaning_shares(counts)]
        for language, name in _LANGUAGES.items()
        for prefer, counts in stored[language].items()
    ]
    return table(("", "prefer", *_VERDICTS, "right by exact match"), rows)


def meaning_shares(counts: Mapping[str, Any]) -> list[str]:
    """Return right, partly, wrong, missed and kept in percent, and the share that is right by exact match."""
    rates = counts["meaning"]["rates"]
    return [*(percent(rates[verdict]) for verdict in _VERDICTS), percent(counts["exact"] / counts["incomplete"])]
