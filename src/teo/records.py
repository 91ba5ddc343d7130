"""Rows of JSON and the records made of them, the same for a stream and for a batch job.

A record has the row's other keys and the keys of the rewriter's record, which win. A row's `error` and `alternatives`
are left out even where the record has none. Where the row has a person's `rewrite`, the record can be scored as it is:
`reference` is the person's rewrite, `current` the utterance and `prediction` the rewriter's; further accepted rewrites
(`rewrites`) are `references`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from teo.errors import InputError

BLANK = b" \t\r\n\xef\xbb\xbf"
"""What a line without a row may hold: white space, and the mark that some editors put before UTF-8."""
INPUT_KEYS = frozenset({"history", "utterance", "messages"})
"""The keys of a row that are its dialogue."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 64 << 20
"""Bytes of a line, at most."""
_DEEPEST = 500
"""How many lists and objects of a row may stand in one another: what Python can both read and write."""
_EXPECTED_LINES = "expected JSON lines (JSONL), one object with history and utterance, or messages, on each line"
_MAKE_LINES = "jq -c '.[]' makes lines of an array, jq -c . of other JSON"
_GOLD_KEYS = frozenset({"rewrite", "rewrites"})
_RECORD_KEYS = frozenset({"error", "alternatives"})
"""Keys that only some records have: a row's own must not pass for the record's."""
_NOT_PASSED = INPUT_KEYS | _GOLD_KEYS | _RECORD_KEYS


def make_record(row: Mapping[str, Any], utterance: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row's other keys and the rewriter's record; where there is a reference, what scores it too."""
    passed = pass_through(row)
    if passed.get("reference") is not None:
        passed |= {"current": utterance, "prediction": result["rewrite"]}
    return passed | dict(result)


def pass_through(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record keeps of its row: the other keys, and a person's rewrites as reference and references."""
    passed = {key: value for key, value in row.items() if key not in _NOT_PASSED}
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
    if len(line) > LONGEST_LINE:
        raise InputError(f"expected a line of at most {LONGEST_LINE >> 20} MB, found a longer one")
    text = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        row = json.loads(text.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8, found byte 0x{text[error.start]:02x} at {error.start}") from None
    except RecursionError:
        raise InputError("expected a JSON object, found one nested too deep") from None
    except ValueError as error:
        raise InputError(f"expected a JSON object, found something else ({error})") from None
    if text.count(b"[") + text.count(b"{") > _DEEPEST and _depth(row) > _DEEPEST:
        raise InputError("expected a JSON object, found one nested too deep")  # it could be read, but not written
    if isinstance(row, list):
        raise InputError(f"{_EXPECTED_LINES}; found a JSON array; {_MAKE_LINES}")
    if not isinstance(row, dict):
        raise InputError("expected a JSON object with history and utterance, or messages; found another JSON value")
    return row


def require_lines(first: bytes) -> None:
    """Raise if the first line of an input shows that it is no JSON lines: a whole document on several lines."""
    start = first.removeprefix(_BYTE_ORDER_MARK).strip()
    if start.startswith((b"[", b"{")) and start.endswith((b"[", b"{", b",")):
        found = "pretty-printed JSON" if start.startswith(b"{") else "a JSON array"
        raise InputError(f"{_EXPECTED_LINES}; found {found}; {_MAKE_LINES}")


def _depth(value: Any) -> int:
    """Return how many lists and objects stand in one another."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        inner, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(inner, dict | list):
            waiting += [(one, depth + 1) for one in (inner.values() if isinstance(inner, dict) else inner)]
    return deepest - 1


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None
