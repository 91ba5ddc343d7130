"""Text <-> units: words for alphabetic scripts, characters for Chinese, Japanese and Korean.

A unit is what an edit moves and what a metric counts. Every unit knows its code-point span, so edits made on units
give back the original string exactly; white space lies between units and is never one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Scripts whose single characters are units, as the inside of a regular-expression class."""

# What stays with the character before it: combining marks, variation selectors, skin tones, tag characters.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0951-\u0957"
    "\u0981-\u0983\u09bc\u09be-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0abc-\u0acd\u0b3c-\u0b4d\u0bbe-\u0bcd\u0c3e-\u0c4d"
    "\u0cbc-\u0ccd\u0d3e-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f"
    "\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
)
_MARK = f"[{_MARKS}]*"
_LETTER = rf"(?:(?![{CJK}])\w{_MARK})"
_PICTURE = r"(?!\s)" "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]"

_UNIT = re.compile(
    rf"""
    (?P<cjk> [{CJK}]{_MARK} )
  | (?P<clitic> ['’](?:s|m|d|re|ve|ll)(?!\w) )               # it | 's
  | (?P<number> \d+(?:[.,:/]\d+)+ )                           # 3.5  1,000  12:30
  | (?P<negated> {_LETTER}+?(?=n['’]t(?!\w)) | n['’]t(?!\w) )  # do | n't
  | (?P<word> {_LETTER}+(?:-{_LETTER}+)* )                    # good-bye
  | (?P<flag> [\U0001f1e6-\U0001f1ff]{{2}} )
  | (?P<picture> {_PICTURE}{_MARK}(?:\u200d{_PICTURE}{_MARK})* )
  | (?P<other> \S{_MARK} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_IS_CJK = re.compile(f"[{CJK}]")
_OPENING = frozenset("([{<“‘«《「『【（〔〈$£€#@")
_CLOSING = frozenset(")]}>”’»》」』】）〕〉.,;:!?%…，。；：！？、")


@dataclass(frozen=True, slots=True)
class Unit:
    """One word, character or punctuation mark, and where it stands in the text (code points)."""

    text: str
    start: int
    end: int


def split_units(text: str) -> list[Unit]:
    """Return the units of a text in order; only white space lies outside them."""
    return [Unit(match.group(), match.start(), match.end()) for match in _UNIT.finditer(text)]


def unit_texts(text: str) -> list[str]:
    """Return the units of a text as plain strings."""
    return [match.group() for match in _UNIT.finditer(text)]


def scoring_units(text: str) -> list[str]:
    """Return the units as the field scores them: lower-cased, characters for Chinese, words for English."""
    return unit_texts(text.lower())


def is_exact_match(text: str, reference: str) -> bool:
    """Tell whether a rewrite is its reference, as EM counts it: unit for unit, lower-cased."""
    return scoring_units(text) == scoring_units(reference)


def is_cjk(character: str) -> bool:
    """Tell whether a character belongs to a script that is written without spaces."""
    return _IS_CJK.match(character) is not None


def holds_cjk(text: str) -> bool:
    """Tell whether a text has a character of a script that is written without spaces."""
    return _IS_CJK.search(text) is not None


def needs_space(left: str, right: str) -> bool:
    """Tell whether a writer would put a space between these two texts."""
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return False
    before, after = left[-1], right[0]
    if is_cjk(before) or is_cjk(after):
        return False
    if before in _OPENING or after in _CLOSING:
        return False
    clitic = _UNIT.match(right)
    return clitic is None or clitic.lastgroup != "clitic"


def join_units(units: list[str]) -> str:
    """Return the units as one text with the spaces a writer would put; for texts that came without a layout."""
    text = ""
    for unit in units:
        text += f" {unit}" if needs_space(text, unit) else unit
    return text


def replace_surrogates(text: str) -> str:
    """Return the text with each lone surrogate as the replacement character; as many code points as before."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text
