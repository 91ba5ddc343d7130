"""Lines as rows, and rows as records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from teo.errors import InputError
from teo.files import json_line
from teo.records import make_record, parse_line, pass_through, require_lines

RESULT = {"rewrite": "ours", "changed": True, "confidence": 0.5}


@pytest.mark.parametrize(
    ("line", "row", "reason"),
    [
        (b'{"a": 1}', {"a": 1}, "an object"),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, "a byte order mark before it"),
        (b'\xef\xbb\xbf{"a": "\xef\xbb\xbf"}\r', {"a": "\ufeff"}, "one in a text belongs to it"),
        (b'{"a": NaN, "b": [Infinity, -Infinity]}', {"a": None, "b": [None, None]}, "no JSON, though Python reads it"),
        (b'{"a": 1e999, "b": 1.5}', {"a": None, "b": 1.5}, "JSON, but more than a number holds"),
    ],
)
def test_a_line_is_an_object(line: bytes, row: dict[str, Any], reason: str) -> None:
    found = parse_line(line)
    assert found == row, reason
    json.loads(json_line(found), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", r"expected a JSON object, found something else \(Expecting value"),
        (b"\xff\xfe{\0", "expected UTF-8, found byte 0xff at 0"),
        (b"3", "expected a JSON object with history and utterance, or messages; found another JSON value"),
        (b"[1]", r"expected JSON lines \(JSONL\), one object .* on each line; found a JSON array; jq -c '.\[\]' makes"),
        (b'{"a": ' + b"[" * 100_000, "found one nested too deep"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "found something else"),
    ],
)
def test_other_lines_are_refused(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_line(line)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (b"[\r", "a JSON array"),
        (b" [{", "a JSON array"),
        (b'[{"history": [], "utterance": "x"},', "a JSON array"),
        (b"\xef\xbb\xbf{ ", "pretty-printed JSON"),
        (b'{"history": [', "pretty-printed JSON"),
        (b'{"id": 1,', "pretty-printed JSON"),
    ],
)
def test_a_document_on_several_lines_is_named(first: bytes, found: str) -> None:
    with pytest.raises(InputError, match=rf"expected JSON lines \(JSONL\), .*; found {found}; jq"):
        require_lines(first)


@pytest.mark.parametrize("first", [b"{}", b'{"a": 1}', b"nonsense", b"[1]", b"", b"a,", b'{"a": 1'])
def test_any_other_first_line_is_a_line(first: bytes) -> None:
    require_lines(first)


def test_a_row_that_can_be_parsed_can_be_written() -> None:
    for depth in (100, 400, 900, 2000, 5000):
        try:
            row = parse_line(b'{"a": ' + b"[" * depth + b"]" * depth + b"}")
        except InputError:
            continue
        assert json_line(row)


@pytest.mark.parametrize(
    ("row", "kept", "reason"),
    [
        ({"id": 1, "history": [], "utterance": "u", "k": {}}, {"id": 1, "k": {}}, "other keys"),
        ({"id": 1, "messages": []}, {"id": 1}, "the input itself is left out"),
        ({"rewrite": "g"}, {"reference": "g"}, "a person's rewrite is the reference"),
        ({"rewrite": None}, {}, "null is no rewrite"),
        ({"rewrites": ["g", "h"]}, {"reference": "g", "references": ["h"]}, "the first of several"),
        ({"rewrite": "g", "rewrites": ["g", "h"]}, {"reference": "g", "references": ["h"]}, "the same one twice"),
        ({"rewrite": "g", "rewrites": ["h"]}, {"reference": "g", "references": ["h"]}, "one and others"),
        ({"rewrites": []}, {}, "none at all"),
        ({"id": 1, "error": {"line": 3}, "alternatives": []}, {"id": 1}, "keys that only some records have"),
        ({"reference": "r", "rewrite": "g"}, {"reference": "r"}, "the row's own reference comes first"),
    ],
)
def test_what_a_record_keeps_of_its_row(row: dict[str, Any], kept: dict[str, Any], reason: str) -> None:
    assert pass_through(row) == kept, reason


@pytest.mark.parametrize(
    ("row", "added", "reason"),
    [
        ({"id": 1}, {"id": 1}, "nothing to score"),
        ({"rewrite": "g"}, {"reference": "g", "current": "u", "prediction": "ours"}, "ready for teo score"),
        ({"reference": "g", "prediction": "old"}, {"reference": "g", "current": "u", "prediction": "ours"}, "likewise"),
        ({"current": "c"}, {"current": "c"}, "a key of the user's"),
        ({"confidence": 9, "changed": 9}, {}, "the record's own keys win"),
    ],
)
def test_records(row: dict[str, Any], added: dict[str, Any], reason: str) -> None:
    assert make_record(row, "u", RESULT) == {**added, **RESULT}, reason
