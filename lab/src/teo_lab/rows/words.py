"""Word lists: what the slots of a template are filled with, read from one text file per language.

A section starts with `[name: attribute ...]`. Each entry below it is `value | attribute | ...`; several entries may
share a line, separated by `;`. An attribute written `he=she` has that value for the whole section. A section
`[place = city + country]` joins others. Every entry also has the attributes `a` (the value after its indefinite
article) and `s` (its English plural) unless the section names columns of its own for them. `#` starts a comment line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.errors import DataError

_SECTION = re.compile(r"\[(?P<name>[^\W\d]\w*?)(?P<join>\s*=.*|:.*|)\]")
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m)|us[aeu]|eu|one\b|once\b|ur[aio]|ute|u[kb]u)", re.IGNORECASE)
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|heir|8|11\b|18\b", re.IGNORECASE)
_ACRONYM = re.compile(r"[A-Z]{2,}")
_SIBILANT = ("s", "x", "z", "ch", "sh")


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a list with its attributes by name."""

    value: str
    attributes: Mapping[str, str]

    def text(self, attribute: str | None) -> str:
        """Return the value itself, or that attribute of it."""
        if attribute is None:
            return self.value
        if attribute in self.attributes:
            return self.attributes[attribute]
        return with_article(self.value) if attribute == "a" else plural(self.value)


@dataclass(frozen=True, slots=True)
class WordList:
    """The entries of one section, all with the same attributes."""

    name: str
    attributes: frozenset[str]
    entries: tuple[Entry, ...]

    def has(self, attribute: str | None) -> bool:
        """Return whether every entry has that attribute, of its own or derived."""
        return attribute is None or attribute in self.attributes or attribute in ("a", "s")


def with_article(value: str) -> str:
    """Return the value after 'a' or 'an', by its first sound as far as the spelling tells it."""
    if _ACRONYM.match(value):
        return ("an " if value[0] in "AEFHILMNORSX" else "a ") + value
    vowel = _VOWEL_SOUND.match(value)
    return ("an " if vowel and not _CONSONANT_SOUND.match(value) else "a ") + value


def plural(value: str) -> str:
    """Return the regular English plural of the value."""
    if value.endswith(_SIBILANT):
        return value + "es"
    if value.endswith("y") and value[-2:-1] not in "aeiou":
        return value[:-1] + "ies"
    return value + "s"


def read_words(path: Path) -> dict[str, WordList]:
    """Return the word lists of a file by name."""
    lists: dict[str, WordList] = {}
    section: _Section | None = None
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line, where = raw.strip(), f"{path.name}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            _close(section, lists)
            section = _open_section(line, where, lists)
        elif section is None:
            raise DataError(f"{where}: expected a section such as [city] before the first entry, found {line!r}")
        else:
            section.add(line, where)
    _close(section, lists)
    return lists


class _Section:
    def __init__(self, name: str, columns: list[str], constants: dict[str, str]) -> None:
        self.name, self.columns, self.constants = name, columns, constants
        self.entries: dict[str, Entry] = {}

    def add(self, line: str, where: str) -> None:
        for text in line.split(";"):
            if not text.strip():
                continue
            value, *cells = (cell.strip() for cell in text.split("|"))
            if len(cells) != len(self.columns):
                raise DataError(
                    f"{where}: expected {len(self.columns)} attributes ({' '.join(self.columns) or 'none'}) after "
                    f"{value!r}, found {len(cells)}; write value | attribute | ..."
                )
            attributes = {**self.constants, **dict(zip(self.columns, cells, strict=True))}
            self.entries.setdefault(value, Entry(value, attributes))


def _open_section(line: str, where: str, lists: Mapping[str, WordList]) -> _Section:
    match = _SECTION.fullmatch(line)
    if match is None:
        raise DataError(f"{where}: expected [name: attribute ...] or [name = list + list], found {line!r}")
    name, rest = match["name"], match["join"].strip()
    if name in lists:
        raise DataError(f"{where}: the list {name!r} is there already; give this one another name")
    if rest.startswith("="):
        return _join(name, [part.strip() for part in rest[1:].split("+")], where, lists)
    columns, constants = [], {}
    for attribute in rest[1:].split():
        key, mark, value = attribute.partition("=")
        if mark:
            constants[key] = value
        else:
            columns.append(key)
    return _Section(name, columns, constants)


def _join(name: str, parts: list[str], where: str, lists: Mapping[str, WordList]) -> _Section:
    unknown = [part for part in parts if part not in lists]
    if unknown:
        raise DataError(f"{where}: expected lists that stand above, found {', '.join(unknown)}")
    section = _Section(name, [], {})
    for part in parts:
        for entry in lists[part].entries:
            section.entries.setdefault(entry.value, entry)
    return section


def _close(section: _Section | None, lists: dict[str, WordList]) -> None:
    if section is None:
        return
    entries = tuple(section.entries.values())
    shared = frozenset.intersection(*(frozenset(entry.attributes) for entry in entries)) if entries else frozenset()
    lists[section.name] = WordList(section.name, shared, entries)
