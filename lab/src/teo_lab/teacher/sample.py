"""Dialogues that a teacher samples together with their rewrites, screened: none twice, few that stay unchanged."""

from __future__ import annotations

import logging
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from teo.files import write_jsonl
from teo_lab.teacher.model import choose_device, load_teacher, read_fields
from teo_lab.teacher.notation import Notation
from teo_lab.teacher.prepare import STYLE
from teo_lab.teacher.screen import ScreenLimits, find_flaw
from teo_lab.teacher.streams import Sampled, SamplingSettings, Streams

FREE = 0.25
"""Share of the sampled dialogues whose first turn is the teacher's own."""
UNCHANGED = 0.4
"""Rows that stay unchanged, at most, for each that changes."""
ROOM = 40
"""Tokens of a text that an opening leaves free, at least."""
WORKERS = 8
_PART = 4096

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How much is sampled."""

    count: int = 500_000
    """Dialogues to start."""
    seconds: float = 150.0
    """Wall clock, at most."""
    length: int = 224
    """Tokens of a dialogue with its rewrite, at most."""
    columns: int = 4096
    """Dialogues sampled at once."""
    seed: int = 1
    """Seed of the openings and of the sampling."""


def sample_rows(teacher: Path, openings: Path, out: Path, size: SampleSize) -> int:
    """Write sampled rows, none twice, and return how many there are."""
    model, notation = load_teacher(teacher)
    torch.manual_seed(size.seed)
    turns = [fields["history"] for fields in read_fields(openings, "history")]
    prompts = draw_prompts(notation, turns, size.count, size.seed)
    prompts = [prompt for prompt in prompts if len(prompt) < size.length - ROOM]
    settings = SamplingSettings(columns=size.columns, length=size.length)
    sampled = Streams(model, notation.marks, prompts, settings, choose_device()).run(seconds=size.seconds)
    check = partial(screen, str(teacher / "tokenizer.json"))
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        return write_jsonl(out, select(pool.imap(check, iter(partial(_take_part, sampled), []))))


def draw_prompts(notation: Notation, openings: Sequence[Sequence[str]], count: int, seed: int) -> list[list[int]]:
    """Return starts of dialogues: some free, the others with the turns of an opening."""
    rng = random.Random(seed)
    free = notation.begin(STYLE)
    starts = [notation.begin(STYLE, turns) for turns in openings]
    return [free if rng.random() < FREE else rng.choice(starts) for _ in range(count)]


def screen(tokenizer: str, texts: Sequence[Sampled]) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return the texts that may be learned, as fields, and how many fell out for what."""
    notation, limits = Notation(Tokenizer.from_file(tokenizer)), ScreenLimits()
    taken, flaws = [], Counter[str]()
    for text in texts:
        read = notation.read(text.ids)
        flaw = "not whole" if read is None else find_flaw(*read, text.logprob, text.lowest, limits)
        flaws[flaw or "taken"] += 1
        if read is not None and flaw is None:
            fields = {"history": list(read[0].history), "utterance": read[0].utterance, "rewrite": read[1]}
            taken.append({**fields, "logprob": round(text.logprob, 3), "lowest": round(text.lowest, 3)})
    return taken, flaws


def select(screened: Iterable[tuple[list[dict[str, Any]], Counter[str]]]) -> Iterator[dict[str, Any]]:
    """Yield the taken rows with an id, none twice, and log what fell out; too many unchanged ones are left out."""
    flaws, seen, room = Counter[str](), set[tuple[str, ...]](), 0.0
    for taken, found in screened:
        flaws += found
        for fields in taken:
            key = (*fields["history"], fields["utterance"])
            unchanged = fields["rewrite"] == fields["utterance"]
            if key not in seen and not (unchanged and room < 1):
                seen.add(key)
                room += -1 if unchanged else UNCHANGED
                yield {"id": f"sampled-{len(seen)}", **fields}
        logger.info("%d written; %s", len(seen), dict(flaws))


def _take_part(sampled: Iterator[Sampled]) -> list[Sampled]:
    return list(islice(sampled, _PART))
