"""Rules that keep an utterance as it is without asking a model, and a user's own words and patterns to keep.

The rules, in order:

1. it is blank (`empty`);
2. nothing was said before it: no history, or only blank turns (`no-history`);
3. it is among the user's own words or patterns to keep (`reaction`);
4. it has no letter and no digit: emoji, punctuation (`reaction`);
5. it is only links or addresses, or only code: a fenced block, or one quoted in back ticks (`code`);
6. it only reacts: greetings, thanks, laughter, hesitation, agreement, good-byes (`reaction`; `teo.reactions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.reactions import is_reaction

Reason = Literal["no-history", "empty", "reaction", "code", "too-long", "complete", "unsure"]
"""Why an utterance is kept: by a rule, because it does not fit, because no change or an unsure one was proposed."""

_LONGEST_RULED = 4096
"""Longer utterances are not matched against patterns; nothing that long is a greeting or a link."""
_LINK = re.compile(r"[a-z][a-z0-9+.-]*://\S+|www\.\S+|mailto:\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"```.*```|`[^`]+`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeepList:
    """Utterances that a user wants kept: whole ones in lower case, without marks around them, and patterns."""

    words: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> KeepList:
        """Return the list of some entries: a plain one is a whole utterance, `/.../` is a regular expression.

        Case does not matter in either, nor do marks around a whole utterance. An expression may match anywhere; it is
        searched for in the utterance without white space around it.
        """
        if isinstance(entries, str) or not isinstance(entries, Iterable):
            raise InputError("keep: expected a list of words and /patterns/, found something else; pass keep=['...']")
        words, patterns = set(), []
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                raise InputError(f"keep: expected words and /patterns/, found {entry!r}")
            text = entry.strip()
            if len(text) > 2 and text[0] == text[-1] == "/":
                patterns.append(_compile(text))
            else:
                words.add(_plain(text))
        return cls(frozenset(words), tuple(patterns))

    def __contains__(self, utterance: str) -> bool:
        text = utterance.strip()
        return _plain(text) in self.words or any(pattern.search(text) for pattern in self.patterns)


NOTHING = KeepList()
"""The list of a user who has no words to keep."""


def read_keep_file(path: str | Path) -> list[str]:
    """Return the entries of a file for `keep`: one on a line; blank lines and lines that begin with # do not count."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; give a file of words and /patterns/") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected text in UTF-8, found something else") from None
    entries = []
    for number, line in enumerate(lines, start=1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            try:
                KeepList.of([entry])
            except InputError as error:
                raise InputError(f"{path}:{number}: {error}") from None
            entries.append(entry)
    return entries


def reason_to_keep(dialogue: Dialogue, keep: KeepList = NOTHING) -> Reason | None:
    """Return the rule that keeps an utterance without a model; None where the model is to be asked."""
    text = dialogue.utterance.strip()
    if not text:
        return "empty"
    if not any(turn.strip() for turn in dialogue.history):
        return "no-history"
    if len(text) > _LONGEST_RULED:
        return None
    if text in keep or not any(map(str.isalnum, text)):
        return "reaction"
    if _CODE.fullmatch(text) or all(map(_LINK.fullmatch, text.split())):
        return "code"
    return "reaction" if is_reaction(text) else None


def _plain(text: str) -> str:
    """Return a text in lower case without marks around it; marks alone are the text."""
    inside = [place for place, character in enumerate(text) if character.isalnum()]
    return (text[inside[0] : inside[-1] + 1] if inside else text).casefold()


def _compile(entry: str) -> re.Pattern[str]:
    try:
        return re.compile(entry[1:-1], re.IGNORECASE)
    except re.error as error:
        raise InputError(f"keep: {entry} is not a regular expression ({error})") from None
