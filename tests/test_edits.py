from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.edits import (
    Delete,
    EditScript,
    Insert,
    Operation,
    Replace,
    format_operations,
    make_edit,
    parse_operations,
)
from teo.errors import InputError


def test_edits_are_equal_by_content() -> None:
    assert make_edit(2, "a", "b") == Replace(2, 3, "a", "b")
    assert make_edit(2, "", "b") == Insert(2, "b")
    assert make_edit(2, "a", "") == Delete(2, 3, "a")
    assert EditScript() == EditScript(())
    assert not EditScript()
    assert len(EditScript((Insert(0, "x"),))) == 1


def test_edits_must_not_overlap() -> None:
    with pytest.raises(InputError, match="must be in order and must not overlap; found one at 1 after 3"):
        EditScript((Replace(0, 3, "abc", "x"), Insert(1, "y")))


@pytest.mark.parametrize(
    ("script", "text", "reason"),
    [
        (EditScript((Replace(0, 2, "he", "she"),)), "it is", "other text stands there"),
        (EditScript((Insert(9, "x"),)), "short", "beyond the end"),
    ],
)
def test_a_script_of_another_text_is_refused(script: EditScript, text: str, reason: str) -> None:
    with pytest.raises(InputError, match="apply a script only to the text it was derived from"):
        script.apply(text)


def test_the_records_form() -> None:
    script = EditScript((Replace(6, 8, "he", "Ben"), Insert(18, " as Batman"), Delete(20, 21, "x")))
    assert script.to_dicts() == [
        {"op": "replace", "start": 6, "end": 8, "old": "he", "new": "Ben"},
        {"op": "insert", "start": 18, "end": 18, "old": "", "new": " as Batman"},
        {"op": "delete", "start": 20, "end": 21, "old": "x", "new": ""},
    ]


BOTH = (Operation("he", "Ben Affleck"), Operation("", "as Batman"), Operation("really", ""))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("position", "[D] he [R] Ben Affleck [I] as Batman [D] really [R]"),
        ("insertions-first", "[I] as Batman [D] he [R] Ben Affleck [D] really [R]"),
    ],
)
def test_both_orders_print_and_parse(order: str, expected: str) -> None:
    assert format_operations(BOTH, order) == expected  # type: ignore[arg-type]
    parsed = parse_operations(expected)
    assert parsed.well_formed
    assert set(parsed.operations) == set(BOTH)


@pytest.mark.parametrize(
    ("text", "operations", "well_formed", "reason"),
    [
        ("", [], True, "nothing to do is well formed"),
        ("   ", [], True, "white space too"),
        ("[I] x", [("", "x")], True, "an insertion"),
        ("[I]x[I]y", [("", "x"), ("", "y")], True, "spaces are not needed"),
        ("[D] x [R]", [("x", "")], True, "a pure deletion"),
        ("[D] x", [], False, "a deletion without [R]"),
        ("[R] x", [], False, "a replacement of nothing"),
        ("[D] x [I] y", [("", "y")], False, "the broken half is dropped, the rest kept"),
        ("[D] [R] y", [], False, "no text to replace"),
        ("[I]", [], False, "nothing to insert"),
        ("hello [I] x", [("", "x")], False, "text before the first marker"),
        ("hello", [], False, "no marker at all"),
        ("[I] a [SEP] b", [("", "a [SEP] b")], True, "a separator is text here"),
        (r"[I] \[I] x", [("", "[I] x")], True, "an escaped marker is text"),
        (r"[I] \\[I] x", [("", "\\"), ("", "x")], True, "an escaped backslash before a marker"),
        ("[D] a [D] b [R] c", [("b", "c")], False, "the first [D] is dropped"),
    ],
)
def test_the_parser_is_total(text: str, operations: list[tuple[str, str]], well_formed: bool, reason: str) -> None:
    parsed = parse_operations(text)
    assert [(o.old, o.new) for o in parsed.operations] == operations, reason
    assert parsed.well_formed is well_formed, reason


_HOSTILE = st.lists(st.sampled_from(["[I]", "[D]", "[R]", "[SEP]", "[P]", "\\", " ", "x", "我", "]", "["]), max_size=12)


@given(_HOSTILE.map("".join))
def test_hostile_text_never_raises(text: str) -> None:
    parsed = parse_operations(text)
    assert all(operation.old or operation.new for operation in parsed.operations)


_SPANS = _HOSTILE.map("".join).map(str.strip)


@given(st.lists(st.tuples(_SPANS, _SPANS).filter(lambda pair: bool(pair[0] or pair[1])), max_size=4))
def test_printing_and_parsing_keeps_operations(pairs: list[tuple[str, str]]) -> None:
    operations = tuple(Operation(old, new) for old, new in pairs)
    parsed = parse_operations(format_operations(operations))
    assert parsed.operations == operations
    assert parsed.well_formed


def test_white_space_edits_have_no_operation() -> None:
    script = EditScript((Delete(1, 2, " "), Insert(5, " x ")))
    assert script.operations == (Operation("", "x"),)
