"""Copies of rows with a difference that should not matter: what changes, what stays, and who draws."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from request_files import write_requests
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo_lab.rows.build import make_rows
from teo_lab.rows.labels import read_sampled
from teo_lab.rows.requests import read_requests
from teo_lab.rows.settings import RowsRecipe
from teo_lab.rows.traditional import open_converters
from teo_lab.rows.variations import copied_name, polite_rows, rename, renamed_rows, typed_rows, unrelated_rows

DUNE = Row("a", Dialogue(("Who wrote Dune?", "Frank Herbert."), "When did he die?"), "When did Frank Herbert die?")
TEA = Row("b", Dialogue(("Do you like tea?",), "Why"), "Why do you like tea?")
RAIN = Row("c", Dialogue(("Is it raining?",), "Thanks."), "Thanks.")
JAY = Row("d", Dialogue(("周杰伦是谁", "歌手"), "他多大了"), "周杰伦多大了")
CITY = Row("e", Dialogue(("北京天气怎么样", "晴"), "上海呢"), "上海天气怎么样")
ROWS = [DUNE, TEA, RAIN, JAY, CITY]


def test_unrelated_turns_come_in_front_and_change_nothing_else() -> None:
    rows = [Row(f"{row.id}{k}", row.dialogue, row.rewrite) for row in ROWS for k in range(40)]
    made = list(unrelated_rows(rows, 1.0))
    added = set()
    for row in made:
        source = next(one for one in ROWS if row.id.removeprefix("unrelated:").rstrip("0123456789") == one.id)
        assert (row.dialogue.utterance, row.rewrite) == (source.dialogue.utterance, source.rewrite)
        count = len(row.dialogue.history) - len(source.dialogue.history)
        assert row.dialogue.history[count:] == source.dialogue.history
        added.add(count)
        turns = "".join(row.dialogue.history[:count])
        assert source.rewrite not in row.dialogue.history[:count], "the answer is not given away"
        assert turns.isascii() == source.rewrite.isascii(), "the same language"
    assert added == {1, 2, 3}


def test_polite_words_stand_in_utterance_and_rewrite() -> None:
    rows = [Row(f"{row.id}{k}", row.dialogue, row.rewrite) for row in ROWS for k in range(400)]
    made = list(polite_rows(rows, 1.0))
    assert not any(row.id.startswith("polite:b") for row in made), "utterance and rewrite end differently"
    texts = {row.dialogue.utterance for row in made}
    assert "Thanks. When did he die?" in texts
    assert "When did he die, please?" in texts
    assert "请问他多大了" in texts
    for row in made:
        source = next(one for one in ROWS if row.id.removeprefix("polite:").rstrip("0123456789") == one.id)
        assert row.dialogue.history == source.dialogue.history
        assert row.is_complete == source.is_complete
        left = row.dialogue.utterance.replace(source.dialogue.utterance.rstrip("?."), "", 1)
        assert left == row.rewrite.replace(source.rewrite.rstrip("?."), "", 1), "the same words are added to both"


def test_typed_rows_spell_alike_what_the_rewrite_takes_from_the_utterance() -> None:
    rows = [Row(f"{row.id}{k}", row.dialogue, row.rewrite) for row in ROWS for k in range(60)]
    made = {(row.dialogue.utterance, row.rewrite) for row in typed_rows(rows, 1.0)}
    assert ("When did he die", "When did Frank Herbert die") in made, "without the final mark"
    assert ("when did he die", "when did Frank Herbert die") in made, (
        "no capitals, but names as the other one wrote them"
    )
    assert ("Wehn did he die?", "Wehn did Frank Herbert die?") in made, "two letters swapped"
    unchanged = {(row.dialogue.utterance, row.rewrite) for row in ROWS}
    assert not made & unchanged, "every row differs from its source"


def test_renamed_rows_have_the_new_name_wherever_the_old_one_was() -> None:
    rows = [Row(f"{row.id}{k}", row.dialogue, row.rewrite) for row in (DUNE, JAY) for k in range(20)]
    made = list(renamed_rows(rows, 1.0))
    assert len(made) == len(rows)
    for row in made:
        old, source = ("Herbert", DUNE) if row.id.startswith("renamed:a") else ("周杰伦", JAY)
        name = row.rewrite.removeprefix(source.rewrite.partition(old)[0]).removesuffix(source.rewrite.partition(old)[2])
        assert row.rewrite == source.rewrite.replace(old, name)
        assert row.dialogue.history == tuple(turn.replace(old, name) for turn in source.dialogue.history)
        assert row.dialogue.utterance == source.dialogue.utterance
        assert name != old
    assert len({row.rewrite for row in made}) > 20, "many names"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (RAIN, "nothing is restored"),
        (Row("f", Dialogue(("do you like tea?",), "Why?"), "Why do you like tea?"), "no capitalised word is copied"),
        (
            Row("f", Dialogue(("Our train is late.", "How late?"), "And the bus?"), "How late is the bus?"),
            "a word with a capital only where its sentence begins",
        ),
        (
            Row("f", Dialogue(("I need a Pen.", "Which pen?"), "A blue one."), "A blue Pen."),
            "a name has a capital everywhere",
        ),
        (Row("f", Dialogue(("We met on Monday.",), "Why then?"), "Why on Monday?"), "a day is no name"),
        (
            Row("g", Dialogue(("我想去看周末的那场音乐会",), "在哪"), "我想去看周末的那场音乐会在哪"),
            "a phrase is no name",
        ),
        (Row("g", Dialogue(("明天去爬山吧",), "几点"), "明天去爬山几点"), "what stands for no pronoun may be a verb"),
        (Row("g", Dialogue(("小峰跑了第一", "小峰真快"), "他高兴吗"), "小峰跑高兴吗"), "a part of it stands alone"),
    ],
)
def test_what_has_no_name_is_not_renamed(row: Row, reason: str) -> None:
    assert list(renamed_rows([row], 1.0)) == [], reason


def test_a_name_is_renamed_as_a_whole_word_and_within_title_marks() -> None:
    history = ("Maybe May can help, or Kim.", "I asked May's sister.", "So May did it?")
    row = Row("h", Dialogue(history, "Why her?"), "Why did May do it?")
    assert copied_name(row) is None, "May is a month, too"
    made = rename(Row("h", Dialogue(history, "Why?"), "Why did May do it?"), "May", "Lor")
    assert made.dialogue.history == ("Maybe Lor can help, or Kim.", "I asked Lor's sister.", "So Lor did it?")
    film = Row("i", Dialogue(("《长津湖》好看吗", "还行"), "谁导演的"), "《长津湖》谁导演的")
    assert copied_name(film) == "长津湖"


def test_a_row_draws_for_itself() -> None:
    alone = list(polite_rows([DUNE], 1.0, seed=3))
    assert alone[0] in list(polite_rows([JAY, RAIN, DUNE], 1.0, seed=3))
    assert list(polite_rows(ROWS, 0.0)) == []


def test_traditional_characters() -> None:
    pytest.importorskip("opencc", reason="the package opencc is not installed")
    convert = open_converters()(random.Random(1))
    assert convert("上海天气怎么样") == "上海天氣怎麼樣"


def test_traditional_characters_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(InputError, match="pip install opencc"):
        open_converters()


def test_a_recipe_varies_the_rows_of_datasets_and_its_own() -> None:
    made = make_rows(RowsRecipe(counting_zh=30, unrelated=1.0, polite=1.0, typed=1.0, renamed=1.0), [DUNE, JAY])
    kinds = {row.id.split(":")[0].split("-")[0] for row in made}
    assert kinds == {"counting", "unrelated", "polite", "typed", "renamed"}
    assert "polite:a" in {row.id for row in made}
    assert any(row.id.startswith("unrelated:counting-zh") for row in made)


def test_sampled_rows_by_opening_and_requests_by_source(tmp_path: Path) -> None:
    path = tmp_path / "sampled.jsonl"
    line = '{{"history": ["Hi."], "utterance": "{0}", "rewrite": "{0}", "opening": "{0}"}}\n'
    path.write_text("".join(line.format(opening) for opening in ("own", "corpus", "free")), encoding="utf-8")
    assert [row.rewrite for row in read_sampled(path, ("own", "free"))] == ["own", "free"]
    assert len(list(read_sampled(path))) == 3
    write_requests(tmp_path)
    everything = read_requests(tmp_path, "en")
    sources = {request.source for request in everything}
    chosen = sorted(sources)[0]
    assert read_requests(tmp_path, "en", (chosen,)) == [one for one in everything if one.source == chosen]
    assert read_requests(tmp_path, "en", ("nowhere",)) == []
