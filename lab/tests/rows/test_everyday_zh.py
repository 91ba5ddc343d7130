"""The Chinese templates: enough of every kind, and rewrites that follow from the dialogue."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from teo.data.row import Row
from teo_lab.paths import ROWS
from teo_lab.rows.everyday import everyday_rows
from teo_lab.rows.template_files import read_templates
from teo_lab.rows.words import read_words

TEMPLATES = read_templates(ROWS / "templates" / "zh")
FUNCTION_CHARACTERS = set("的把你我是吗在和因为用给到去比就了吧对坐更新觉得还没玩寄票买报修歌讲提醒")
"""Characters that a rewrite may add though neither utterance nor history has them."""


@cache
def sample_rows() -> tuple[Row, ...]:
    return tuple(everyday_rows("zh", 20000, 5))


def test_every_kind_has_templates_and_two_fifths_keep_the_utterance() -> None:
    kinds = Counter(template.kind for template in TEMPLATES)
    assert len(kinds) == 13, kinds
    assert min(kinds.values()) >= 15, kinds
    assert kinds["long-answer"] >= 40
    assert kinds["keep"] / len(TEMPLATES) >= 0.4


def test_the_word_lists_are_large() -> None:
    lists = read_words(ROWS / "words" / "zh.txt")
    assert len(lists) >= 60
    assert sum(len(words.entries) for words in lists.values()) >= 3000


def test_held_out_templates_are_a_small_share() -> None:
    assert 0.02 < sum(template.held_out for template in TEMPLATES) / len(TEMPLATES) < 0.12


def test_rewrites_take_their_words_from_the_dialogue() -> None:
    for row in sample_rows():
        known = set("".join((*row.dialogue.history, row.dialogue.utterance))) | FUNCTION_CHARACTERS
        assert set(row.rewrite) <= known, row


def test_histories_are_short_and_long() -> None:
    lengths = Counter(len(row.dialogue.history) for row in sample_rows())
    assert all(lengths[length] for length in (1, 2, 3, 4, 6, 8)), lengths


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("哈哈", "laughter"),
        ("好的", "consent"),
        ("再见", "farewell"),
        ("现在几点了", "nothing is left out"),
        ("那就这样吧", "a pronoun that stands for nothing"),
    ],
)
def test_utterances_that_need_nothing_are_kept(text: str, reason: str) -> None:
    rows = [row for row in sample_rows() if re.sub(r"[。！？]$", "", row.dialogue.utterance) == text]
    assert rows, f"no row with {text} ({reason})"
    assert all(row.is_complete for row in rows), reason
