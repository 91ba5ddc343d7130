"""Lists and the n-th of their items: the rewrite names the item that counting gives, however the list is written."""

from __future__ import annotations

import re

import pytest

from teo_lab.rows.choices import Language
from teo_lab.rows.counting import _draw_ordinal, _read, counting_rows
from teo_lab.rows.typos import LOWER_CASE

LANGUAGES: tuple[Language, ...] = ("en", "zh")
ROWS = {language: list(counting_rows(language, 1500, seed=2)) for language in LANGUAGES}


def listed(text: str) -> list[str]:
    """Return the items of a list that is numbered or has a line for each, without remarks; nothing for running text."""
    text = re.sub(r" ?[(（][^)）]*[)）]", "", text)
    items = re.findall(r"(?:(?:^|\n| )\d[.)、）] ?|(?:^|\n)- )(.*?)(?=\n| \d\) |$)", text)
    return [re.split("，| - |, \\d", item)[0] for item in items]


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinals_point_at_the_item_of_the_rewrite(language: Language) -> None:
    checked = 0
    numbers = ["first", "second", "third", "fourth", "fifth", "sixth"] if language == "en" else list("一二三四五六")
    for row in ROWS[language]:
        text = row.dialogue.utterance.lower()
        found = re.search(r"the (\w+) one" if language == "en" else "(?<!倒数)第([一二三四五六])", text)
        items = listed(row.dialogue.history[-1])
        if found and found[1] in numbers and len(items) > 1:
            item = items[numbers.index(found[1])].lower()
            assert re.sub("^(?:my\\b|我)", "", item) in row.rewrite.lower(), (row, items)
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_of_the_forms_is_left(language: Language) -> None:
    for row in ROWS[language]:
        assert not re.search("[@#|]", " ".join((*row.dialogue.history, row.dialogue.utterance, row.rewrite))), row
        assert "the the" not in row.dialogue.utterance.lower()
        assert row.rewrite != row.dialogue.utterance


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_mine_to_the_one_who_lists_it_is_yours_to_the_other(language: Language) -> None:
    own, other = ("my ", "your ") if language == "en" else ("我", "你")
    relative = "(?:brother|sister|dad|mum|uncle|aunt|wife|husband|爸|妈|哥|姐|弟弟|妹妹)"
    sides = set()
    for row in ROWS[language]:
        found = re.search(f"({own}|{other}){relative}", row.rewrite.lower())
        if found and found[0] not in row.dialogue.utterance.lower():
            first, last = (re.search(own + relative, turn.lower()) for turn in row.dialogue.history)
            assert found[1] == (own if first else other), row
            assert (first is None) != (last is None), "one turn lists the items"
            sides.add(found[1])
    assert sides == {own, other}


def test_every_ordinal_comes() -> None:
    text = " ".join(row.dialogue.utterance.lower() for row in ROWS["en"])
    for way in ("the first", "the second", "the sixth", "number 3", "the last but one", "the former", "the latter"):
        assert way in text
    lower = sum(row.dialogue.utterance.islower() for row in ROWS["en"])
    assert lower > len(ROWS["en"]) * LOWER_CASE / 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_group_has_questions_and_things_to_say(language: Language) -> None:
    groups, forms, _ = _read(language)
    assert len(groups) >= 14
    assert all(len(group.asked) >= 3 and len(group.said) >= 5 for group in groups)
    assert all("@" in text for group in groups for text in group.said)
    assert all(len(texts) >= 5 for texts in forms.values())


@pytest.mark.parametrize(
    ("position", "length", "way"), [(1, 2, "the latter"), (1, 3, "the middle one"), (2, 3, "the last")]
)
def test_positions_have_their_own_words(position: int, length: int, way: str) -> None:
    import random

    rng = random.Random(0)
    assert way in {_draw_ordinal(position, length, "", "en", rng) for _ in range(80)}
