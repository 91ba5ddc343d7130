"""What an evaluation leaves on disk: whole files or none, and where the numbers came from."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from teo import __version__
from teo.data.row import Row
from teo.errors import TeoError

_LIBRARIES = ("numpy", "tokenizers", "torch", "transformers")


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


def versions() -> dict[str, str]:
    """Return the versions of what ran: Python, this package and the libraries behind it."""
    found = {"python": platform.python_version(), "teo": __version__}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """Return the commit of the checkout that this package runs from; None where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
