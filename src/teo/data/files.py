"""Finding and opening the files of a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from teo.data.formats import ADVICE, describe, wrong_format
from teo.errors import DataError

NOT_UTF8 = "expected UTF-8, found other bytes"
PARTS = ("train", "valid", "dev", "test")
_SAME_PART = {"valid": "dev"}


class MissingPartError(DataError):
    """A published part is not among the files that are there."""


def find_file(path: Path, names: Sequence[str]) -> Path:
    """Return the file itself, or the first of `names` that is in the folder."""
    if path.is_file():
        return path
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; pass the dataset's folder or its file")
    for name in names:
        if (path / name).exists():
            return path / name
    there = ", ".join(sorted(entry.name for entry in path.iterdir())[:5]) or "an empty folder"
    raise MissingPartError(
        f"{path}: expected {' or '.join(names)} in this folder, found {there}; pass the dataset's folder or its file"
    )


def find_part(path: Path, part: str, names: Sequence[str]) -> Path:
    """Return the file of a published part; a file named after another part is refused."""
    file = find_file(path, names)
    stem = _SAME_PART.get(file.stem, file.stem)
    if file == path and stem in PARTS and stem != _SAME_PART.get(part, part):
        raise DataError(
            f"{path}: expected the {part} part, found a file named after the {file.stem} part; "
            f"pass the dataset's folder or its {names[0]}"
        )
    return file


def read_lines(file: Path) -> Iterator[tuple[int, str | None]]:
    """Yield each line with its number, counted from 1; None if a line is not UTF-8."""
    data = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            yield number, line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            yield number, None


def read_json_array(file: Path, file_format: str, name: str) -> list[Any]:
    """Return the items of a file that holds one JSON array."""
    try:
        items = json.loads(file.read_bytes())
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: expected {file_format}, found bytes that are not UTF-8; {ADVICE}") from error
    except json.JSONDecodeError as error:
        if describe(file)[0] == "a JSON array":
            raise DataError(
                f"{file}:{error.lineno}: expected {file_format}, found a JSON array that breaks off or is damaged "
                f"({error.msg}); get the file again"
            ) from error
        raise DataError(wrong_format(file, file_format, name)) from error
    except (ValueError, RecursionError) as reason:  # a number too long, lists too deep
        raise DataError(f"{file}: expected {file_format}, found JSON that cannot be read ({reason})") from None
    if not isinstance(items, list):
        raise DataError(wrong_format(file, file_format, name))
    return items
