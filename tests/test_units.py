from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.units import is_cjk, join_units, needs_space, scoring_units, split_units, unit_texts


@pytest.mark.parametrize(
    ("text", "units", "reason"),
    [
        ("It is he.", ["It", "is", "he", "."], "words, punctuation apart"),
        ("我现在就要", ["我", "现", "在", "就", "要"], "a Chinese character is a unit"),
        ("iphonex 好不好", ["iphonex", "好", "不", "好"], "mixed text, spaced"),
        ("iphonex为什么不好用", ["iphonex", "为", "什", "么", "不", "好", "用"], "mixed text, not spaced"),
        ("don't it's I'll", ["do", "n't", "it", "'s", "I", "'ll"], "clitics are units, as the field has them"),
        ("can’t that’s", ["ca", "n’t", "that", "’s"], "the typographic apostrophe too"),
        ("mid-range good-bye", ["mid-range", "good-bye"], "a hyphenated word is one"),
        ("3.5 1,000 12:30 25度", ["3.5", "1,000", "12:30", "25", "度"], "numbers keep their signs"),
        ("wait...", ["wait", ".", ".", "."], "signs one by one"),
        ("e\u0301tude", ["e\u0301tude"], "a combining mark stays with its letter"),
        ("👨\u200d👩\u200d👧👍🏽🇨🇳", ["👨\u200d👩\u200d👧", "👍🏽", "🇨🇳"], "joined, toned and flag emoji are one sign"),
        ("カタカナ 한국어", [*"カタカナ", *"한국어"], "Japanese and Korean by character"),
        ("हिन्दी", ["हिन्दी"], "vowel signs stay in the word"),
        ("name_SLOT", ["name_SLOT"], "placeholders stay whole"),
        ("[SEP]", ["[", "SEP", "]"], "a marker in a user's text is text"),
        (" \t\n\u3000", [], "white space is no unit"),
        ("\ud800", ["\ud800"], "a lone surrogate is a unit, not a crash"),
    ],
)
def test_units(text: str, units: list[str], reason: str) -> None:
    assert unit_texts(text) == units, reason


@given(st.text(max_size=60))
def test_units_cover_everything_but_white_space(text: str) -> None:
    reached = 0
    for unit in split_units(text):
        assert text[unit.start : unit.end] == unit.text
        assert text[reached : unit.start].strip() == ""
        assert unit.start >= reached
        assert unit.end > unit.start
        reached = unit.end
    assert text[reached:].strip() == ""


@given(st.text(alphabet="ab我是 .'-1n\u0301t", max_size=30))
def test_joining_keeps_the_units(text: str) -> None:
    assert "".join(join_units(unit_texts(text)).split()) == "".join(text.split())


def test_scoring_units_are_lower_case() -> None:
    assert scoring_units("Ben Affleck在USA") == ["ben", "affleck", "在", "usa"]


@pytest.mark.parametrize(
    ("left", "right", "expected", "reason"),
    [
        ("acted", "as", True, "two words"),
        ("acted", ".", False, "a sign closes up"),
        ("it", "'s", False, "a clitic closes up"),
        ("(", "as", False, "after an opening bracket"),
        ("我", "as", False, "no spaces beside Chinese"),
        ("as", "我", False, "no spaces beside Chinese"),
        ("", "as", False, "nothing before"),
        ("as ", "we", False, "already spaced"),
        ("as", "(we)", True, "a bracket opens after a space"),
    ],
)
def test_needs_space(left: str, right: str, expected: bool, reason: str) -> None:
    assert needs_space(left, right) is expected, reason


def test_is_cjk() -> None:
    assert [is_cjk(sign) for sign in "我カ한a1，"] == [True, True, True, False, False, False]
