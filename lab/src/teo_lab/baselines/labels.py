"""What baselines learn instead of a text: an edit matrix, or tags with blanks, each made from gold edits and decoded.

Rows of the matrix are the units of the history, columns those of the utterance and its end. A column of insertions
copies its rows before that unit; columns of replacements give way to their rows. A tag stands for a unit of the
utterance or its end, and says where something is to be filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.layouts import Marker, Pieces, marked_texts
from teo.placement import Span, find_spans
from teo.units import Unit, needs_space, split_units

Cell = tuple[int, int]
"""A unit of the history and a unit of the utterance, by number; the utterance's end counts as one."""
Blank = tuple[int, int]
"""The units of the utterance from the first up to, not with, the last; equal: an insertion before that unit."""
_MOST_RUNS = 3
"""Text that has to be gathered from more runs of the history is no copy of it."""


class Relation(IntEnum):
    """What a unit of the history does at a unit of the utterance."""

    NONE = 0
    REPLACE = 1
    INSERT = 2


class Tag(IntEnum):
    """What happens at a unit of the utterance."""

    KEEP = 0
    BEGIN = 1
    """The first unit of those that are replaced."""
    INSIDE = 2
    INSERT = 3
    """Something is missing before it; the unit itself stays."""


@dataclass(frozen=True, slots=True)
class HistoryUnit:
    """A unit of the history and the turn that it stands in."""

    unit: Unit
    turn: int


def history_units(dialogue: Dialogue) -> list[HistoryUnit]:
    """Return the units of all turns in order: the rows of the matrix."""
    return [HistoryUnit(unit, turn) for turn, text in enumerate(dialogue.history) for unit in split_units(text)]


def gold_spans(dialogue: Dialogue, rewrite: str) -> list[Span]:
    """Return the gold edits as spans of the utterance's units."""
    return find_spans(derive_edits(dialogue.utterance, rewrite), dialogue.utterance)


def make_matrix(dialogue: Dialogue, spans: Iterable[Span]) -> dict[Cell, Relation] | None:
    """Return the cells that are not NONE; None if a matrix cannot say it: deletions, words not in the history."""
    units = [item.unit.text.lower() for item in history_units(dialogue)]
    cells: dict[Cell, Relation] = {}
    for span in spans:
        rows = find_rows([unit.text.lower() for unit in split_units(span.new)], units)
        if not rows:
            return None
        relation = Relation.INSERT if span.first == span.last else Relation.REPLACE
        for column in range(span.first, max(span.last, span.first + 1)):
            cells |= {(row, column): relation for row in rows}
    return cells


def find_rows(wanted: Sequence[str], units: Sequence[str]) -> list[int]:
    """Return the units, by number and in order, that spell what is wanted in the fewest runs; nothing if none do.

    Of equally good ones the last is taken: what was said last is meant more often.
    """
    if not wanted or not set(wanted) <= set(units):
        return []
    ways: dict[int, tuple[int, tuple[int, ...]]] = {
        position: (1, (position,)) for position, unit in enumerate(units) if unit == wanted[0]
    }
    for text in wanted[1:]:
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        best: tuple[int, tuple[int, ...]] | None = None  # of all ways that end before this position
        for position, unit in enumerate(units):
            if unit == text:
                options = [ways[position - 1]] if position - 1 in ways else []
                options += [(best[0] + 1, best[1])] if best and best[0] < _MOST_RUNS else []
                if options:
                    runs, rows = min(options, key=lambda way: way[0])
                    longer[position] = (runs, (*rows, position))
            if position in ways and (best is None or ways[position][0] <= best[0]):
                best = ways[position]
        ways = longer
    fewest = min((runs for runs, _ in ways.values()), default=0)
    return next((list(rows) for runs, rows in reversed(ways.values()) if runs == fewest), [])


