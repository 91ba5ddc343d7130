from __future__ import annotations

import itertools

import pytest

from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.excerpts import OMISSION
from teo.layouts import (
    Layout,
    Marker,
    Truncation,
    dialogue_source,
    fit_history,
    operation_pieces,
    read_operation_pieces,
    split_at_separator,
    stage2_source,
    text_of,
)

DIALOGUE = Dialogue(("one", "two"), "three [SEP]")
OPERATIONS = (Operation("he", "Ben"), Operation("", "as Batman"), Operation("x", ""))


def test_sources_follow_the_paper() -> None:
    stage1 = (Marker.CLS, "one", Marker.SEP, "two", Marker.SEP, "three [SEP]", Marker.SEP)
    assert dialogue_source(DIALOGUE) == stage1
    assert stage2_source(DIALOGUE, (Marker.INSERT, "x")) == (*stage1, Marker.INSERT, "x", Marker.SEP)


C, S, T, U, A = Marker.CLS, Marker.SEP, Marker.TURN, Marker.USER, Marker.ASSISTANT
SPOKEN = Dialogue(("one", "two"), "three", ("assistant", "assistant", "user"))
LAYOUTS = [
    (Layout(2), DIALOGUE, (C, "one", T, "two", S, "three [SEP]", S), "[SEP] is the border before the utterance"),
    (Layout(2), Dialogue((), "x"), (C, "x", S), "no history, no border"),
    (Layout(2), Dialogue(("a",), "x"), (C, "a", S, "x", S), "one turn needs no mark between turns"),
    (Layout(1, speakers=True), DIALOGUE, (C, U, "one", S, A, "two", S, U, "three [SEP]", S), "two take turns"),
    (Layout(2, speakers=True), SPOKEN, (C, A, "one", T, A, "two", S, U, "three", S), "speakers as they are known"),
]


@pytest.mark.parametrize(("layout", "dialogue", "source", "reason"), LAYOUTS, ids=[row[3] for row in LAYOUTS])
def test_layouts(layout: Layout, dialogue: Dialogue, source: tuple[str, ...], reason: str) -> None:
    assert dialogue_source(dialogue, layout) == source
    assert stage2_source(dialogue, (Marker.INSERT, "x"), layout) == (*source, Marker.INSERT, "x", S)
    assert {piece for piece in source if isinstance(piece, Marker)} <= {C, S, *layout.markers}


def test_a_users_marker_is_not_a_marker() -> None:
    pieces = dialogue_source(DIALOGUE)
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


def tokens(text: str) -> int:
    """Return a turn's length: its words and a separator."""
    return len(text.split()) + 1


LONG = " ".join(f"w{k}" for k in range(200))


@pytest.mark.parametrize(
    ("history", "room", "lengths", "dropped", "why"),
    [
        (["a b", "c d e"], 7, [3, 4], 0, "all fits"),
        (["a b", LONG], 60, [3, 57], 0, "a long last turn leaves the question before it whole"),
        ([LONG, "a b", "c"], 60, [55, 3, 2], 0, "an old long turn is read in part too"),
        ([LONG, "a b", LONG], 60, [28, 3, 28], 0, "two long turns share what the others leave"),
        ([*["a b c"] * 30, LONG], 60, [4] * 11 + [16], 19, "old turns go where the long one would get too little"),
        ([LONG] * 6, 60, [15] * 4, 2, "no more turns than get a part that says something"),
        (["a b", LONG], 20, [3, 17], 0, "little room"),
        (["a b", LONG], 12, [12], 1, "hardly any room: the last turn is read first"),
        (["a b", LONG], 11, [], 2, "so little of a turn says nothing"),
        ([LONG, "a b"], 11, [3], 1, "but a short turn is read"),
        (["a"] * 5, 6, [2] * 3, 2, "short turns are dropped whole, the oldest first"),
        (["a"], 0, [], 1, "no room"),
        (["a"], -5, [], 1, "less than none"),
        ([], 9, [], 0, "no turns"),
        (["a b", "", "c"], 9, [3, 1, 2], 0, "a blank turn is a turn"),
    ],
)
def test_what_is_read_of_a_history(history: list[str], room: int, lengths: list[int], dropped: int, why: str) -> None:
    dialogue = Dialogue(tuple(history), "u " * 99, ("user",) * (len(history) + 1))
    fitted, truncation = fit_history(dialogue, tokens, room)
    assert [tokens(turn) for turn in fitted.history] == pytest.approx(lengths, abs=1), why
    assert sum(map(tokens, fitted.history)) <= max(0, room)
    assert fitted.utterance == dialogue.utterance
    assert fitted.speakers == ("user",) * (len(fitted.history) + 1)
    read = sum(len(turn.replace(OMISSION, "")) for turn in fitted.history)
    assert truncation == Truncation(dropped, sum(map(len, history)) - read)
    assert fit_history(fitted, tokens, room) == (fitted, Truncation()), "what fits once fits again"


def test_a_dropped_turn_is_counted_with_its_characters() -> None:
    fitted, truncation = fit_history(Dialogue(("aaaa", "bbb", "cc"), "d" * 99), len, 6)
    assert fitted == Dialogue(("bbb", "cc"), "d" * 99)
    assert truncation == Truncation(turns=1, characters=4)
    assert truncation


def test_a_turn_of_one_long_word_is_cut_between_characters() -> None:
    dialogue = Dialogue(("a b", f" {'x' * 90}\n", "c"), "u", ("user", "assistant", "user", "user"))
    fitted, truncation = fit_history(dialogue, len, 40)
    assert (fitted, truncation) == (Dialogue(("a b", "x" * 36, "c"), "u", dialogue.speakers), Truncation(0, 56))
    assert fit_history(fitted, len, 40) == (fitted, Truncation()), "what fits once fits again"


def test_a_turn_of_nothing_but_much_space_is_dropped() -> None:
    fitted, truncation = fit_history(Dialogue(("a b", " " * 90), "u"), len, 40)
    assert (fitted, truncation) == (Dialogue(("a b",), "u"), Truncation(1, 90))


def test_of_a_very_long_word_only_a_part_is_measured() -> None:
    measured: list[int] = []

    def measure(text: str) -> int:
        measured.append(len(text))
        return len(text)

    fitted, _ = fit_history(Dialogue(("x" * 10**7,), "u"), measure, 40)
    assert fitted.history == ("x" * 40,)
    assert max(size for size in measured if size < 10**7) < 1000, "to find the place of the cut"


@pytest.mark.parametrize("room", range(48, 300, 7))
def test_the_last_three_turns_are_read_whichever_is_long(room: int) -> None:
    for history in itertools.product(["a b c", LONG], repeat=4):
        fitted, _ = fit_history(Dialogue(history, "u"), tokens, room)
        assert [turn.split()[:3] for turn in fitted.history[-3:]] == [turn.split()[:3] for turn in history[-3:]]
