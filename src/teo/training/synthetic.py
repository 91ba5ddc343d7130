"""A copy task with the shape of the real one: every rewrite follows from the dialogue, every word is in it.

A first turn says who likes what, a second answers, and the utterance leaves out what was named (an insertion), says
it by a pronoun (a replacement), both, or neither. A model that reads the dialogue can solve every row, one that
ignores the history none but the complete ones.
"""

from __future__ import annotations

import random
from pathlib import Path

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.files import write_jsonl

SPLIT_ROWS = {"train": 2000, "dev": 100, "test": 200}
_NAMES = "anna ben carla david emma felix greta hugo iris jonas karin leo mona nils olga paul rosa sven tina ugo vera"
_THINGS = "apples books cars dogs eggs films games hats iron jazz kites lamps maps nuts opera pears quilts rings tea"
_PLACES = "athens berlin cairo dublin essen florence geneva hamburg izmir jena kiel lima munich nice oslo"


def generate_rows(count: int, seed: int = 0, ambiguous: float = 0.0) -> list[Row]:
    """Return rows of the copy task; equal seeds give equal rows, and no dialogue occurs twice.

    A share of `ambiguous` rows (their ids start with "ambiguous") cannot be solved from the dialogue: only the
    operations say which of two people is meant. A stage 2 that gets them right reads its operations.
    """
    rng = random.Random(f"synthetic/{seed}")
    rows: dict[Dialogue, Row] = {}
    while len(rows) < count:
        unclear = rng.random() < ambiguous
        dialogue, rewrite = _draw_ambiguous(rng) if unclear else _draw(rng)
        kind = "ambiguous" if unclear else "clear"
        rows.setdefault(dialogue, Row(f"{kind}-{seed}-{len(rows)}", dialogue, rewrite))
    return list(rows.values())


def _draw_ambiguous(rng: random.Random) -> tuple[Dialogue, str]:
    first, second = rng.sample(_NAMES.split(), 2)
    thing, other = rng.sample(_THINGS.split(), 2)
    dialogue = Dialogue((f"{first} likes {thing}", f"{second} likes {other}"), "did he call")
    return dialogue, f"did {rng.choice((first, second))} call"


def _draw(rng: random.Random) -> tuple[Dialogue, str]:
    name, thing, place = (rng.choice(words.split()) for words in (_NAMES, _THINGS, _PLACES))
    history = (f"{name} likes {thing}", f"i saw {name} in {place}")
    utterance, rewrite = rng.choice(
        (
            ("when did he go there", f"when did {name} go there"),
            ("does he like it", f"does {name} like {thing}"),
            ("why", f"why {name} likes {thing}"),
            ("is it nice", f"is it nice in {place}"),
            ("i know that he does", f"in {place} i know that {name} does"),
            ("what are you doing", "what are you doing"),
        )
    )
    return Dialogue(history, utterance), rewrite


def write_rows(folder: Path, seed: int = 0, rows: dict[str, int] | None = None) -> Path:
    """Write train.jsonl, dev.jsonl and test.jsonl of the copy task into a folder, which is returned."""
    counts = rows or SPLIT_ROWS
    drawn = generate_rows(sum(counts.values()), seed)
    folder.mkdir(parents=True, exist_ok=True)
    reached = 0  # the splits follow each other in one draw, so no dialogue is in two of them
    for split, count in counts.items():
        write_jsonl(folder / f"{split}.jsonl", (row.to_dict() for row in drawn[reached : reached + count]))
        reached += count
    return folder
