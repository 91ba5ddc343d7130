"""Pretraining text with free licences alone: shards of dialogues from the collected corpora and from our own rows.

The corpora come with a page that names every source, its licence, and the clean line ranges of older files
(`CLEAN.md` beside them). Long paragraphs are cut at sentence ends, so that several fit into a window. A share of the
Chinese dialogues comes in Traditional characters too, converted by OpenCC (the package `opencc`).
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from teo.errors import DataError
from teo.files import open_text, write_jsonl
from teo_lab.rows.choices import Language
from teo_lab.rows.dialogues import hand_written_rows
from teo_lab.rows.traditional import open_converters

Turns = list[str]

LONGEST: dict[Language, int] = {"en": 900, "zh": 260}
"""Characters of a turn; a longer one is cut."""
CLEAN_LINES: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {
    "zh_smile": ("zh_dialogues_2", ((1, 10**9),)),
    "zh_smile_more": ("zh_dialogues", ((233_077, 245_019),)),
    "zh_woz": ("zh_dialogues", ((43_875, 45_775),)),
    "en_dialogues": ("en_dialogues", ((1, 56_322),)),
    "en_dialogues_2": ("en_dialogues_2", ((1, 34_453), (93_501, 98_778))),
}
"""By shard: the file and the lines of it that are clean."""
SPOKEN = {
    "zh": ("audreyt/", "CAS-SIAT-XinHai/", "SmartFlowAI/", "thu-coai/ConvLab-2", "DRCKnowledgeTeam/", "ymcui/cmrc2018"),
    "en": ("audreyt/", "thechangelog/", "bitcointranscripts/", "thu-coai/ConvLab-2", "gunthercox/", "microsoft/"),
}
"""Sources of the clean files that are talk; novels count as talk too, all others as prose."""
_NOVELS = ("standardebooks", "shjwudp/shu")
_TRADITIONAL = {"zh_talk": 0.06, "zh_smile": 0.06, "own_zh": 0.14, "zh_woz": 0.2}
"""Share of each shard's dialogues that come in Traditional characters too."""
_ENDS = ("。", "！", "？", "；", ". ", "? ", "! ", "; ")

logger = logging.getLogger(__name__)


def write_clean_shards(corpora: Path, sampled: Path, out: Path, seed: int = 5) -> dict[str, int]:
    """Write the shards into a folder and return how many dialogues each has.

    `sampled` is the file of dialogues that a teacher wrote; those that start with our own turns or freely are taken.
    """
    out.mkdir(parents=True, exist_ok=True)
    shards: dict[str, list[Turns]] = {}
    for language, longest in LONGEST.items():
        talk, prose = _read_clean(corpora / f"{language}_clean.jsonl.xz", language)
        shards |= {f"{language}_talk": talk, f"{language}_prose": prose}
        written = hand_written_rows(language)
        shards[f"own_{language}"] = [clip([*row.history, row.rewrite], longest) for row in written]
    for name, (file, ranges) in CLEAN_LINES.items():
        longest = LONGEST["zh" if name.startswith("zh") else "en"]
        found = [clip(row["turns"], longest) for row in _lines(corpora / f"{file}.jsonl.xz", ranges)]
        shards.setdefault(name.removesuffix("_more"), []).extend(found)
    rows = (row for row in _lines(sampled) if row["opening"] in ("own", "free"))
    shards["en_sampled"] = [[*row["history"], row["rewrite"]] for row in rows]
    rng = random.Random(seed)
    shards["zh_trad"] = list(_traditional(shards, rng))
    for dialogues in shards.values():
        rng.shuffle(dialogues)
    return {name: _write(out / f"{name}.jsonl", dialogues) for name, dialogues in shards.items()}


def clip(turns: Iterable[str], longest: int) -> Turns:
    """Return the turns, long ones in parts that end with a sentence if one ends in time."""
    parts: Turns = []
    for turn in turns:
        rest = turn.strip()
        while len(rest) > longest:
            end = max(rest.rfind(mark, longest // 3, longest) for mark in _ENDS)
            cut = end + 1 if end >= 0 else longest
            parts.append(rest[:cut].strip())
            rest = rest[cut:].strip()
        if rest:
            parts.append(rest)
    return parts


def _read_clean(file: Path, language: Language) -> tuple[list[Turns], list[Turns]]:
    """Return the dialogues and the prose of a clean file."""
    talk: list[Turns] = []
    prose: list[Turns] = []
    for row in _lines(file):
        source = str(row["source"])
        spoken = source.startswith(SPOKEN[language]) or any(name in source for name in _NOVELS)
        (talk if spoken else prose).append(clip(row["turns"], LONGEST[language]))
    return talk, prose


def _traditional(shards: dict[str, list[Turns]], rng: random.Random) -> Iterator[Turns]:
    draw_converter = open_converters()
    for name, share in _TRADITIONAL.items():
        for turns in rng.sample(shards[name], int(share * len(shards[name]))):
            convert = draw_converter(rng)
            yield [convert(turn) for turn in turns]


def _lines(file: Path, ranges: Sequence[tuple[int, int]] = ((1, 10**9),)) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file, those of some lines only."""
    if not file.is_file():
        raise DataError(f"{file}: no such file; expected a shard of dialogues")
    with open_text(file) as lines:
        for number, line in enumerate(lines, 1):
            if any(first <= number <= last for first, last in ranges):
                yield json.loads(line)


def _write(file: Path, dialogues: Iterable[Turns]) -> int:
    count = write_jsonl(file, ({"turns": turns} for turns in dialogues if len(turns) > 1))
    logger.info("%s: %d dialogues", file.name, count)
    return count
