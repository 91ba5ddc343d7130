"""Files that are written whole or not at all: beside their place, then renamed into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from teo.errors import TeoError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, then put it in its place; a failure leaves what was there."""
    beside = path.with_name(f".{path.name}.part{path.suffix}")
    try:
        write(beside)
        beside.replace(path)
    except OSError as error:
        raise TeoError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
