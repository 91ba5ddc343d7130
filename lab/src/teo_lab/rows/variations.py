"""Copies of rows with a difference that should not matter: unrelated turns in front, polite words.

What the difference adds to an utterance it adds to its rewrite, too, so the model learns to look past it.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.units import holds_cjk
from teo_lab.paths import ROWS
from teo_lab.rows.choices import read_sections

Vary = Callable[[Row, random.Random], Row | None]
"""A row -> the row with a difference, in its rewrite too; None if the difference does not apply to it."""

_MOST_TURNS = 3
"""Unrelated turns in front of a dialogue, at most; an odd number gives the utterance to the other speaker."""
_QUESTION_ZH = re.compile(r"[吗呢？?]|谁|什么|哪|怎么|多少|几|多久|多长|为啥|为何|多[大高远重]")
_FINAL_MARK = re.compile(r"[.?!。？！]?$")


def vary_rows(kind: str, rows: Sequence[Row], share: float, vary: Vary, seed: int = 0) -> Iterator[Row]:
    """Yield varied copies of a share of the rows. Every row draws for itself, so their order does not matter."""
    for row in rows:
        rng = random.Random(f"{kind}/{seed}/{row.id}")
        if rng.random() < share and (varied := vary(row, rng)) is not None:
            yield varied


def unrelated_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows after one to three turns of another dialogue of the same language."""
    histories: dict[bool, list[tuple[str, ...]]] = defaultdict(list)
    for row in rows:
        histories[holds_cjk(row.rewrite)].append((*row.dialogue.history, row.rewrite))

    def vary(row: Row, rng: random.Random) -> Row | None:
        turns = rng.choice(histories[holds_cjk(row.rewrite)])[-rng.randint(1, _MOST_TURNS) :]
        if row.dialogue.utterance in turns or row.rewrite in turns or not all(turn.strip() for turn in turns):
            return None
        dialogue = Dialogue((*turns, *row.dialogue.history), row.dialogue.utterance)
        return Row(f"unrelated:{row.id}", dialogue, row.rewrite)

    return vary_rows("unrelated", rows, share, vary, seed)


def polite_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows with polite words around the utterance, which stay in the rewrite."""
    return vary_rows("polite", rows, share, add_polite_words, seed)


def add_polite_words(row: Row, rng: random.Random) -> Row | None:
    """Return the row with polite words before or after the utterance; None if utterance and rewrite end differently."""
    utterance, rewrite = row.dialogue.utterance, row.rewrite
    if _final_mark(utterance) != _final_mark(rewrite):
        return None
    language = "zh" if holds_cjk(rewrite) else "en"
    sections = read_sections(ROWS / "polite.txt")
    fronts = list(sections[f"{language}-front"])
    if language == "zh" and _QUESTION_ZH.search(utterance):
        fronts += sections["zh-question"]
    if rng.random() < 0.7:
        words = rng.choice(fronts) + (" " if language == "en" else "")
        utterance, rewrite = words + utterance, words + rewrite
    else:
        words = rng.choice(sections[f"{language}-end"])
        utterance, rewrite = _before_mark(utterance, words), _before_mark(rewrite, words)
    return Row(f"polite:{row.id}", Dialogue(row.dialogue.history, utterance), rewrite)


def _final_mark(text: str) -> str:
    found = _FINAL_MARK.search(text)
    return found[0] if found else ""


def _before_mark(text: str, words: str) -> str:
    """Return the text with words before its final mark."""
    mark = _final_mark(text)
    return text[: len(text) - len(mark)] + words + mark
