"""Noise: what people type and paste that says nothing, and that the models have not learned to look past.

Odd white space, invisible marks, full-width letters, curly apostrophes, pictures, runs of marks ("???", "..."), a dash
in front, quotation marks around all, and capitals throughout. The model reads a text without them; in the user's own
string they stay.
"""

from __future__ import annotations

import re

from teo.units import holds_cjk

_FULL_WIDTH = frozenset(map(chr, (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))))
_TO_HALF_WIDTH = 0xFEE0
_ODD = re.compile(
    r"[^\S \n]|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]|[\ud800-\udfff]"
    rf"|[{''.join(sorted(_FULL_WIDTH))}]|(?<=[A-Za-z])’(?=[A-Za-z])"
)
"""Odd white space, invisible marks, lone surrogates, full-width letters and digits, curly apostrophes."""
_PICTURE = re.compile(
    "[\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff\U000e0020-\U000e007f\u200d\ufe0f]+"
)
_SPACES = re.compile(r" *(\n) *| {2,}")
_LEAD = re.compile(r"(?:\s|[-–—•*·>]+\s)*")
_TAIL = re.compile(r"[\s.?!。？！…~～]*$")
_QUESTION = re.compile("[?？]")
_TRAILING_OFF = re.compile(r"\s*(?:\.\s?\.|。。|[…~～])")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』"}
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_SMALL = re.compile("[a-z]")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def as_read(text: str) -> str:
    """Return the text in characters that the models know; as many code points as before.

    White space of any kind and invisible marks are spaces, except for line breaks; full-width letters and digits are
    ordinary ones, an apostrophe is straight; a lone surrogate is the replacement character.
    """
    return text if text.isascii() and text.isprintable() else _ODD.sub(_read_odd, text)


def read_turn(turn: str) -> str:
    """Return a turn of the history without noise; one of nothing but pictures keeps them."""
    text = as_read(turn)
    if not text.isascii():
        text = _PICTURE.sub(" ", text)
    text = _SPACES.sub(lambda found: found[1] or " ", text).strip()
    return _calm(text, 3) if text else as_read(turn).strip()


def read_utterance(utterance: str) -> tuple[str, list[int]]:
    """Return an utterance without noise, and where each of its characters stands in the user's own."""
    text = _calm(as_read(utterance).replace("\n", " "), 2)
    quiet = _PICTURE.sub(lambda found: " " * len(found[0]), text)
    lead, tail = _LEAD.match(quiet), _TAIL.search(quiet)
    start, end = lead.end() if lead else 0, tail.start() if tail else len(quiet)
    places = [place for place in range(start, end) if quiet[place] != " " or quiet[place - 1] != " "]
    if places and tail and (mark := _last_mark(tail)) is not None:
        places.append(mark)
    if not places:
        return text, list(range(len(text)))
    if _is_quoted("".join(quiet[place] for place in places)):
        places = places[1:-1]
    return "".join(quiet[place] for place in places), places


def _read_odd(found: re.Match[str]) -> str:
    character = found[0]
    if character in _FULL_WIDTH:
        return chr(ord(character) - _TO_HALF_WIDTH)
    if character == "’":
        return "'"
    return "\ufffd" if "\ud800" <= character <= "\udfff" else " "


def _last_mark(tail: re.Match[str]) -> int | None:
    """Return where the mark stands that ends an utterance, of all that stand at its end; none if it trails off."""
    if question := _QUESTION.search(tail[0]):
        return tail.start() + question.start()
    if _TRAILING_OFF.match(tail[0]) or not tail[0].strip():
        return None
    return tail.start() + len(tail[0]) - len(tail[0].lstrip())


def _is_quoted(text: str) -> bool:
    """Tell whether quotation marks stand around a whole text, and none within."""
    closing = _QUOTES.get(text[0])
    return closing is not None and len(text) > 2 and text[-1] == closing and not {text[0], closing} & set(text[1:-1])


def _calm(text: str, words: int) -> str:
    """Return an English text of nothing but capitals, at least so many words, in small letters."""
    if _SMALL.search(text) or holds_cjk(text) or len(_CAPITALS.findall(text)) < words:
        return text
    return text.translate(_LOWER)
