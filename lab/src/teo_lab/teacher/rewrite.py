"""A teacher's rewrites of rows, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teo.dialogue import Dialogue
from teo.files import write_jsonl
from teo_lab.teacher.model import choose_device, load_teacher, read_fields
from teo_lab.teacher.notation import Notation
from teo_lab.teacher.prepare import STYLE
from teo_lab.teacher.streams import Sampled, SamplingSettings, Streams

_NEVER = -99.0
"""The log probability of a rewrite that did not end."""


def rewrite_rows(teacher: Path, rows: Path, out: Path, length: int = 448, columns: int = 1024) -> int:
    """Write the rows with the teacher's `prediction` and its `logprob`, and return how many there are."""
    model, notation = load_teacher(teacher)
    fields = read_fields(rows, "history", "utterance")
    prompts = [
        notation.ask(each.get("source", STYLE), Dialogue(tuple(each["history"]), each["utterance"])) for each in fields
    ]
    settings = SamplingSettings(columns=min(columns, len(fields)), length=length)
    streams = Streams(model, notation.marks, prompts, settings, choose_device())
    found = {text.prompt: text for text in streams.run(64)}
    return write_jsonl(out, (_answered(each, found.get(number), notation) for number, each in enumerate(fields)))


def _answered(fields: Mapping[str, Any], text: Sampled | None, notation: Notation) -> dict[str, Any]:
    """Return a row's fields with the teacher's rewrite; the utterance if there is none."""
    read = notation.read(text.ids) if text else None
    return {
        **fields,
        "prediction": read[1] if read else fields["utterance"],
        "logprob": text.logprob if text else _NEVER,
    }