def read_matrix(dialogue: Dialogue, cells: Mapping[Cell, Relation]) -> list[Span]:
    """Return what a matrix says as spans in order; a cell that fits nothing beside it is left out.

    Replaced columns that stand side by side are one replacement, of those rows that most of its columns have.
    """
    columns = len(split_units(dialogue.utterance))
    rows: dict[Relation, dict[int, set[int]]] = {relation: {} for relation in Relation}
    for (row, column), relation in cells.items():
        rows[relation].setdefault(column, set()).add(row)
    spans: list[Span] = []
    replaced = sorted(column for column in rows[Relation.REPLACE] if column < columns)
    for _, run in groupby(enumerate(replaced), key=lambda numbered: numbered[1] - numbered[0]):
        group = [column for _, column in run]
        votes = [row for column in group for row in rows[Relation.REPLACE][column]]
        chosen = sorted({row for row in votes if 2 * votes.count(row) > len(group)})
        if chosen:
            spans.append(Span(group[0], group[-1] + 1, copy_rows(dialogue, chosen)))
    for column, chosen_rows in rows[Relation.INSERT].items():
        if not any(span.first < column < span.last for span in spans):
            spans.append(Span(column, column, copy_rows(dialogue, sorted(chosen_rows))))
    return sorted(spans, key=lambda span: (span.first, span.last))


def copy_rows(dialogue: Dialogue, rows: Sequence[int]) -> str:
    """Return the text of some units of the history; those side by side keep the spacing that they have there."""
    units = history_units(dialogue)
    text, previous = "", -2
    for row in rows:
        unit, turn = units[row].unit, units[row].turn
        if previous == row - 1 and units[previous].turn == turn:
            text += dialogue.history[turn][units[previous].unit.end : unit.end]
        else:
            text += f" {unit.text}" if needs_space(text, unit.text) else unit.text
        previous = row
    return text


def make_tags(count: int, blanks: Iterable[Blank]) -> list[Tag]:
    """Return the tags of an utterance of `count` units, its end included."""
    tags = [Tag.KEEP] * (count + 1)
    for first, last in blanks:
        tags[first] = Tag.INSERT if first == last else Tag.BEGIN
        for position in range(first + 1, last):
            tags[position] = Tag.INSIDE
    return tags


def read_tags(tags: Sequence[int]) -> list[Blank]:
    """Return the blanks that tags ask for, whatever they are; at the end only an insertion counts."""
    blanks: list[Blank] = []
    end = len(tags) - 1
    inside = False
    for position, tag in enumerate(tags):
        if tag == Tag.INSERT:
            blanks.append((position, position))
        elif tag == Tag.INSIDE and inside and position < end:
            blanks[-1] = (blanks[-1][0], position + 1)
        elif tag in (Tag.BEGIN, Tag.INSIDE) and position < end:
            blanks.append((position, position + 1))
        inside = tag in (Tag.BEGIN, Tag.INSIDE)
    return blanks


def blanked_source(dialogue: Dialogue, blanks: Iterable[Blank]) -> Pieces:
    """Return what the filler reads: the dialogue, with `[M]` for an insertion and `[D] old [M]` for a replacement."""
    pieces: list[str] = [Marker.CLS]
    for turn in dialogue.history:
        pieces += [turn, Marker.SEP]
    utterance, units = dialogue.utterance, split_units(dialogue.utterance)
    reached = 0
    for first, last in blanks:
        start = units[first].start if first < len(units) else len(utterance)
        end = units[last - 1].end if first < last else start
        pieces += [utterance[reached:start].strip(), *([Marker.DELETE, utterance[start:end]] if first < last else [])]
        pieces.append(Marker.BLANK)
        reached = end
    pieces += [utterance[reached:].strip(), Marker.SEP]
    return tuple(piece for piece in pieces if piece)


def fill_target(texts: Iterable[str]) -> Pieces:
    """Return what the filler writes: `[M] text` for each blank; no text is a deletion."""
    return tuple(piece for text in texts for piece in (Marker.BLANK, text) if piece)


def read_fills(blanks: Sequence[Blank], pieces: Sequence[str]) -> tuple[list[Span], bool]:
    """Return the blanks with the texts that a filler wrote, and whether there was one for each."""
    texts = [text for marker, text in marked_texts(pieces) if marker == Marker.BLANK]
    spans = [
        Span(first, last, text)
        for (first, last), text in zip(blanks, texts, strict=False)  # a missing text leaves the utterance as it is
        if text or first < last
    ]
    return spans, len(texts) == len(blanks)
