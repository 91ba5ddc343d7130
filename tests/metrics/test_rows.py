import io
import json
from pathlib import Path

import pytest

from teo.errors import InputError
from teo.metrics import ScoredRow, read_rows
from teo.metrics.rows import as_examples, as_rows, require_same_rows

GOOD = {"current": "a", "reference": "a b", "prediction": "a b"}
FORM = '{"current": "...", "reference": "...", "prediction": "..."}'


def _without(field):
    return {key: value for key, value in GOOD.items() if key != field}


# (reason, bytes of the second line, what the message says after the file's name)
BAD_LINES = [
    ("not JSON", b"current: a", f":2: expected a JSON object {FORM}, found no JSON (Expecting value at column 1)"),
    (
        "a cut line",
        b'{"current": "a',
        f":2: expected a JSON object {FORM}, found no JSON (Unterminated string starting at column 13)",
    ),
    ("another type", b'["a", "b", "c"]', f":2: expected an object {FORM}, found a list"),
    ("null", b"null", f":2: expected an object {FORM}, found nothing"),
    ("no prediction", json.dumps(_without("prediction")).encode(), f":2: prediction: missing; a row is {FORM}"),
    ("no current", json.dumps(_without("current")).encode(), f":2: current: missing; a row is {FORM}"),
    ("a number", json.dumps({**GOOD, "reference": 3}).encode(), ":2: reference: expected a string, found a number"),
    (
        "null text",
        json.dumps({**GOOD, "prediction": None}).encode(),
        ":2: prediction: expected a string, found nothing",
    ),
    (
        "units as a list",
        json.dumps({**GOOD, "current": ["a"]}).encode(),
        ":2: current: expected a string, found a list",
    ),
    ("not UTF-8", '{"current": "é"}'.encode("latin-1"), ":2: expected UTF-8 text, found the byte 0xe9"),
    ("nested without end", b"[" * 100_000, f":2: expected a JSON object {FORM}, found no JSON ("),
    ("a number of 5,000 digits", b"9" * 5000, f":2: expected a JSON object {FORM}, found no JSON ("),
]


@pytest.mark.parametrize(("line", "message"), [row[1:] for row in BAD_LINES], ids=[row[0] for row in BAD_LINES])
def test_a_bad_line_is_named_with_file_line_and_field(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + line + b"\n" + json.dumps(GOOD).encode())
    with pytest.raises(InputError) as caught:
        read_rows(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_other_keys_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path):
    path = tmp_path / "a.jsonl"
    line = json.dumps({**GOOD, "id": 7, "history": ["x"]}).encode()
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n \n" + line)
    assert read_rows(path) == [ScoredRow("a", "a b", "a b", f"{path}:1"), ScoredRow("a", "a b", "a b", f"{path}:4")]


def test_a_line_separator_inside_a_text_is_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**GOOD, "current": "a\u2028b\u0085c"}, ensure_ascii=False), encoding="utf-8")
    assert [row.current for row in read_rows(path)] == ["a\u2028b\u0085c"]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_rows(path)
    assert str(caught.value) == f"{path}: expected at least one row {FORM}, found none"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file; expected JSONL"):
        read_rows(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        read_rows(tmp_path)


def test_rows_from_python_are_named_by_index():
    with pytest.raises(InputError, match=r"^rows\[1\]: prediction: missing"):
        as_rows([GOOD, _without("prediction")])
    with pytest.raises(InputError, match=r"^rows\[0\]: current: expected a string, found a tuple$"):
        as_rows([{**GOOD, "current": ("a",)}])
    with pytest.raises(InputError, match=r"^rows: expected at least one row"):
        as_rows([])


@pytest.mark.parametrize(
    ("text", "pretokenized", "expected"),
    [
        ("It's 好喝, OK?", False, ("it", "'s", "好", "喝", ",", "ok", "?")),
        ("It's 好喝, OK?", True, ("it's", "好喝,", "ok?")),
        ("  I  am\tHERE ", True, ("i", "am", "here")),
        ("", True, ()),
        ("", False, ()),
    ],
)
def test_units_are_lower_cased_and_split_as_asked(text, pretokenized, expected):
    (example,) = as_examples([ScoredRow(text, text, text)], pretokenized=pretokenized)
    assert example.current == example.reference == example.prediction == expected


def _rows(name, *texts):
    return [ScoredRow(text, f"{text} b", "any", f"{name}:{line}") for line, text in enumerate(texts, start=1)]


def test_the_same_rows_may_have_other_predictions():
    second = [ScoredRow(row.current, row.reference, "other", row.location) for row in _rows("B", "x", "y")]
    require_same_rows(_rows("A", "x", "y"), second)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            _rows("A", "x", "y"),
            _rows("B", "x"),
            "A:2: no row to pair with, the other system has 1 rows and this one 2; both must hold the same rows",
        ),
        (
            _rows("A", "x"),
            _rows("B", "x", "y", "z"),
            "B:2: no row to pair with, the other system has 1 rows and this one 3",
        ),
        (_rows("A", "x", "y"), _rows("B", "x", "z"), "B:2: current: expected 'y' as in A:2, found 'z'; both must hold"),
        (
            [ScoredRow("x", "r" * 70, "", "A:1")],
            [ScoredRow("x", "x", "", "B:1")],
            f"B:1: reference: expected '{'r' * 59}…' as in A:1, found 'x'; both must hold",
        ),
    ],
    ids=["second short", "first short", "another utterance", "another reference"],
)
def test_different_rows_are_named(first, second, message):
    with pytest.raises(InputError) as caught:
        require_same_rows(first, second)
    assert str(caught.value).startswith(message)


def test_standard_input_is_a_dash(monkeypatch):
    line = b'\xef\xbb\xbf{"current": "a", "reference": "b", "prediction": "c"}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line + b"\n" + line)))
    assert [row.location for row in read_rows(Path("-"))] == ["-:1", "-:3"]
