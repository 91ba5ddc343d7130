from __future__ import annotations

from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.layouts import (
    Marker,
    Truncation,
    fit_history,
    operation_pieces,
    read_operation_pieces,
    split_at_separator,
    stage1_source,
    stage2_source,
    text_of,
)

DIALOGUE = Dialogue(("one", "two"), "three [SEP]")
OPERATIONS = (Operation("he", "Ben"), Operation("", "as Batman"), Operation("x", ""))


def test_sources_follow_the_paper() -> None:
    stage1 = (Marker.CLS, "one", Marker.SEP, "two", Marker.SEP, "three [SEP]", Marker.SEP)
    assert stage1_source(DIALOGUE) == stage1
    assert stage2_source(DIALOGUE, (Marker.INSERT, "x")) == (*stage1, Marker.INSERT, "x", Marker.SEP)


def test_a_users_marker_is_not_a_marker() -> None:
    pieces = stage1_source(DIALOGUE)
    assert sum(isinstance(piece, Marker) for piece in pieces) == 4
    assert text_of(pieces) == "onetwothree [SEP]"


def test_operations_survive_as_pieces() -> None:
    pieces = operation_pieces(OPERATIONS)
    assert pieces[:4] == (Marker.DELETE, "he", Marker.REPLACE, "Ben")
    parsed = read_operation_pieces(pieces)
    assert parsed.operations == OPERATIONS
    assert parsed.well_formed
    assert operation_pieces(OPERATIONS, "insertions-first")[:2] == (Marker.INSERT, "as Batman")
    assert operation_pieces(()) == ()


def test_broken_pieces_are_flagged() -> None:
    parsed = read_operation_pieces(("stray", Marker.INSERT, "a", "b", Marker.REPLACE))
    assert parsed.operations == (Operation("", "a b"),)
    assert not parsed.well_formed
    assert read_operation_pieces((" ",)).well_formed, "white space alone says nothing wrong"


def test_a_fused_text_is_split_at_its_separator() -> None:
    assert split_at_separator((Marker.INSERT, "x", Marker.SEP, "y")) == ((Marker.INSERT, "x"), ("y",))
    assert split_at_separator(("[SEP]",)) == (("[SEP]",), ()), "a user's separator does not split"


def test_the_oldest_turns_are_dropped_whole() -> None:
    dialogue = Dialogue(("aaaa", "bbb", "cc"), "d" * 99)
    fitted, truncation = fit_history(dialogue, len, 6)
    assert fitted == Dialogue(("bbb", "cc"), "d" * 99)
    assert truncation == Truncation(turns=1, characters=4)
    assert truncation
    whole, nothing = fit_history(dialogue, len, 9)
    assert whole == dialogue
    assert not nothing
