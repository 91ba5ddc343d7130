"""Dialogues written for training: their files, their rows, and that none is close to the everyday benchmark."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from teo.errors import DataError
from teo.training.augmentation.augment import augment
from teo.training.augmentation.choices import Language
from teo.training.augmentation.dialogues import Written, dialogue_rows, read_dialogues, written_rows
from teo.training.augmentation.settings import AugmentationSettings

LANGUAGES: tuple[Language, ...] = ("en", "zh")
EVERYDAY = Path(__file__).parents[2] / "benchmarks" / "everyday"


def test_a_file_of_dialogues_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "# shop\n> Got kettles? | Two:\\n1. red\\n2. blue\nthe first => the red kettle\n= thanks\n", encoding="utf-8"
    )
    history = ("Got kettles?", "Two:\n1. red\n2. blue")
    assert read_dialogues(file) == [
        Written(history, "the first", "the red kettle"),
        Written(history, "thanks", "thanks"),
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_copies_are_the_written_rows_and_variations_of_them(language: Language) -> None:
    written = written_rows(language)
    rows = list(dialogue_rows(language, 2, seed=1))
    assert len(rows) == 2 * len(written) > 10_000
    assert [row.rewrite for row in rows[::2]] == [row.rewrite for row in written]
    varied = [first.dialogue != second.dialogue for first, second in zip(rows[::2], rows[1::2], strict=True)]
    assert 0.3 < sum(varied) / len(varied) < 0.95
    assert len({row.id for row in rows}) == len(rows)
    assert list(dialogue_rows(language, 2, seed=1)) == rows


def grams(text: str) -> set[str]:
    """Return runs of characters: three of Chinese text, six of other."""
    text = re.sub(r"\W", "", text.lower())
    size = 3 if re.search("[\u4e00-\u9fff]", text) else 6
    return {text[k : k + size] for k in range(len(text) - size + 1)}


def close_to_the_benchmark(language: Language, rows: Iterable[tuple[Sequence[str], str]]) -> list[tuple[str, str]]:
    """Return the utterances of rows (history, utterance) that share half of their runs with a dialogue of it."""
    texts = [
        json.loads(line)
        for file in (EVERYDAY / f"{language}.jsonl", EVERYDAY / "dev" / f"{language}.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    known = [grams(" ".join(text["history"])[-300:] + text["utterance"]) for text in texts]
    holders: dict[str, list[int]] = {}
    for number, found in enumerate(known):
        for gram in found:
            holders.setdefault(gram, []).append(number)
    close = []
    for history, utterance in rows:
        own = grams(" ".join(history)[-300:] + utterance)
        shared = Counter(number for gram in own for number in holders.get(gram, ()))
        for number, count in shared.most_common(3):
            if count > max(8, 0.5 * min(len(own), len(known[number]))):
                close.append((utterance, texts[number]["id"]))
    return close


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_dialogue_is_close_to_the_benchmark(language: Language) -> None:
    assert not close_to_the_benchmark(language, ((row.history, row.utterance) for row in written_rows(language)))


def test_no_sampled_row_is_close_to_the_benchmark() -> None:
    rows = augment(AugmentationSettings(sampled="package"), [])
    assert not close_to_the_benchmark("en", ((row.dialogue.history, row.dialogue.utterance) for row in rows))


def test_a_dialogue_of_the_benchmark_itself_is_close() -> None:
    text = json.loads((EVERYDAY / "en.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (text["utterance"], text["id"]) in close_to_the_benchmark("en", [(text["history"], text["utterance"])])
