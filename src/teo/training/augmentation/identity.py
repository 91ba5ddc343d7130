"""Complete utterances that must come back as they are: the reference rewrites of other rows, asked again."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.units import holds_cjk


def identity_rows(rows: Sequence[Row], share: float = 0.25, foreign: float = 0.08, seed: int = 0) -> Iterator[Row]:
    """Yield the rewrites of changed rows as utterances to keep.

    A share `share` of the changed rows gives its rewrite with its own history, a share `foreign` its rewrite with the
    history of another row of the same language. Every row draws for itself, so that the order of rows is of no account.
    """
    histories: dict[bool, list[Row]] = defaultdict(list)
    if foreign:
        for row in rows:
            if any(turn.strip() for turn in row.dialogue.history):
                histories[holds_cjk(row.dialogue.utterance + row.rewrite)].append(row)
    for row in rows:
        if row.is_complete or not row.rewrite.strip():
            continue
        rng = random.Random(f"identity/{seed}/{row.id}")
        if rng.random() < share:
            yield Row(f"identity:{row.id}", Dialogue(row.dialogue.history, row.rewrite), row.rewrite)
        if rng.random() < foreign:
            others = histories[holds_cjk(row.dialogue.utterance + row.rewrite)]
            other = _draw_other(others, row, rng)
            if other is not None:
                yield Row(f"identity-foreign:{row.id}", Dialogue(other.dialogue.history, row.rewrite), row.rewrite)


def _draw_other(rows: Sequence[Row], row: Row, rng: random.Random) -> Row | None:
    """Return a row with another history; none where ten draws find none."""
    for _ in range(10 if rows else 0):
        other = rng.choice(rows)
        if other.dialogue.history != row.dialogue.history:
            return other
    return None
