"""A long turn in part: its head and its end, cut at the ends of sentences where there are some, else between units.

An answer usually names its topic at the head; what it comes to, or the last item of its list, stands at the end.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from teo.units import split_units

HEAD_SHARE = 0.8
"""The share of the room that the head gets.

On rows made of frames with long answers (`benchmarks/long_turns.py`) more of what the reference needs is read the
larger the head is; CANARD's development rows and the everyday ones do not tell the shares apart. The end keeps a fifth,
because those rows hardly ever ask for it and users do ("the last one").
"""
OMISSION = " … "
"""What stands in the place of the text left out."""

_BORDER = re.compile(r"[.!?;…]+[\"'”’)\]*]*(?=\s)|[。！？；…]+[”’」』）】]*|\n+")
"""The end of a sentence, English or Chinese, or of a line."""
_LEAST_SHARE = 0.5
"""A part is cut back to the end of a sentence only where so much of it remains: a sentence may be very long."""
_CHARACTERS_PER_TOKEN = 8
"""How much text is looked at for each token of room: work is bounded, however long the text."""


def take_excerpt(text: str, measure: Callable[[str], int], room: int) -> tuple[str, int]:
    """Return the head and the end of a text, at most `room` tokens, and how many characters are left out.

    `measure` gives a text's length in tokens. A text that fits comes back as it is; where not even a unit fits, nothing
    of it does.
    """
    if measure(text) <= room:
        return text, 0
    window = max(0, room) * _CHARACTERS_PER_TOKEN
    share = int((room - measure(OMISSION)) * HEAD_SHARE)
    head = _take_head(text[:window], lambda part: measure(part) <= share)
    end = _take_end(text[len(head) :][-window:], lambda part: measure(head + OMISSION + part) <= room)
    if head and end:
        return head + OMISSION + end, len(text) - len(head) - len(end)
    head = _take_head(text[:window], lambda part: measure(part) <= room)
    part = head or _take_end(text[-window:] if window else "", lambda part: measure(part) <= room)
    return part, len(text) - len(part)


def _take_head(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest beginning that fits, cut back to the end of a sentence where one is near."""
    units = split_units(text)
    count = bisect_left(range(1, len(units) + 1), True, key=lambda k: not fits(text[: units[k - 1].end]))
    longest = units[count - 1].end if count else 0
    borders = [len(text[: border.end()].rstrip()) for border in _BORDER.finditer(text) if border.end() <= longest + 1]
    near = [place for place in borders if longest * _LEAST_SHARE <= place <= longest]
    return text[: near[-1] if near else longest]


def _take_end(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest ending that fits, from the beginning of a sentence where one is near."""
    units = split_units(text)
    first = bisect_left(range(len(units)), True, key=lambda k: fits(text[units[k].start :]))
    start = units[first].start if first < len(units) else len(text)
    longest = len(text) - start
    borders = [len(text) - len(text[border.end() :].lstrip()) for border in _BORDER.finditer(text)]
    near = [place for place in borders if place >= start and len(text) - place >= longest * _LEAST_SHARE]
    return text[near[0] if near else start :]
