"""The rows that are scored: {"current", "reference", "prediction"}, checked, and split into units.

A row may also hold `references`, a list of other accepted rewrites: EM counts a match with any of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from teo.arguments import kind_of
from teo.errors import InputError
from teo.metrics.base import ScoredExample
from teo.units import scoring_units

FIELDS = ("current", "reference", "prediction")
_BLANK = b" \t\r\n\xef\xbb\xbf"  # white space, and the mark that some editors put before UTF-8
_FORM = '{"current": "...", "reference": "...", "prediction": "..."}'


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row as text; `location` is its file and line, for messages."""

    current: str
    reference: str
    prediction: str
    location: str = "row"
    references: tuple[str, ...] = ()
    """Other rewrites that are accepted too."""

    @classmethod
    def from_json(cls, value: object, location: str) -> ScoredRow:
        """Return the row of a JSON object; keys other than the three and `references` are ignored."""
        if not isinstance(value, Mapping):
            raise InputError(f"{location}: expected an object {_FORM}, found {kind_of(value)}")
        texts = []
        for field in FIELDS:
            if field not in value:
                raise InputError(f"{location}: {field}: missing; a row is {_FORM}")
            if not isinstance(value[field], str):
                raise InputError(f"{location}: {field}: expected a string, found {kind_of(value[field])}")
            texts.append(value[field])
        current, reference, prediction = texts
        return cls(current, reference, prediction, location, _read_references(value.get("references", []), location))


def read_rows(path: Path) -> list[ScoredRow]:
    """Return the rows of a JSONL file; blank lines are skipped."""
    try:
        with _open(path) as lines:
            numbered = enumerate(lines, start=1)
            rows = [_read_line(line, f"{path}:{number}") for number, line in numbered if line.strip(_BLANK)]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected JSONL, one row {_FORM} per line") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not rows:
        raise InputError(f"{path}: expected at least one row {_FORM}, found none")
    return rows


def as_rows(rows: Iterable[ScoredRow | Mapping[str, object]], name: str = "rows") -> list[ScoredRow]:
    """Return checked rows; a mapping is named by its index in messages."""
    checked = [
        row if isinstance(row, ScoredRow) else ScoredRow.from_json(row, f"{name}[{index}]")
        for index, row in enumerate(rows)
    ]
    if not checked:
        raise InputError(f"{name}: expected at least one row {_FORM}, found none")
    return checked


def as_examples(rows: Iterable[ScoredRow], *, pretokenized: bool) -> list[ScoredExample]:
    """Return the rows in units, lower-cased: split on white space if pretokenized, else into scoring units."""
    split: Callable[[str], Sequence[str]] = _split_on_space if pretokenized else scoring_units

    def units(text: str) -> tuple[str, ...]:
        return tuple(split(text))

    return [
        ScoredExample(
            units(row.current), units(row.reference), units(row.prediction), tuple(map(units, row.references))
        )
        for row in rows
    ]


def require_same_rows(first: Sequence[ScoredRow], second: Sequence[ScoredRow]) -> None:
    """Raise if two systems were not run on the same rows in the same order."""
    if len(first) != len(second):
        longer, shorter = (first, second) if len(first) > len(second) else (second, first)
        raise InputError(
            f"{longer[len(shorter)].location}: no row to pair with, the other system has {len(shorter)} rows "
            f"and this one {len(longer)}; both must hold the same rows in the same order"
        )
    for row, other in zip(first, second, strict=True):
        for field in ("current", "reference", "references"):
            expected, found = getattr(row, field), getattr(other, field)
            if expected != found:
                raise InputError(
                    f"{other.location}: {field}: expected {_short(expected)} as in {row.location}, "
                    f"found {_short(found)}; both must hold the same rows in the same order"
                )


def _read_references(value: object, location: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(
            f"{location}: references: expected a list of strings, the other accepted rewrites; leave it out"
        )
    return tuple(value)


def _read_line(line: bytes, location: str) -> ScoredRow:
    try:
        value = json.loads(line.decode("utf-8-sig").rstrip())
    except UnicodeDecodeError as error:
        raise InputError(f"{location}: expected UTF-8 text, found the byte 0x{error.object[error.start]:02x}") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        raise InputError(f"{location}: expected a JSON object {_FORM}, found no JSON ({reason})") from None
    except (ValueError, RecursionError) as reason:  # a number too long, lists too deep
        raise InputError(f"{location}: expected a JSON object {_FORM}, found no JSON ({reason})") from None
    return ScoredRow.from_json(value, location)


def _split_on_space(text: str) -> list[str]:
    return text.lower().split()


def _short(value: object, most: int = 60) -> str:
    shown = repr(value)
    return shown if len(shown) <= most + 2 else f"{shown[:most]}…{shown[-1]}"


def _open(path: Path) -> AbstractContextManager[BinaryIO]:
    """Return the bytes of a file; `-` is standard input."""
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")
