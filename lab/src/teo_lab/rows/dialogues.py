r"""Hand-written dialogues, each with several possible last utterances, as rows.

    > first turn | second turn
    utterance => its rewrite
    = utterance that stays unchanged

A line that starts with `>` opens a dialogue; the lines below it are alternatives. `\n` in a turn is a line break.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo_lab.paths import ROWS
from teo_lab.rows.choices import Language
from teo_lab.rows.typos import Typed, add_typos

FOLDER = ROWS / "dialogues"
PADDED = 0.15
"""Share of the copies with turns of another dialogue before them."""
SWITCHED = 0.08
"""Share of the copies whose utterance is a complete one of another dialogue, which stays unchanged."""
COMPLETED = 0.15
"""Share of the copies of a changed row whose utterance is the rewrite, which stays unchanged."""
_OPEN, _COMPLETE, _ARROW, _TURNS = "> ", "= ", " => ", " | "
_LONG = 40
"""Characters above which a complete utterance says enough to follow any dialogue (a third of them in Chinese)."""


@dataclass(frozen=True, slots=True)
class HandWritten:
    """One possible end of a hand-written dialogue."""

    history: tuple[str, ...]
    utterance: str
    rewrite: str


def read_dialogues(path: Path) -> list[HandWritten]:
    """Return the rows of a file of dialogues."""
    rows: list[HandWritten] = []
    history: tuple[str, ...] = ()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip().replace("\\n", "\n")
        if not text or text.startswith("#"):
            continue
        if text.startswith(_OPEN):
            history = tuple(turn.strip() for turn in text.removeprefix(_OPEN).split(_TURNS))
            continue
        utterance, arrow, rewrite = text.partition(_ARROW)
        if text.startswith(_COMPLETE):
            utterance = rewrite = text.removeprefix(_COMPLETE).strip()
        elif not arrow:
            raise DataError(f"{path}:{number}: expected `utterance => rewrite` or `= utterance`, found {line[:60]!r}")
        if not history or not all((*history, utterance.strip(), rewrite.strip())):
            raise DataError(f"{path}:{number}: expected a dialogue (`> turn | turn`) above and no empty part")
        rows.append(HandWritten(history, utterance.strip(), rewrite.strip()))
    return rows


@cache
def hand_written_rows(language: Language, files: int = 0) -> tuple[HandWritten, ...]:
    """Return the hand-written rows of a language, in the order of the files: of all, or of the first ones."""
    paths = sorted((FOLDER / language).glob("*.txt"))
    return tuple(row for path in paths[: files or None] for row in read_dialogues(path))


def dialogue_rows(language: Language, copies: int, seed: int) -> Iterator[Row]:
    """Yield `copies` copies of every hand-written row: one as it is, the others with typos.

    Some copies come after turns of another dialogue, some end with a complete utterance of another one, and some have
    the rewrite as utterance.
    """
    hand_written = hand_written_rows(language)
    complete = [row.utterance for row in hand_written if row.utterance == row.rewrite and _says_enough(row, language)]
    for number, row in enumerate(hand_written):
        for copy in range(copies):
            rng = random.Random(f"dialogues/{language}/{seed}/{number}/{copy}")
            varied = row if copy == 0 else _vary(row, hand_written, complete, rng)
            typed = Typed.taking_turns(Dialogue(varied.history, varied.utterance), varied.rewrite)
            typed = typed if copy == 0 else add_typos(typed, language, rng)
            yield Row(f"dialogues-{language}-{number}-{copy}", typed.dialogue, typed.rewrite)


def drawn_rows(language: Language, count: int, seed: int, files: int = 0) -> Iterator[Row]:
    """Yield `count` hand-written rows as they are, each of another dialogue and every third of them complete.

    With `files` they come from the first files alone, so that files written later change nothing.
    """
    dialogues: dict[tuple[str, ...], list[HandWritten]] = {}
    for row in hand_written_rows(language, files):
        dialogues.setdefault(row.history, []).append(row)
    rng = random.Random(f"drawn/{language}/{seed}")
    number = 0
    for ends in rng.sample(list(dialogues.values()), len(dialogues)):
        wanted = [row for row in ends if (row.utterance == row.rewrite) == (number % 3 == 2)]
        if wanted and number < count:
            row = rng.choice(wanted)
            yield Row(f"drawn-{language}-{number}", Dialogue(row.history, row.utterance), row.rewrite)
            number += 1


def _says_enough(row: HandWritten, language: Language) -> bool:
    return len(row.utterance) >= (_LONG if language == "en" else _LONG // 3)


def _vary(
    row: HandWritten, hand_written: Sequence[HandWritten], complete: Sequence[str], rng: random.Random
) -> HandWritten:
    """Return the row after other turns, with another end, with its rewrite as utterance, or as it is."""
    draw = rng.random()
    if draw < PADDED:
        before = rng.choice(hand_written)
        turns = (*before.history, before.rewrite)
        turns = turns if len(turns) % 2 == 0 else turns[1:]
        return HandWritten((*turns[-4:], *row.history), row.utterance, row.rewrite)
    if draw < PADDED + SWITCHED and complete:
        other = rng.choice(complete)
        return HandWritten(row.history, other, other)
    if draw < PADDED + SWITCHED + COMPLETED:
        return HandWritten(row.history, row.rewrite, row.rewrite)
    return row
