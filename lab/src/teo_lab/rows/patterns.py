r"""Patterns: texts with slots and choices, filled consistently within one template.

`{city}` is a slot, `{city2}` another entry of the same list, `{person.him}` an attribute, `{^film}` the value with a
capital. `(a|b)` is a choice. Choices with equal text are drawn once. `(1:a|b)` is drawn apart from `(2:a|b)`.
`(k=a|b)` names a choice: `(k)` repeats its text, and `(k:c|d)` takes the alternative with the same number. `\n` is a
line break.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from teo.errors import DataError
from teo_lab.rows.words import Entry, WordList

_SLOT = re.compile(r"\{(?P<capital>\^?)(?P<key>(?P<name>[^\W\d]\w*?)\d*)(?:\.(?P<attribute>\w+))?\}")
_MARK = re.compile(r"[{}()|]")
_PAREN = re.compile(r"[()]")
_BAR_OR_PAREN = re.compile(r"[()|]")
_NAME = re.compile(r"(?P<name>[a-z]\w*)=")
_LABEL = re.compile(r"\d:(?!\d)")
_PARALLEL = re.compile(r"(?P<name>[a-z]\w*):(?!//)")
_DISTINCT_TRIES = 30


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for an entry of a word list."""

    list_name: str
    key: str
    attribute: str | None
    capital: bool

    def text(self, entry: Entry) -> str:
        """Return what the entry puts here."""
        text = entry.text(self.attribute)
        return text[:1].upper() + text[1:] if self.capital else text


@dataclass(frozen=True, slots=True)
class Choice:
    """A place for one of several patterns; choices with equal keys take the alternative of the same number."""

    key: str
    options: tuple[Pattern, ...]


Pattern = tuple["str | Slot | Choice", ...]


@dataclass(slots=True)
class Filling:
    """What has been drawn for one template: the alternative of each choice, the entry of each slot."""

    picks: dict[str, int] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def copy(self) -> Filling:
        """Return a filling that can go its own way."""
        return Filling(dict(self.picks), dict(self.entries))


