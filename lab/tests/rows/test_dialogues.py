"""Hand-written dialogues: their files, their rows, and that none is close to the everyday benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from teo.errors import DataError
from teo_lab.paths import EVERYDAY, ROWS
from teo_lab.rows.build import make_rows
from teo_lab.rows.choices import Language, reactions, replies
from teo_lab.rows.closeness import Benchmark
from teo_lab.rows.dialogues import HandWritten, dialogue_rows, drawn_rows, hand_written_rows, read_dialogues
from teo_lab.rows.settings import RowsRecipe
from teo_lab.rows.template_files import read_templates
from teo_lab.rows.words import read_words

LANGUAGES: tuple[Language, ...] = ("en", "zh")


def test_a_file_of_dialogues_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "# shop\n> Got kettles? | Two:\\n1. red\\n2. blue\nthe first => the red kettle\n= thanks\n", encoding="utf-8"
    )
    history = ("Got kettles?", "Two:\n1. red\n2. blue")
    assert read_dialogues(file) == [
        HandWritten(history, "the first", "the red kettle"),
        HandWritten(history, "thanks", "thanks"),
    ]


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("> a | b\nno arrow\n", "a.txt:2: expected `utterance => rewrite` or `= utterance`, found 'no arrow'"),
        ("it => the kettle\n", "a.txt:1: expected a dialogue"),
        ("> a |  | c\nit => the kettle\n", "a.txt:2: expected a dialogue .* and no empty part"),
    ],
)
def test_what_is_no_dialogue_is_named(text: str, wording: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=wording):
        read_dialogues(tmp_path / "a.txt")


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_copies_are_the_hand_written_rows_and_variations_of_them(language: Language) -> None:
    written = hand_written_rows(language)
    rows = list(dialogue_rows(language, 2, seed=1))
    assert len(rows) == 2 * len(written) > 10_000
    assert [row.rewrite for row in rows[::2]] == [row.rewrite for row in written]
    varied = [first.dialogue != second.dialogue for first, second in zip(rows[::2], rows[1::2], strict=True)]
    assert 0.3 < sum(varied) / len(varied) < 0.95
    assert len({row.id for row in rows}) == len(rows)
    assert list(dialogue_rows(language, 2, seed=1)) == rows


def close_rows(language: Language, rows: Iterable[tuple[Sequence[str], str]]) -> list[tuple[str, str]]:
    """Return the utterances of rows (history, utterance) that are close to the benchmark or its development part."""
    benchmark = Benchmark(language, ("", "dev"))
    found = ((utterance, benchmark.find_close(history, utterance)) for history, utterance in rows)
    return [(utterance, name) for utterance, name in found if name is not None]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_dialogue_is_close_to_the_benchmark(language: Language) -> None:
    assert not close_rows(language, ((row.history, row.utterance) for row in hand_written_rows(language)))


@pytest.mark.slow
def test_no_sampled_row_is_close_to_the_benchmark() -> None:
    rows = make_rows(RowsRecipe(sampled="own"))
    assert not close_rows("en", ((row.dialogue.history, row.dialogue.utterance) for row in rows))


def test_a_dialogue_of_the_benchmark_itself_is_close() -> None:
    text = json.loads((EVERYDAY / "en.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert Benchmark("en").find_close(text["history"], text["utterance"]) == text["id"]
    assert Benchmark("en", ("dev",)).find_close(text["history"], text["utterance"]) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_dialogues_are_not_trained_on(language: Language) -> None:
    lines = (EVERYDAY / "held" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    held_out = {tuple(json.loads(line)["history"]) for line in lines}
    assert len(held_out) > 100
    assert not held_out & {row.history for row in hand_written_rows(language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_drawn_rows_are_of_different_dialogues_and_a_third_is_complete(language: Language) -> None:
    rows = list(drawn_rows(language, 90, seed=4))
    assert len({row.dialogue.history for row in rows}) == len({row.id for row in rows}) == 90
    assert [row.is_complete for row in rows] == [False, False, True] * 30
    assert rows == list(drawn_rows(language, 90, seed=4)) != list(drawn_rows(language, 90, seed=5))
    known = {(row.history, row.utterance, row.rewrite) for row in hand_written_rows(language)}
    assert {(row.dialogue.history, row.dialogue.utterance, row.rewrite) for row in rows} <= known


def test_the_card_counts_right() -> None:
    card = (ROWS / "README.md").read_text(encoding="utf-8")
    for language in LANGUAGES:
        rows = hand_written_rows(language)
        complete = sum(row.utterance == row.rewrite for row in rows)
        dialogues = len({row.history for row in rows})
        assert f"{len(rows):,} rows in {dialogues:,} dialogues; {complete:,} rows are complete" in card
        lists = read_words(ROWS / "words" / f"{language}.txt").values()
        assert f"{sum(len(words.entries) for words in lists):,} entries in {len(lists)} lists" in card
        assert f"{len(read_templates(ROWS / 'templates' / language))} templates" in card
        assert f" {sum(map(len, replies(language).values()))} " in card
        assert f" {len(reactions(language))} " in card
