"""A long turn in part: its head and its end, cut at the ends of sentences where there are some, else between units.

An answer usually names its topic at the head; what it comes to, or the last item of its list, stands at the end.
"""

from __future__ import annotations

import re
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
    head = _take_head(text[:window], measure, share)
    end = _take_end(text[len(head) :][-window:], lambda part: measure(head + OMISSION + part), room)
    if head and end:
        return head + OMISSION + end, len(text) - len(head) - len(end)
    head = _take_head(text[:window], measure, room)
    part = head or _take_end(text[-window:] if window else "", measure, room)
    return part, len(text) - len(part)


def _take_head(text: str, measure: Callable[[str], int], room: int) -> str:
    """Return the longest beginning that fits, cut back to the end of a sentence where one is near."""
    units = split_units(text)
    count = _count_fitting(len(units), lambda k: measure(text[: units[k - 1].end]), room)
    longest = units[count - 1].end if count else 0
    borders = [len(text[: border.end()].rstrip()) for border in _BORDER.finditer(text) if border.end() <= longest + 1]
    near = [place for place in borders if longest * _LEAST_SHARE <= place <= longest]
    return text[: near[-1] if near else longest]


def _take_end(text: str, measure: Callable[[str], int], room: int) -> str:
    """Return the longest ending that fits, from the beginning of a sentence where one is near."""
    units = split_units(text)
    count = _count_fitting(len(units), lambda k: measure(text[units[-k].start :]), room)
    start = units[-count].start if count else len(text)
    longest = len(text) - start
    borders = [len(text) - len(text[border.end() :].lstrip()) for border in _BORDER.finditer(text)]
    near = [place for place in borders if place >= start and len(text) - place >= longest * _LEAST_SHARE]
    return text[near[0] if near else start :]


def _count_fitting(count: int, measure: Callable[[int], int], room: int) -> int:
    """Return the most units, of `count`, that take no more than `room` tokens.

    Every guess is a text to tokenize, so the next one is made from what the last ones took: half as many as halving.
    """
    fits, fills = 0, 0
    over, exceeds = count + 1, 0  # the fewest units known not to fit, and their tokens once they are known
    guess = min(count, max(1, room))
    while over - fits > 1:
        tokens = measure(guess)
        if tokens <= room:
            fits, fills = guess, tokens
        else:
            over, exceeds = guess, tokens
        # A little beyond the likeliest place, so that the next guess bounds it from the other side.
        beyond = (over - fits) // 16 + 1 if tokens <= room else -((over - fits) // 16) - 1
        share = (room - fills) / (exceeds - fills) if exceeds else (room - fills) / max(1, fills)
        guess = fits + round((over - fits if exceeds else fits) * share) + beyond
        guess = min(over - 1, max(fits + 1, guess))
    return fits