class Parser:
    """Parses the texts of one template, which share the names of their choices."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._named: dict[str, Choice] = {}

    def parse(self, text: str) -> Pattern:
        """Return the pattern of a text."""
        nodes: list[str | Slot | Choice] = []
        position = 0
        text = text.replace("\\n", "\n")
        while position < len(text):
            character = text[position]
            if character == "{":
                slot, position = self._slot(text, position)
                nodes.append(slot)
            elif character == "(":
                end = self._closing(text, position)
                nodes.append(self._choice(text[position + 1 : end]))
                position = end + 1
            elif character in ")|}":
                raise self._error(f"found {character!r} outside a choice or slot in {text!r}", "balance ( ) and { }")
            else:
                mark = _MARK.search(text, position)
                end = mark.start() if mark else len(text)
                nodes.append(text[position:end])
                position = end
        return tuple(nodes)

    def _slot(self, text: str, position: int) -> tuple[Slot, int]:
        match = _SLOT.match(text, position)
        if match is None:
            raise self._error(
                f"found a slot that cannot be read in {text[position:]!r}", "write {list}, {list2.attribute}"
            )
        return Slot(match["name"], match["key"], match["attribute"], bool(match["capital"])), match.end()

    def _closing(self, text: str, start: int) -> int:
        depth = 0
        for mark in _PAREN.finditer(text, start):
            depth += 1 if mark[0] == "(" else -1
            if not depth:
                return mark.start()
        raise self._error(f"found '(' without ')' in {text!r}", "close the choice")

    def _choice(self, inside: str) -> Choice:
        if inside in self._named:
            return self._named[inside]
        key, body, name = inside, inside, None
        if match := _NAME.match(inside):
            name = key = match["name"]
            body = inside[match.end() :]
        elif match := _LABEL.match(inside):
            body = inside[match.end() :]
        elif (match := _PARALLEL.match(inside)) and match["name"] in self._named:
            key, body = match["name"], inside[match.end() :]
        options = tuple(self.parse(option) for option in _split(body))
        if len(options) == 1 and key == inside:
            raise self._error(f"found ({inside}), which has one alternative and no name here", "write (a|b)")
        if name is None and key in self._named and len(options) != len(self._named[key].options):
            found, expected = len(options), len(self._named[key].options)
            raise self._error(f"found {found} alternatives in ({inside})", f"write {expected}, as many as '{key}' has")
        choice = Choice(key, options)
        if name is not None and self._named.get(name, choice) != choice:
            raise self._error(f"found two choices named {name!r}", "give each a name of its own")
        if name is not None:
            self._named[name] = choice
        return choice

    def _error(self, found: str, remedy: str) -> DataError:
        return DataError(f"{self._where}: {found}; {remedy}")


def _split(body: str) -> list[str]:
    """Return the alternatives of a choice; bars inside nested choices do not count."""
    parts, depth, start = [], 0, 0
    for mark in _BAR_OR_PAREN.finditer(body):
        depth += {"(": 1, ")": -1, "|": 0}[mark[0]]
        if mark[0] == "|" and not depth:
            parts.append(body[start : mark.start()])
            start = mark.end()
    return [*parts, body[start:]]


def slots_of(pattern: Pattern) -> Iterator[Slot]:
    """Yield every slot, those inside choices too."""
    for node in pattern:
        if isinstance(node, Slot):
            yield node
        elif isinstance(node, Choice):
            for option in node.options:
                yield from slots_of(option)


def count_wordings(patterns: tuple[Pattern, ...]) -> float:
    """Return the logarithm of how many ways the choices can fall, whatever fills the slots."""
    sizes: dict[str, int] = {}

    def visit(pattern: Pattern) -> None:
        for node in pattern:
            if isinstance(node, Choice):
                sizes[node.key] = len(node.options)
                for option in node.options:
                    visit(option)

    for pattern in patterns:
        visit(pattern)
    return sum(math.log(size) for size in sizes.values())


def fill(pattern: Pattern, filling: Filling, words: Mapping[str, WordList], rng: random.Random) -> str:
    """Return the text of a pattern; what is drawn anew is noted in the filling."""
    parts = []
    for node in pattern:
        if isinstance(node, str):
            parts.append(node)
        elif isinstance(node, Slot):
            if node.key not in filling.entries:
                filling.entries[node.key] = _draw_entry(words[node.list_name], filling, rng)
            parts.append(node.text(filling.entries[node.key]))
        else:
            if node.key not in filling.picks:
                filling.picks[node.key] = rng.randrange(len(node.options))
            parts.append(fill(node.options[filling.picks[node.key]], filling, words, rng))
    return "".join(parts)


def _draw_entry(words: WordList, filling: Filling, rng: random.Random) -> Entry:
    """Return an entry that differs from those drawn before, and holds none of them as a part if that can be had."""
    taken = [entry.value.lower() for entry in filling.entries.values()]
    entry = rng.choice(words.entries)
    for _ in range(_DISTINCT_TRIES):
        value = entry.value.lower()
        if not any(value in other or other in value for other in taken):
            return entry
        entry = rng.choice(words.entries)
    others = [entry for entry in words.entries if entry.value.lower() not in taken]
    return rng.choice(others or words.entries)


def every_fill(pattern: Pattern, words: Mapping[str, WordList], filling: Filling) -> Iterator[tuple[str, Filling]]:
    """Yield every text of a pattern that agrees with the filling, each with what was drawn for it."""
    if not pattern:
        yield "", filling
        return
    node, rest = pattern[0], pattern[1:]
    if isinstance(node, str):
        for text, drawn in every_fill(rest, words, filling):
            yield node + text, drawn
    elif isinstance(node, Slot):
        known = filling.entries.get(node.key)
        for entry in (known,) if known else words[node.list_name].entries:
            trial = filling.copy()
            trial.entries[node.key] = entry
            for text, drawn in every_fill(rest, words, trial):
                yield node.text(entry) + text, drawn
    else:
        numbers = (filling.picks[node.key],) if node.key in filling.picks else range(len(node.options))
        for number in numbers:
            trial = filling.copy()
            trial.picks[node.key] = number
            yield from every_fill(node.options[number] + rest, words, trial)
