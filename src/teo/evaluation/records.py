"""What an evaluation leaves on disk: whole files or none, and where the numbers came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from teo.data.row import Row
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


def hash_rows(rows: Iterable[Row]) -> str:
    """Return a hash of a dataset's rows, whichever files they came from."""
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(json.dumps(row.to_dict(), ensure_ascii=True, sort_keys=True).encode())
    return digest.hexdigest()
