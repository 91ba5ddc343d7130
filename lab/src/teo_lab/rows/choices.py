"""The lists that rows are made from: assistant replies by topic, and reactions, in text files of lab/rows.

A file has sections: a line `[name]`, then one text a line; blank lines are skipped.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from teo.errors import DataError
from teo.units import holds_cjk
from teo_lab.paths import ROWS

Language = Literal["en", "zh"]
LONG_REPLY = {"en": 60, "zh": 90}
"""Words (English) or characters (Chinese) that a long reply has at least."""


def language_of(text: str) -> Language:
    """Return the language of a text."""
    return "zh" if holds_cjk(text) else "en"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text; a tilde stands for a space inside one."""
    return frozenset(word.replace("~", " ") for word in text.split())


@functools.cache
def read_sections(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the texts of every section of a list file."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            current = sections.setdefault(text[1:-1], [])
        elif text and current is None:
            raise DataError(f"{path}:{number}: expected a section such as [generic] first, found {text[:40]!r}")
        elif text and current is not None:
            current.append(text)
    return {name: tuple(texts) for name, texts in sections.items()}


def replies(language: Language) -> Mapping[str, tuple[str, ...]]:
    """Return the assistant replies of a language by topic."""
    return read_sections(ROWS / "replies" / f"{language}.txt")


def reactions(language: Language) -> tuple[str, ...]:
    """Return the reactions of a language: thanks, greetings, agreement and the like."""
    return read_sections(ROWS / "reactions.txt")[language]


def draw_reply(language: Language, topic: str, rng: random.Random, *, long: float = 0.08) -> str:
    """Return an assistant reply to a request of a topic; a share of `long` replies runs over several sentences."""
    lists = replies(language)
    opening = rng.choice(lists.get(topic) or lists["generic"] if rng.random() < 0.75 else lists["generic"])
    if rng.random() >= long:
        return opening
    sentences = list(lists["sentences"])
    rng.shuffle(sentences)
    reply = opening
    while sentences and reply_length(reply, language) < LONG_REPLY[language]:
        reply = f"{reply} {sentences.pop()}" if language == "en" else reply + sentences.pop()
    return reply


def reply_length(text: str, language: Language) -> int:
    """Return the length of a text: words in English, characters in Chinese."""
    return len(text.split()) if language == "en" else len(text)


def draw_reaction(language: Language, rng: random.Random) -> str:
    """Return a reaction as somebody would type it: with or without capital and final mark."""
    text = rng.choice(reactions(language))
    if text.endswith(("?", "？")):
        return text[:1].upper() + text[1:] if language == "en" and rng.random() < 0.5 else text
    if language == "en":
        if rng.random() < 0.5:
            text = text[:1].upper() + text[1:]
        return text + rng.choice(("", "", ".", "!", "!"))
    return text + rng.choice(("", "", "", "。", "！", "~"))
