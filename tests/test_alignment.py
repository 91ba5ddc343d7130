from __future__ import annotations

from itertools import combinations, pairwise, takewhile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teo import alignment
from teo.alignment import align, derive_edits
from teo.edits import Delete, Edit, Insert, Replace, format_operations


@pytest.mark.parametrize(
    ("current", "target", "edits", "reason"),
    [
        (
            "It is he who acted.",
            "It is Ben Affleck who acted as Batman.",
            (Replace(6, 8, "he", "Ben Affleck"), Insert(18, " as Batman")),
            "the paper's example, as the record shows it",
        ),
        (
            "为什么",
            "为什么天龙八部里段誉的武功最高",
            (Insert(3, "天龙八部里段誉的武功最高"),),
            "the paper's second case",
        ),
        ("same", "same", (), "nothing to change"),
        ("", "new", (Insert(0, "new"),), "an empty utterance"),
        ("old", "", (Delete(0, 3, "old"),), "an empty target"),
        ("", "", (), "both empty"),
        ("I really like it", "I like it", (Delete(2, 9, "really "),), "a pure deletion takes its space along"),
        ("a  b", "a b", (Delete(2, 3, " "),), "white space alone"),
        ("Hi", "hi", (Replace(0, 2, "Hi", "hi"),), "case counts"),
        ("is it good", "is Batman it good now", (Insert(3, "Batman "), Insert(10, " now")), "two insertions"),
        ("X a b c Y", "X c Y", (Delete(2, 6, "a b "),), "one run, not scattered"),
    ],
)
def test_derived_edits(current: str, target: str, edits: tuple[Edit, ...], reason: str) -> None:
    assert derive_edits(current, target).edits == edits, reason


def test_the_papers_operation_string() -> None:
    script = derive_edits("It is he who acted", "It is Ben Affleck who acted as Batman")
    assert format_operations(script.operations) == "[D] he [R] Ben Affleck [I] as Batman"


@given(st.text(max_size=40), st.text(max_size=40))
def test_applying_the_derived_edits_gives_the_target(current: str, target: str) -> None:
    assert derive_edits(current, target).apply(current) == target


@given(st.text(alphabet="ab 我是.'\n", max_size=30), st.text(alphabet="ab 我是.'\n", max_size=30))
def test_round_trip_of_texts_that_share_much(current: str, target: str) -> None:
    script = derive_edits(current, target)
    assert script.apply(current) == target
    assert all(edit.old != edit.new for edit in script)


def best_alignments(a: str, b: str) -> tuple[int, int]:
    """Length of the longest common subsequence and the fewest gaps any such alignment has, by trying all."""
    for size in range(min(len(a), len(b)), -1, -1):
        gaps = [
            count_gaps(list(zip(left, right, strict=True)), len(a), len(b))
            for left in combinations(range(len(a)), size)
            for right in combinations(range(len(b)), size)
            if all(a[i] == b[j] for i, j in zip(left, right, strict=True))
        ]
        if gaps:
            return size, min(gaps)
    raise AssertionError("the empty alignment always fits")


def count_gaps(pairs: list[tuple[int, int]], n: int, m: int) -> int:
    steps = [(-1, -1), *pairs, (n, m)]
    return sum((k - i, q - j) != (1, 1) for (i, j), (k, q) in pairwise(steps))


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_alignment_is_longest_with_the_fewest_edits(a: str, b: str) -> None:
    pairs = align(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < q for (i, j), (k, q) in pairwise(pairs))
    assert (len(pairs), count_gaps(pairs, len(a), len(b))) == best_alignments(a, b)


def first_path(a: str, b: str) -> list[tuple[int, int]]:
    """The best alignment that comes first: a match (0) before a skip in a (1), and that before a skip in b (2)."""

    def paths(i: int, j: int) -> list[tuple[int, ...]]:
        if (i, j) == (len(a), len(b)):
            return [()]
        steps = [(0, 1, 1)] if i < len(a) and j < len(b) and a[i] == b[j] else []
        steps += [(1, 1, 0)] * (i < len(a)) + [(2, 0, 1)] * (j < len(b))
        return [(move, *rest) for move, down, right in steps for rest in paths(i + down, j + right)]

    def pairs_of(path: tuple[int, ...]) -> list[tuple[int, int]]:
        before = [path[:k] for k in range(len(path)) if path[k] == 0]
        return [(len(part) - part.count(2), len(part) - part.count(1)) for part in before]

    def rank(path: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        pairs = pairs_of(path)
        return -len(pairs), count_gaps(pairs, len(a), len(b)), path

    return pairs_of(min(paths(0, 0), key=rank))


def shared(a: str, b: str) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))


@given(st.text(alphabet="abc", max_size=4), st.text(alphabet="abc", max_size=5))
@example("bc", "cbcac")  # the common suffix is matched first, though "c" also stands further left
def test_ties_are_broken_as_the_module_says(a: str, b: str) -> None:
    head = shared(a, b)
    tail = shared(a[head:][::-1], b[head:][::-1])
    middle = first_path(a[head : len(a) - tail], b[head : len(b) - tail])
    expected = [(k, k) for k in range(head)] + [(head + i, head + j) for i, j in middle]
    assert align(a, b) == expected + [(len(a) - k, len(b) - k) for k in range(tail, 0, -1)]


def test_an_insertion_that_could_slide_is_made_late() -> None:
    assert derive_edits("a b", "a b a b").edits == (Insert(3, " a b"),)
    assert derive_edits("好好", "好好好").edits == (Insert(2, "好"),)


@given(st.text(alphabet="abcd", max_size=12), st.text(alphabet="abcd", max_size=12))
def test_the_compiled_aligner_finds_subsequences_as_long(a: str, b: str) -> None:
    assert len(alignment._align_compiled(a, b)) == len(alignment._align_fewest_edits(a, b))


def test_long_texts_use_the_compiled_aligner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_EXACT_CELLS", 4)
    current, target = "x one two three y", "z one 2 three w"
    assert derive_edits(current, target).apply(current) == target
    assert align(current.split(), target.split()) == [(1, 1), (3, 3)]


def test_huge_texts_become_one_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_COMPILED_CELLS", 4)
    assert derive_edits("same a b c end", "same d b e end").edits == (Replace(5, 10, "a b c", "d b e"),)


def test_a_long_utterance_is_aligned_in_reasonable_time() -> None:
    current = " ".join(f"word{k}" for k in range(3000))
    target = current.replace("word1500", "it").replace("word10 ", "").replace("word2900", "that")
    script = derive_edits(current, target)
    assert script.apply(current) == target
    assert len(script) == 3
