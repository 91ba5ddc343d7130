"""Rows as JSON lines, written so that a file is either whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Order, format_operations
from teo.errors import InputError


def edit_record(row: Row, order: Order = "position") -> dict[str, Any]:
    """Return the row with what turns its utterance into its rewrite: the paper's string and the positioned edits."""
    script = derive_edits(row.dialogue.utterance, row.rewrite)
    operations = format_operations(script.operations, order)
    return {**row.to_dict(), "operations": operations, "edits": script.to_dicts()}


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Return how many records were written; they go to a file beside `path`, which takes its name at the end."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: expected an existing folder, found no {path.parent}; make the folder first")
    count = 0
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            for record in records:
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(0o666 & ~umask)  # a temporary file is private; the result has the user's usual rights
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return count
