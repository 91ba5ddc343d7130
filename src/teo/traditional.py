"""Traditional Chinese, read as Simplified Chinese and answered in kind.

The models learn Simplified text. A dialogue with Traditional characters is read in Simplified ones, character by
character, so that positions stay; what a rewrite adds is then written as the dialogue writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from teo.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class _Tables:
    """What traditional.txt says, as `str.translate` takes it."""

    certain: dict[int, str]
    """Characters that only Traditional text has."""
    simplified: dict[int, str]
    """These, and those that mean something else in Simplified text."""
    traditional: dict[int, str]
    """The way back, for characters that the dialogue itself does not have."""


@cache
def _tables() -> _Tables:
    sections: dict[str, str] = {}
    name = ""
    for line in files("teo").joinpath("traditional.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif not line.startswith("#"):
            sections[name] = sections.get(name, "") + line
    pairs = {part: list(zip(text[::2], text[1::2], strict=False)) for part, text in sections.items()}
    certain = {ord(old): new for old, new in pairs["traditional"]}
    back: dict[int, str] = {}
    for old, new in pairs["traditional"]:
        if new not in sections["unchanged"]:
            back.setdefault(ord(new), old)
    return _Tables(certain, {**certain, **{ord(old): new for old, new in pairs["shared"]}}, back)


def read_simplified(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue in Simplified characters, every text as long as before.

    A dialogue without a character that only Traditional text has comes back as it is.
    """
    tables = _tables()
    turns = (*dialogue.history, dialogue.utterance)
    if all(turn.isascii() or turn.translate(tables.certain) == turn for turn in turns):
        return dialogue
    *history, utterance = (turn.translate(tables.simplified) for turn in turns)
    return replace(dialogue, history=tuple(history), utterance=utterance)


def write_in_kind(text: str, dialogue: Dialogue) -> str:
    """Return a Simplified text as a dialogue with Traditional characters would write it.

    What the dialogue has is copied from it, the longest match first; other characters are written as in Taiwan.
    """
    own = "\n".join((*dialogue.history, dialogue.utterance))
    read = own.translate(_tables().simplified)
    written, start = "", 0
    while start < len(text):
        end, found = start, -1
        while end < len(text) and (place := read.find(text[start : end + 1])) >= 0:
            end, found = end + 1, place
        if found < 0:
            written += text[start].translate(_tables().traditional)
            start += 1
        else:
            written += own[found : found + end - start]
            start = end
    return written
