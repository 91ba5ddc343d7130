"""Excerpts: what is read of a turn that is too long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.excerpts import OMISSION, take_excerpt
from teo.units import unit_texts

ANSWER = "Dune is by Frank Herbert. It was a success. Others came later. Its films are many. He died in 1986."
CHINESE = "沙丘的作者是弗兰克。它出版于一九六五年。后来拍成了电影。电影有很多部！作者已经去世了。"


def words(text: str) -> int:
    return len(unit_texts(text))


@pytest.mark.parametrize(
    ("text", "room", "expected", "why"),
    [
        (ANSWER, 40, ANSWER, "what fits is left alone"),
        (ANSWER, 17, "Dune is by Frank Herbert. It was a success. … He died in 1986.", "whole sentences"),
        (ANSWER, 14, "Dune is by Frank Herbert. … He died in 1986.", "the end has what the head leaves"),
        (
            CHINESE,
            28,
            "沙丘的作者是弗兰克。 … 电影有很多部！作者已经去世了。",
            "Chinese sentences have no space between them",
        ),
        ("a b c d e f g h i j", 6, "a b c … i j", "no sentence: between units"),
        ("一二三四五六七八九十", 6, "一二三 … 九十", "a unit is a character in Chinese"),
        (
            "Yes. " + "a b c d e f g h " * 3 + "i",
            10,
            "Yes. a b c d … g h i",
            "a border that leaves too little is not taken",
        ),
        ("- one\n- two\n- three\n- four\n- five", 8, "- one\n- two … - five", "lines are borders"),
        ("It costs 3.5 million or 4.5 million a year", 6, "It costs 3.5 … a year", "a point in a number is none"),
        ("a b c d", 2, "a b", "no room for two parts: the head"),
        ("a b c d", 0, "", "no room"),
        ("a b c d", -3, "", "less than none"),
    ],
)
def test_head_and_end(text: str, room: int, expected: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teo.excerpts.HEAD_SHARE", 0.7)
    excerpt, left_out = take_excerpt(text, words, room)
    assert excerpt == expected, why
    assert len(excerpt) - (len(OMISSION) if OMISSION in excerpt else 0) + left_out == len(text)


def test_a_word_that_does_not_fit_leaves_the_other_end() -> None:
    assert take_excerpt("x" * 90 + " is it. Ben saw it.", len, 25) == ("Ben saw it.", 98)
    assert take_excerpt("Ben saw it. It is " + "x" * 90, len, 25) == ("Ben saw it.", 97)
    assert take_excerpt("x" * 90, len, 25) == ("", 90)


@pytest.mark.parametrize(
    ("share", "expected", "why"),
    [
        (0.0, "a b c d e f g h i j k", "no head is no two parts"),
        (0.2, "a b … m n o p q r s t", "the end has what the head leaves"),
        (0.8, "a b c d e f g h … s t", "mostly the head"),
        (1.0, "a b c d e f g h i j k", "no room for an end"),
    ],
)
def test_the_share_of_the_head(share: float, expected: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teo.excerpts.HEAD_SHARE", share)
    assert take_excerpt("a b c d e f g h i j k l m n o p q r s t", words, 11)[0] == expected, why


@settings(max_examples=300)
@given(text=st.text("ab .。\n他们…,!", max_size=80), room=st.integers(0, 40))
def test_it_fits_and_is_counted(text: str, room: int) -> None:
    excerpt, left_out = take_excerpt(text, len, room)
    assert len(excerpt) <= room
    assert take_excerpt(excerpt, len, room) == (excerpt, 0), "what fits once fits again"
    kept = len(text) - left_out
    parts = [
        (excerpt[:at], excerpt[at + len(OMISSION) :]) for at in range(len(excerpt)) if excerpt[at:].startswith(OMISSION)
    ]
    assert any(
        len(head) + len(end) == kept and text.startswith(head) and text.endswith(end)
        for head, end in [*parts, (excerpt, ""), ("", excerpt)]
    )


def test_a_book_takes_no_longer_than_a_page() -> None:
    def measure(text: str) -> int:
        return len(text) // 4

    started = time.perf_counter()
    excerpt, left_out = take_excerpt("A sentence of some words. " * 400_000, measure, 500)
    assert len(excerpt) - len(OMISSION) + left_out == 10_400_000
    assert measure(excerpt) > 400
    assert time.perf_counter() - started < 1
