"""Polite words around an utterance: what is taken for them, and what is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.wrappers import find_core


@pytest.mark.parametrize(
    ("utterance", "core", "reason"),
    [
        ("Thanks. When did he die?", "When did he die?", "in front"),
        ("When did he die, please?", "When did he die", "at the end, with its mark"),
        ("Cancel it please", "Cancel it", "at the end, without a mark before it"),
        ("OK, and in Leeds?", "and in Leeds?", "case does not matter"),
        ("ok what about friday", "what about friday", "some need no mark"),
        ("Oh, sorry, one more question: is it open?", "is it open?", "several"),
        ("okay please cancel it, thanks!", "cancel it", "on both sides"),
        ("please   cancel it", "cancel it", "white space"),
        ("请问他多大了", "他多大了", "in front, nothing between"),
        ("好的，谢谢，他多大了", "他多大了", "several"),
        ("一胎生几只，谢谢", "一胎生几只", "at the end"),
        ("对了，价格呢", "价格呢", "a change of topic"),
        ("那个，多少钱", "多少钱", "a hesitation"),
        ("那个多少钱", "那个多少钱", "no hesitation, but what is asked for"),
        ("好看吗", "好看吗", "a word that only begins so"),
        ("Yes, at eight.", "Yes, at eight.", "an answer"),
        ("Sure, for two.", "Sure, for two.", "an answer"),
        ("thanks for that", "thanks for that", "no mark between"),
        ("Please", "Please", "nothing else"),
        ("Okay, thanks!", "Okay, thanks!", "nothing but reactions"),
        ("Thanks, yes.", "Thanks, yes.", "nothing but reactions"),
        ("请问", "请问", "nothing else"),
        ("okra please", "okra", "a word that only begins so"),
        ("displease", "displease", "a word that only ends so"),
        ("", "", "nothing"),
        ("  ", "", "blank"),
        ("Where is it?", "Where is it?", "none"),
        ("  Where is it?\n", "Where is it?", "none but white space"),
        (" Thanks. \n Where is it? ", "Where is it?", "white space on all sides"),
    ],
)
def test_what_is_left(utterance: str, core: str, reason: str) -> None:
    start, end = find_core(utterance)
    assert utterance[start:end] == core, reason


@given(st.text(alphabet="ok, please.thanks 谢请问好的，?!", max_size=40))
def test_the_core_is_a_part_that_is_never_blank_unless_all_is(utterance: str) -> None:
    start, end = find_core(utterance)
    assert 0 <= start <= end <= len(utterance)
    assert utterance[start:end].strip() or not utterance.strip()


@pytest.mark.parametrize("unit", [", ", "ok ", "谢谢，", "please ", ".", " ", "thanks, "])
def test_time_is_in_proportion(unit: str) -> None:
    def seconds(length: int) -> float:
        text = "x" + unit * length + "x"
        started = time.perf_counter()
        for _ in range(3):
            find_core(text)
            find_core(text[1:])
        return time.perf_counter() - started

    seconds(100)
    assert seconds(40_000) < 100 * max(seconds(2_000), 1e-4), "20 times as long, not 400 times"
