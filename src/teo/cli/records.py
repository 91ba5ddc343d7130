"""Lines of JSON as dialogues, and one record for each line, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.records import make_record, parse_line, pass_through

if TYPE_CHECKING:
    from teo.rewriter import Rewriter

Line = tuple[int, bytes]
"""A line with its number, counted from 1."""


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """The record of a line."""

    record: dict[str, Any]
    error: str | None = None
    """The line's number and what is wrong with it."""


def rewrite_lines(
    rewriter: Rewriter, lines: Sequence[Line], batch_size: int, options: Mapping[str, Any]
) -> list[LineOutcome]:
    """Return the outcome of each line, in order; a bad line gets an error record."""
    rows: list[dict[str, Any]] = [{} for _ in lines]
    found: list[Dialogue | TeoError] = []
    for position, (_, line) in enumerate(lines):
        try:
            rows[position] = parse_line(line)
            found.append(Dialogue.from_row(rows[position]))
        except InputError as error:
            found.append(error)
    dialogues = [item for item in found if isinstance(item, Dialogue)]
    results = iter(rewriter.try_many(dialogues, batch_size, **options))
    outcomes = []
    for (number, _), row, item in zip(lines, rows, found, strict=True):
        result = next(results) if isinstance(item, Dialogue) else item
        if isinstance(item, TeoError) or isinstance(result, TeoError):
            outcomes.append(_bad_line(number, row, str(result)))
        else:
            outcomes.append(LineOutcome(make_record(row, item.utterance, result.to_dict())))
    return outcomes


def _bad_line(number: int, row: Mapping[str, Any], message: str) -> LineOutcome:
    """Return an error record, which has the row's other keys if the line could be parsed."""
    record = {**pass_through(row), "error": {"line": number, "message": message}}
    return LineOutcome(record, f"line {number}: {message}")
