"""Lines of JSON as dialogues, and what became of each as a record: one for every line, in order.

A record has the row's other keys and the keys of the rewriter's record, which win. Where the row has a person's
`rewrite`, the record can be scored as it is: `reference` is the person's rewrite, `current` the utterance and
`prediction` the rewriter's; further accepted rewrites (`rewrites`) are `references`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError

if TYPE_CHECKING:
    from teo.rewriter import Rewriter

Line = tuple[int, bytes]
"""A line with its number, counted from 1."""

BLANK = b" \t\r\n\xef\xbb\xbf"
"""What a line without a row may hold: white space, and the mark that some editors put before UTF-8."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_LINE = 64 << 20
_INPUT_KEYS = frozenset({"history", "utterance", "messages"})
_GOLD_KEYS = frozenset({"rewrite", "rewrites"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a line."""

    record: dict[str, Any]
    error: str | None = None
    """What is wrong with the line, and which one it is."""


def rewrite_lines(
    rewriter: Rewriter, lines: Sequence[Line], batch_size: int, options: Mapping[str, Any]
) -> list[Outcome]:
    """Return what became of each line, in order; a bad line has an error record in its place."""
    rows: list[dict[str, Any]] = [{} for _ in lines]
    found: list[Dialogue | TeoError] = []
    for place, (_, line) in enumerate(lines):
        try:
            rows[place] = parse_line(line)
            found.append(Dialogue.from_row(rows[place]))
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
            outcomes.append(Outcome(make_record(row, item.utterance, result.to_dict())))
    return outcomes


def make_record(row: Mapping[str, Any], utterance: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row's other keys and the rewriter's record; where there is a reference, what scores it too."""
    passed = pass_through(row)
    if passed.get("reference") is not None:
        passed |= {"current": utterance, "prediction": result["rewrite"]}
    return passed | dict(result)


def pass_through(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record keeps of its row: the other keys, and a person's rewrites as reference and references."""
    passed = {key: value for key, value in row.items() if key not in _INPUT_KEYS | _GOLD_KEYS}
    gold, several = row.get("rewrite"), row.get("rewrites")
    accepted = list(several) if isinstance(several, list) else []
    if gold is not None:
        accepted = [gold, *(text for text in accepted if text != gold)]
    if accepted and passed.get("reference") is None:
        passed["reference"] = accepted[0]
        if accepted[1:]:
            passed["references"] = accepted[1:]
    return passed


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; what JSON has no number for (NaN, Infinity, 1e999) is null."""
    if len(line) > _LONGEST_LINE:
        raise InputError(f"expected a line of at most {_LONGEST_LINE >> 20} MB, found {len(line) >> 20} MB")
    text = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        row = json.loads(text.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8, found byte 0x{text[error.start]:02x} at {error.start}") from None
    except RecursionError:
        raise InputError("expected a JSON object, found one nested too deep") from None
    except ValueError as error:
        raise InputError(f"expected a JSON object, found something else ({error})") from None
    if not isinstance(row, dict):
        raise InputError("expected a JSON object with history and utterance, or messages; found another JSON value")
    return row


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _bad_line(number: int, row: Mapping[str, Any], message: str) -> Outcome:
    """Return an error record, which keeps the row's other keys where the line could be parsed."""
    record = {**pass_through(row), "error": {"line": number, "message": message}}
    return Outcome(record, f"line {number}: {message}")
