"""Complete utterances to train on beside incomplete ones, so that the model learns to leave them unchanged."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.rules import PHRASES
from teo.training.config import UnchangedSettings
from teo.units import holds_cjk

_DRAWS = 10
"""Draws of another row's history before a row goes without."""


def unchanged_rows(rows: Sequence[Row], settings: UnchangedSettings, seed: int = 0) -> list[Row]:
    """Return the rows to add to `rows`, whose rewrites and histories they borrow."""
    made: list[Row] = []
    if settings.identity or settings.foreign:
        made += identity_rows(rows, settings.identity, settings.foreign, seed)
    made += reaction_rows(rows, settings.reactions, seed)
    return made


def identity_rows(rows: Sequence[Row], share: float = 0.25, foreign: float = 0.08, seed: int = 0) -> Iterator[Row]:
    """Yield the rewrites of changed rows as utterances that stay unchanged.

    A share `share` of the changed rows gives its rewrite with its own history, a share `foreign` its rewrite with the
    history of another row of the same language. Every row draws for itself, so the order of rows does not matter.
    """
    histories: dict[bool, list[Row]] = defaultdict(list)
    if foreign:
        for row in rows:
            if any(turn.strip() for turn in row.dialogue.history):
                histories[_is_chinese(row)].append(row)
    for row in rows:
        if row.is_complete or not row.rewrite.strip():
            continue
        rng = random.Random(f"identity/{seed}/{row.id}")
        if rng.random() < share:
            yield Row(f"identity:{row.id}", Dialogue(row.dialogue.history, row.rewrite), row.rewrite)
        if rng.random() < foreign:
            other = _draw_other(histories[_is_chinese(row)], row, rng)
            if other is not None:
                yield Row(f"identity-foreign:{row.id}", Dialogue(other.dialogue.history, row.rewrite), row.rewrite)


def reaction_rows(rows: Sequence[Row], count: int, seed: int = 0) -> Iterator[Row]:
    """Yield reactions ("thanks", 好的) after the dialogues of rows, in turn for each language that the rows have."""
    by_language: dict[bool, list[Row]] = defaultdict(list)
    for row in rows if count else ():
        if row.rewrite.strip():
            by_language[_is_chinese(row)].append(row)
    phrases = {chinese: [text for text in PHRASES if holds_cjk(text) == chinese] for chinese in (False, True)}
    rng = random.Random(f"reactions/{seed}")
    languages = sorted(by_language)
    for number in range(count if languages else 0):
        chinese = languages[number % len(languages)]
        row, utterance = rng.choice(by_language[chinese]), rng.choice(phrases[chinese])
        yield Row(f"reaction-{number}", Dialogue((*row.dialogue.history, row.rewrite), utterance), utterance)


def _is_chinese(row: Row) -> bool:
    return holds_cjk(row.dialogue.utterance + row.rewrite)


def _draw_other(rows: Sequence[Row], row: Row, rng: random.Random) -> Row | None:
    """Return a row with another history; None if no draw finds one."""
    for _ in range(_DRAWS if rows else 0):
        other = rng.choice(rows)
        if other.dialogue.history != row.dialogue.history:
            return other
    return None
