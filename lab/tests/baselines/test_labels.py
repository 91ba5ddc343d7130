"""Matrices, tags and blanks: made from gold edits, they decode back to the gold rewrite."""

from __future__ import annotations

import pytest

from teo.dialogue import Dialogue
from teo.layouts import Marker
from teo.placement import Span, make_script
from teo.units import is_exact_match, split_units
from teo_lab.baselines.labels import (
    Relation,
    Tag,
    blanked_source,
    copy_rows,
    fill_target,
    find_rows,
    gold_spans,
    make_matrix,
    make_tags,
    read_fills,
    read_matrix,
    read_tags,
)

EXPRESSED = [
    ((("anna likes tea", "i saw anna"), "does he like it"), "does anna like tea", "two replacements"),
    ((("anna likes tea",), "why"), "why anna likes tea", "an insertion at the end"),
    ((("in oslo it rains", "yes"), "does it"), "in oslo does it", "an insertion at the start"),
    ((("the new York hotel",), "is that one good"), "is the new york hotel good", "case, and old of two units"),
    ((("我喜欢蝙蝠侠", "谁演的"), "他演的"), "蝙蝠侠演的", "characters, and a longer text in the place of one"),
    ((("anna sings", "and ben dances"), "who wins"), "who wins anna ben dances", "a text from two runs of the history"),
    ((("anna sings",), "fine"), "fine", "nothing to change"),
]
NOT_EXPRESSED = [
    ((("anna sings",), "is he good"), "is carla good", "a word that nobody said"),
    ((("anna sings",), "he is really good"), "anna is good", "a deletion"),
    ((("sings anna",), "who"), "who anna sings", "an order that the history does not have"),
    ((("a b c d e f g h",), "who"), "who a c e g", "scattered words are no copy"),
]


@pytest.mark.parametrize(
    ("turns", "rewrite", "why"), EXPRESSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_matrix_decodes_to_the_gold_rewrite(turns: tuple[tuple[str, ...], str], rewrite: str, why: str) -> None:
    dialogue = Dialogue(*turns)
    cells = make_matrix(dialogue, gold_spans(dialogue, rewrite))
    assert cells is not None, why
    made = make_script(read_matrix(dialogue, cells), dialogue.utterance).apply(dialogue.utterance)
    assert is_exact_match(made, rewrite), why


@pytest.mark.parametrize(("turns", "rewrite", "why"), NOT_EXPRESSED, ids=lambda value: str(value)[:20])
def test_what_a_matrix_cannot_say(turns: tuple[tuple[str, ...], str], rewrite: str, why: str) -> None:
    dialogue = Dialogue(*turns)
    assert make_matrix(dialogue, gold_spans(dialogue, rewrite)) is None, why


@pytest.mark.parametrize(("turns", "rewrite", "why"), [*EXPRESSED, *NOT_EXPRESSED], ids=lambda value: str(value)[:20])
def test_tags_and_fills_decode_to_any_gold_rewrite(turns: tuple[tuple[str, ...], str], rewrite: str, why: str) -> None:
    dialogue = Dialogue(*turns)
    spans = gold_spans(dialogue, rewrite)
    blanks = [(span.first, span.last) for span in spans]
    assert read_tags(make_tags(len(split_units(dialogue.utterance)), blanks)) == blanks
    filled, well_formed = read_fills(blanks, fill_target(span.new for span in spans))
    made = make_script(filled, dialogue.utterance).apply(dialogue.utterance)
    assert well_formed, why
    assert is_exact_match(made, rewrite), why


@pytest.mark.parametrize(
    ("wanted", "units", "rows", "why"),
    [
        ("a b", "a b c a b", [3, 4], "the last of equal runs"),
        ("a b", "a b c a x", [0, 1], "a whole run before a gathered one"),
        ("a b", "a x b", [0, 2], "two runs where there is no whole one"),
        ("a", "b", [], "not there"),
        ("", "a", [], "nothing wanted"),
    ],
)
def test_rows_that_spell_a_text(wanted: str, units: str, rows: list[int], why: str) -> None:
    assert find_rows(wanted.split(), units.split()) == rows, why


def test_a_ragged_matrix_is_read_by_the_majority_of_its_columns() -> None:
    dialogue = Dialogue(("the new york hotel",), "is that one there good")
    replaced = {(row, column): Relation.REPLACE for row in (1, 2, 3) for column in (1, 2, 3)}
    ragged = {**replaced, (0, 2): Relation.REPLACE, (0, 5): Relation.REPLACE}
    del ragged[3, 1]
    assert read_matrix(dialogue, ragged) == [Span(1, 4, "new york hotel")]
    inside = {**replaced, (0, 2): Relation.INSERT, (0, 5): Relation.INSERT}
    assert read_matrix(dialogue, inside) == [Span(1, 4, "new york hotel"), Span(5, 5, "the")]


def test_copied_rows_keep_their_spacing_and_turns_are_set_apart() -> None:
    dialogue = Dialogue(("it's  3.5 km", "ok"), "x")
    assert copy_rows(dialogue, [0, 1, 2]) == "it's  3.5"
    assert copy_rows(dialogue, [3, 4]) == "km ok"


@pytest.mark.parametrize(
    ("tags", "blanks", "why"),
    [
        ([Tag.INSIDE, Tag.INSIDE, Tag.KEEP], [(0, 2)], "inside without a beginning begins"),
        ([Tag.BEGIN, Tag.BEGIN, Tag.KEEP], [(0, 1), (1, 2)], "two replacements side by side"),
        ([Tag.INSERT, Tag.INSIDE, Tag.INSERT], [(0, 0), (1, 2), (2, 2)], "an insertion ends what was inside"),
        ([Tag.KEEP, Tag.BEGIN], [], "the end cannot be replaced"),
    ],
)
def test_tags_that_no_gold_edit_has(tags: list[Tag], blanks: list[tuple[int, int]], why: str) -> None:
    assert read_tags(tags) == blanks, why


def test_blanks_in_the_source_and_missing_fills() -> None:
    dialogue = Dialogue(("anna sings",), "does he like it")
    blanks = [(1, 2), (4, 4)]
    assert blanked_source(dialogue, blanks) == (
        *(Marker.CLS, "anna sings", Marker.SEP),
        *("does", Marker.DELETE, "he", Marker.BLANK, "like it", Marker.BLANK, Marker.SEP),
    )
    assert read_fills(blanks, (Marker.BLANK, "anna")) == ([Span(1, 2, "anna")], False)
    assert read_fills(blanks, (Marker.BLANK, Marker.BLANK)) == ([Span(1, 2, "")], True)
