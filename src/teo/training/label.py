"""Rows from plain dialogues: trained models rewrite turns that nobody annotated, and another one learns from them.

`teo label` draws runs of turns from shards, lets every named pipeline of every teacher rewrite the last one, and keeps
the rows on which enough of them agree.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from teo.data.row import Row
from teo.data.writing import write_jsonl
from teo.dialogue import Dialogue
from teo.errors import ConfigError
from teo.loading import open_model
from teo.pipelines import PIPELINES, find_variant, predict, require_roles
from teo.training.pretraining.batches import fitting
from teo.training.pretraining.streams import Corpus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """A teacher, the dialogues it labels, and what is kept."""

    model: str
    """The teacher's folder."""
    output: str
    """The JSONL file that is written."""
    streams: dict[str, float]
    """Token streams (`.npy`, `.npy.xz`, as `teo pretrain --prepare` makes them) and how often each is drawn."""
    tokenizer: str
    """The `tokenizer.json` of the streams."""
    rows: int = 100_000
    """Runs of turns to draw."""
    history: tuple[int, ...] = (2, 2, 3, 4)
    """Numbers of turns before the last one, drawn with equal chance."""
    source: int = 72
    """Tokens of a run, at most."""
    utterance: tuple[int, int] = (2, 18)
    """Tokens of the last turn, at least and at most."""
    variants: tuple[str, ...] = ("fast", "direct")
    """How a teacher rewrites: each teacher gives a rewrite by each of these."""
    others: tuple[str, ...] = ()
    """Folders of further teachers."""
    votes: int = 0
    """How many rewrites must be the same for a row to be kept; 0: all."""
    unchanged: float = 0.25
    """Share of the kept rows whose utterance stays as it is, at most."""
    batch_size: int = 512
    """Rows decoded at once."""
    device: str = "auto"
    """Where the teacher runs."""
    bf16: bool = False
    """Half precision, on CUDA."""
    part: int = 0
    """Which of several processes this is: each draws rows of its own."""
    seed: int = 1
    """Seed of the drawing."""

    def __post_init__(self) -> None:
        for key in ("streams", "history", "variants"):
            if not getattr(self, key):
                raise ConfigError(f"{key}: expected at least one, found none")
        rewrites = len(self.variants) * (1 + len(self.others))
        if not 0 <= self.votes <= rewrites:
            raise ConfigError(
                f"votes: expected 0 to {rewrites}, which is how many rewrites there are; found {self.votes}"
            )


def draw_rows(config: LabelConfig) -> Iterator[Row]:
    """Yield runs of turns, none twice, as rows whose rewrite is still their utterance."""
    tokenizer = Tokenizer.from_file(config.tokenizer)
    corpora = [Corpus.load(Path(path), weight) for path, weight in config.streams.items()]
    weights = [corpus.weight for corpus in corpora]
    rng = Random(f"label/{config.seed}/{config.part}")
    least, most = config.utterance
    seen: set[tuple[int, ...]] = set()
    for _ in range(200 * config.rows):
        turns = rng.choices(corpora, weights)[0].draw_dialogue(rng.random())
        last = rng.randrange(1, len(turns))
        wanted = rng.choice(config.history)
        if not least <= len(turns[last]) <= most:
            continue
        history = fitting(turns[max(0, last - wanted) : last], config.source - len(turns[last]) - 2)
        key = tuple(token for turn in (*history, turns[last]) for token in turn)
        if not history or key in seen:
            continue
        seen.add(key)
        *before, utterance = (tokenizer.decode(turn) for turn in (*history, turns[last]))
        if utterance.strip() and any(turn.strip() for turn in before):
            yield Row(f"{config.part}-{len(seen)}", Dialogue(tuple(before), utterance), utterance)
        if len(seen) == config.rows:
            return


def label(config: LabelConfig) -> int:
    """Write the rows that the teachers agree on and return how many there are."""
    rows = list(draw_rows(config))
    dialogues = [row.dialogue for row in rows]
    rewrites = [texts for folder in (config.model, *config.others) for texts in _rewrite(folder, config, dialogues)]
    needed = config.votes or len(rewrites)
    agreed = []
    for row, *texts in zip(rows, *rewrites, strict=True):
        text, votes = Counter(texts).most_common(1)[0]
        if votes >= needed and text.strip():
            agreed.append(replace(row, rewrite=text))
    kept = keep(agreed, config.unchanged)
    logger.info("%d rows drawn, %d agreed on, %d kept", len(rows), len(agreed), len(kept))
    return write_jsonl(Path(config.output), (row.to_dict() for row in kept))


def _rewrite(folder: str, config: LabelConfig, dialogues: Sequence[Dialogue]) -> list[list[str]]:
    """Return what a teacher makes of the dialogues, by each variant."""
    teacher = open_model(folder, device=config.device, bf16=config.bf16, batch_size=config.batch_size)
    pipelines = [find_variant(name, PIPELINES) for name in config.variants]
    for pipeline in pipelines:
        require_roles(pipeline, PIPELINES, teacher.folder.roles, folder)
    stages = teacher.load({role for pipeline in pipelines for role in pipeline.roles(teacher.folder.roles)})
    return [[prediction.rewrite for prediction in predict(each, stages, dialogues)] for each in pipelines]


def keep(rows: Sequence[Row], unchanged: float) -> list[Row]:
    """Return the changed rows and the first unchanged ones, as many as their share allows."""
    changed = sum(row.rewrite != row.dialogue.utterance for row in rows)
    room = len(rows) if unchanged >= 1 else round(changed * unchanged / (1 - unchanged))
    kept = []
    for row in rows:
        if row.rewrite == row.dialogue.utterance:
            if room <= 0:
                continue
            room -= 1
        kept.append(row)
    return kept
