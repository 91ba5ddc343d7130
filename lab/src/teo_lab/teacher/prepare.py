"""What a teacher needs: rows to learn, each with its source, and openings with which sampled dialogues start.

The teacher learns which style is whose, and samples in the style of the hand-written dialogues.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from teo.data.row import Row
from teo.files import write_jsonl
from teo.units import holds_cjk
from teo_lab.pretraining.streams import read_dialogues
from teo_lab.rows.build import make_rows, read_lenders
from teo_lab.rows.dialogues import hand_written_rows
from teo_lab.rows.requests import read_requests
from teo_lab.rows.settings import RowsRecipe

STYLE = "written"
"""The source of the hand-written dialogues, as the teacher reads it."""
REQUESTS, RUNS, WHOLE = 45_000, 70_000, 4
"""Openings that are single requests, and runs of turns of real dialogues; copies of a whole hand-written history."""
LONGEST = 420
"""Characters of a run, at most."""


def prepare(recipe: RowsRecipe, folder: Path, shards: Sequence[Path] = (), seed: int = 1) -> tuple[int, int]:
    """Write rows.jsonl and openings.jsonl into a folder and return how many there are of each."""
    folder.mkdir(parents=True, exist_ok=True)
    lenders = read_lenders(recipe)
    names = {str(number): data.name for number, data in enumerate(recipe.data)} | {"dialogues": STYLE}
    rows = [row for row in [*lenders, *make_rows(recipe, lenders)] if _is_english(row)]
    kinds = [re.split("[:-]", row.id)[0] for row in rows]
    sourced = ({**row.to_dict(), "source": names.get(kind, kind)} for row, kind in zip(rows, kinds, strict=True))
    written = write_jsonl(folder / "rows.jsonl", sourced)
    rng = random.Random(seed)
    openings = list(draw_openings(recipe.requests, shards, rng))
    rng.shuffle(openings)
    return written, write_jsonl(folder / "openings.jsonl", ({"history": turns} for turns in openings))


def _is_english(row: Row) -> bool:
    return not holds_cjk("".join((*row.dialogue.history, row.rewrite)))


def draw_openings(requests: str, shards: Sequence[Path], rng: random.Random) -> Iterator[list[str]]:
    """Yield single requests, hand-written histories (whole, and their first turn), and runs of turns of shards."""
    texts = [request.text for request in read_requests(Path(requests), "en")] if requests else []
    yield from ([text] for text in rng.sample(texts, min(REQUESTS, len(texts))))
    for history in dict.fromkeys(row.history for row in hand_written_rows("en")):
        yield from [list(history)] * WHOLE
        yield list(history[:1])
    runs = [turns for shard in shards for turns in _runs(shard, rng)]
    yield from rng.sample(runs, min(RUNS, len(runs)))


def _runs(shard: Path, rng: random.Random) -> Iterator[list[str]]:
    for turns in read_dialogues(shard):
        first = rng.randrange(len(turns))
        run = turns[first : first + rng.choice((1, 2, 2, 3, 4))]
        if sum(map(len, run)) < LONGEST and all(turn.strip() for turn in run):
            yield run
