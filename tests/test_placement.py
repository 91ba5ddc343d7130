"""Placed operations: written, executed and placed anew."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkout import find_data, needs_data
from teo.alignment import derive_edits
from teo.edits import EditScript, Operation, make_edit
from teo.layouts import Marker
from teo.placement import (
    Span,
    execute_pieces,
    format_placed,
    make_script,
    placed_pieces,
    placements,
)
from teo.units import unit_texts

P, I, D, R = Marker.PLACE, Marker.INSERT, Marker.DELETE, Marker.REPLACE  # noqa: E741


@pytest.mark.parametrize(
    ("utterance", "rewrite", "pieces", "reason"),
    [
        ("It is he who acted.", "It is he who acted.", (), "nothing to change is no piece"),
        (
            "It is he who acted.",
            "It is Ben Affleck who acted as Batman.",
            (D, "he", R, "Ben Affleck", P, "acted", I, "as Batman"),
            "the paper's example",
        ),
        ("acted", "he acted", (P, I, "he"), "no left neighbour: the start of the utterance"),
        ("为什么不好用", "iphonex为什么不好用", (P, I, "iphonex"), "start, Chinese"),
        ("我现在就要", "我现在就要签名", (P, "要", I, "签名"), "end, Chinese"),
        ("好不好用", "好不好手机用", (P, "不好", I, "手机"), "好 stands twice, so the left text grows"),
        ("他说他来", "他说小明来", (P, "说", D, "他", R, "小明"), "the second 他 is meant, so its place is said"),
        ("他说他来", "小明说他来", (D, "他", R, "小明"), "the first one needs no place"),
        ("他说他来", "小明说小红来", (D, "他", R, "小明", D, "他", R, "小红"), "first after the previous edit"),
        ("so it is good", "it is good", (D, "so", R), "a pure deletion has no text after [R]"),
        ("a b a b", "a b c a b", (P, "a b", I, "c"), "derived as late as possible, left as short as possible"),
    ],
)
def test_placed_pieces(utterance: str, rewrite: str, pieces: tuple[str, ...], reason: str) -> None:
    script = derive_edits(utterance, rewrite)
    if reason.startswith("derived"):  # which of the equal alignments is taken is the alignment's business
        assert execute_pieces(placed_pieces(script, utterance), utterance).text == rewrite
        return
    assert placed_pieces(script, utterance) == pieces, reason
    executed = execute_pieces(pieces, utterance)
    assert executed.text == rewrite, reason
    assert executed.well_formed


@pytest.mark.parametrize(
    ("utterance", "pieces", "text", "well_formed", "reason"),
    [
        ("a b c", (P, "b", I, "x"), "a b x c", True, "spaces as a writer puts them"),
        ("what food?", (P, "food", I, "cheap"), "what food cheap?", True, "no space before a closing sign"),
        ("what food ?", (P, "food", I, "cheap"), "what food cheap ?", True, "a writer who sets signs apart goes on so"),
        ("it's good", (D, "it", R, "Rome"), "Rome's good", True, "a clitic stays joined"),
        ("a/b", (D, "b", R, "c"), "a/c", True, "no space where the writer had none"),
        ("yes, it is", (D, ",", R), "yes it is", True, "a deleted sign leaves its space"),
        ("a b c", (D, "b", R), "a c", True, "a deleted word leaves one space"),
        ("a b", (D, "b", R), "a", True, "nothing left over at the end"),
        ("是啊 下了", (P, "啊", I, "杭州"), "是啊 杭州下了", True, "a space ends a clause"),
        ("  a  ", (P, "a", I, "b"), "  a b  ", True, "white space at the ends stays"),
        ("", (P, I, "a"), "a", True, "an empty utterance has a start"),
        ("a b c", (P, "z", I, "x"), "a b c", False, "left text that does not occur: dropped"),
        ("a b c", (D, "z", R, "x"), "a b c", False, "old text that does not occur: dropped"),
        ("a b c", (P, "c", D, "b", R, "x"), "a b c", False, "old text is not after that left text: dropped"),
        ("a b c", (I, "x"), "a b c", False, "an insertion without a place: dropped"),
        ("a b c", (D, "b", P, "a", I, "x"), "a x b c", False, "[D] without [R]: dropped, the next one made"),
        ("a b c", (P, "a", P, "b", I, "x"), "a b x c", False, "a place with no operation: dropped"),
        ("a b c", (P, "b", I, "x", P, "a", I, "y"), "a b x c", False, "places go from left to right"),
        ("a b c", ("junk", P, "a", I, "x"), "a x b c", False, "text before the first marker"),
        ("a b c", (P, "a", I, "x", Marker.SEP, "more"), "a x b c", False, "markers of another layout"),
        ("a b c", (R, "x"), "a b c", False, "[R] without [D]"),
        ("a b c", (P, "b", R, "x"), "a x c", False, "[P] for [D]: flagged, but there is only one way to read it"),
        ("a b c", (P, R, "x"), "a b c", False, "nothing to replace"),
        ("a b c", (P, "a", I), "a b c", False, "nothing to insert"),
        ("a b c", (P, "a"), "a b c", False, "a place at the end"),
        ("a b c", (D, "a", R, "x", P, I, "y"), "x y b c", True, "no left text: where the previous edit ended"),
        ("say [I] now", (P, "[I]", I, "it"), "say [I] it now", True, "users' text that spells a marker is text"),
    ],
)
def test_execute_pieces(utterance: str, pieces: tuple[str, ...], text: str, well_formed: bool, reason: str) -> None:
    executed = execute_pieces(pieces, utterance)
    assert (executed.text, executed.well_formed) == (text, well_formed), reason
    assert executed.edits.apply(utterance) == text


def test_an_edit_inside_a_unit_is_said_in_whole_units() -> None:
    script = EditScript((make_edit(1, "a", "u"),))
    assert placed_pieces(script, "cat sat") == (D, "cat", R, "cut")


def test_format_placed_escapes_markers_in_text() -> None:
    assert format_placed((P, "a", I, "[I] b")) == r"[P] a [I] \[I] b"


WORDS = st.lists(st.sampled_from(["a", "b", "he", "don't", "it's", "3.5", "你", "好", "Ben-X"]), max_size=8)


def _sentence(words: list[str]) -> str:
    from teo.units import join_units

    return join_units([unit for word in words for unit in unit_texts(word)])


@given(WORDS, WORDS)
@settings(max_examples=300, deadline=None)
def test_round_trip_in_units(current: list[str], target: list[str]) -> None:
    a, b = _sentence(current), _sentence(target)
    executed = execute_pieces(placed_pieces(derive_edits(a, b), a), a)
    assert executed.well_formed
    assert "".join(executed.text.split()) == "".join(b.split())
    assert executed.edits.apply(a) == executed.text


@given(
    st.lists(st.sampled_from(["he", "has", "seen", "Rome", "我", "们", "?"]), max_size=8),
    st.lists(st.sampled_from(["he", "has", "seen", "Rome", "我", "们", "?"]), max_size=8),
)
@settings(max_examples=300, deadline=None)
def test_round_trip_is_exact_for_normally_spaced_text(current: list[str], target: list[str]) -> None:
    from teo.units import join_units

    a, b = join_units(current), join_units(target)
    assert execute_pieces(placed_pieces(derive_edits(a, b), a), a).text == b


PIECE = st.one_of(st.sampled_from(list(Marker)), st.text(max_size=4), st.sampled_from(["a", "b", "a b", "你"]))


@given(st.lists(PIECE, max_size=12).map(tuple), st.one_of(st.text(max_size=12), st.just("a b a 你 b")))
@settings(max_examples=400, deadline=None)
def test_execution_is_total(pieces: tuple[str, ...], utterance: str) -> None:
    executed = execute_pieces(pieces, utterance)
    assert executed.edits.apply(utterance) == executed.text
    if not pieces:
        assert (executed.text, executed.well_formed) == (utterance, True)


def _insert(text: str) -> Operation:
    return Operation("", text)


@pytest.mark.parametrize(
    ("operations", "utterance", "texts", "reason"),
    [
        ([], "a b", [], "nothing proposed"),
        ([_insert("x")], "a b", ["x a b", "a b x", "a x b"], "an insertion goes to every boundary, the ends first"),
        ([Operation("a", "x")], "a b a", ["x b a", "a b x"], "a replacement goes to every occurrence"),
        ([Operation("z", "x")], "a b", [], "old text that does not occur"),
        ([Operation("z", "x"), _insert("y")], "a", ["y a", "a y"], "what cannot be placed is left out"),
        ([Operation("a", "a")], "a b", [], "no change is not a placement"),
        ([Operation("b", "")], "a b", ["a"], "a deletion"),
        ([_insert("x"), _insert("y")], "a", ["x a y", "y a x"], "their own order first, then the other"),
        ([_insert("x"), _insert("y")], "", ["x y", "y x"], "they touch where there is no other way"),
    ],
)
def test_placements(operations: list[Operation], utterance: str, texts: list[str], reason: str) -> None:
    assert [script.apply(utterance) for script in placements(operations, utterance)] == texts, reason


@given(st.lists(st.sampled_from([_insert("x"), _insert("y"), Operation("a", "z"), Operation("b", "")]), max_size=7))
@settings(max_examples=60, deadline=None)
def test_placements_are_bounded_and_distinct(operations: list[Operation]) -> None:
    utterance = "a b a c d b e f g"
    texts = [script.apply(utterance) for script in placements(operations, utterance, limit=20)]
    assert len(texts) == len(set(texts)) <= 20
    assert utterance not in texts


def test_the_gold_placement_is_among_them() -> None:
    utterance, rewrite = "It is he who acted.", "It is Ben Affleck who acted as Batman."
    operations = derive_edits(utterance, rewrite).operations
    assert rewrite in [script.apply(utterance) for script in placements(operations, utterance)]


def test_a_long_utterance_and_many_operations_stay_bounded() -> None:
    assert len(placements([_insert("x")] * 40, "a " * 2000)) == 64


def test_make_script_joins_spans_that_touch() -> None:
    script = make_script([Span(0, 1, "Ben"), Span(1, 1, "Affleck")], "he acted")
    assert script.apply("he acted") == "Ben Affleck acted"
    assert len(script) == 1


@needs_data("data", "rewrite", "corpus.txt")
def test_rewrite_rows_round_trip() -> None:
    from teo.data import load_rows

    rows = load_rows("rewrite", find_data("data", "rewrite"), "test").rows
    exact = in_units = 0
    for row in rows:
        a = row.dialogue.utterance
        executed = execute_pieces(placed_pieces(derive_edits(a, row.rewrite), a), a)
        exact += executed.text == row.rewrite
        in_units += re.sub(r"\s", "", executed.text) == re.sub(r"\s", "", row.rewrite)
    assert in_units == len(rows)
    assert exact / len(rows) > 0.995
