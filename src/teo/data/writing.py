"""The record of a row with its derived edits, for files of JSON lines."""

from __future__ import annotations

from typing import Any

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Order, format_operations
from teo.files import write_jsonl


def edit_record(row: Row, order: Order = "position") -> dict[str, Any]:
    """Return the row with what turns its utterance into its rewrite: the paper's string and the positioned edits."""
    script = derive_edits(row.dialogue.utterance, row.rewrite)
    operations = format_operations(script.operations, order)
    return {**row.to_dict(), "operations": operations, "edits": script.to_dicts()}


__all__ = ["edit_record", "write_jsonl"]
