"""Operations that carry their place: the executable template, and every place that unplaced operations may take.

The paper's insertion does not say where it goes; its limitations section asks for better templates. Ours writes
`[P] left [I] text` for an insertion and `[D] old [R] new` for a replacement, in order of position. `left` is the
shortest run of units directly left of the place whose first occurrence after the previous edit is that place; nothing
after `[P]` means "right where the previous edit ended", for the first operation the start of the utterance. A
replacement has `[P] left` before it only where the first occurrence of `old` is not the one meant.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from teo.alignment import derive_edits
from teo.edits import Edit, EditScript, Operation, escape_markers, make_edit
from teo.layouts import Marker, Pieces, marked_texts
from teo.units import Unit, is_cjk, needs_space, split_units

PLACEMENT_LIMIT = 64
"""How many placements of unplaced operations are given unless told otherwise."""
_PLACES = 64
"""How many places one operation is tried at, the likeliest ones."""
_REORDERED = 4
"""Up to this many operations are also tried in other orders than their own."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What executing placed operations gives; `well_formed` is false where something had to be dropped."""

    text: str
    edits: EditScript
    well_formed: bool


@dataclass(frozen=True, slots=True)
class Span:
    """New text in the place of the units from `first` up to, not with, `last`; an insertion where these are equal."""

    first: int
    last: int
    new: str


def placed_pieces(script: EditScript, utterance: str) -> Pieces:
    """Return the script as operations that carry their place; changes of white space alone have none."""
    units = split_units(utterance)
    texts = [unit.text for unit in units]
    pieces: list[str] = []
    reached = 0
    for span in find_spans(script, utterance):
        old = _slice(utterance, units, span.first, span.last)
        if span.first == span.last:
            left = _shortest_left(utterance, units, span, reached)
            pieces += [Marker.PLACE, *_text(left), Marker.INSERT, span.new]
        else:
            if find_units(texts, old, reached) != (span.first, span.last):
                left = _shortest_left(utterance, units, span, reached)
                pieces += [Marker.PLACE, *_text(left)]
            pieces += [Marker.DELETE, old, Marker.REPLACE, *_text(span.new)]
        reached = span.last
    return tuple(pieces)


def execute_pieces(pieces: Sequence[str], utterance: str) -> Executed:
    """Return the utterance with the placed operations made, whatever the pieces are; never raises.

    Operations that cannot be placed are dropped. Spaces around new text are those a writer would put.
    """
    units = split_units(utterance)
    texts = [unit.text for unit in units]
    operations, well_formed = _read_placed(pieces)
    placed: list[Span] = []
    reached = 0
    for left, operation in operations:
        found = find_units(texts, operation.old, reached, left or "")
        if found is None or (left == "" and found[0] != reached):
            well_formed = False
            continue
        placed.append(Span(*found, operation.new))
        reached = found[1]
    script = make_script(placed, utterance)
    return Executed(script.apply(utterance), script, well_formed)


def format_placed(pieces: Iterable[str]) -> str:
    """Return placed operations as one string to show; markers inside users' text get a backslash."""
    return " ".join(piece if isinstance(piece, Marker) else escape_markers(piece) for piece in pieces)


def placements(operations: Sequence[Operation], utterance: str, limit: int = PLACEMENT_LIMIT) -> list[EditScript]:
    """Return the ways to place the paper's operations, the likeliest first, at most `limit`, no two alike in result.

    A replacement goes wherever its old text stands, an insertion between any two units, at the start or at the end.
    Operations in their own order come first, then, for a few operations, the other orders. An operation whose old
    text does not occur is left out; nothing that can be placed gives no placement.
    """
    units = split_units(utterance)
    texts = [unit.text for unit in units]
    options = [found for operation in operations if (found := _options(operation, texts))]
    if not options or limit <= 0:
        return []
    orders = permutations(options) if len(options) <= _REORDERED else iter([tuple(options)])
    scripts: dict[str, EditScript] = {}
    for order in orders:
        # Operations that touch would have been one: they do so only where there is no other way.
        for spans in _cheapest(order, limit, apart=True) or _cheapest(order, limit, apart=False):
            script = make_script(spans, utterance)
            scripts.setdefault(script.apply(utterance), script)
        if len(scripts) > limit:
            break
    scripts.pop(utterance, None)
    return list(scripts.values())[:limit]


def apply_replacements(operations: Sequence[Operation], utterance: str) -> EditScript:
    """Return the edits of the replacements alone, each where its old text first stands; others are left out."""
    return make_script(replacement_spans(operations, [unit.text for unit in split_units(utterance)]), utterance)


def replacement_spans(operations: Sequence[Operation], texts: Sequence[str]) -> list[Span]:
    """Return where each replacement goes: after the one before it if it can, else at its first free occurrence."""
    spans: list[Span] = []
    previous_end = 0
    for operation in operations:
        if operation.is_insertion:
            continue
        for start in (previous_end, 0):
            run = find_units(texts, operation.old, start)
            if run and all(run[1] <= span.first or run[0] >= span.last for span in spans):
                spans.append(Span(*run, operation.new))
                previous_end = max(previous_end, run[1])
                break
    return sorted(spans, key=lambda span: span.first)


def _text(text: str) -> list[str]:
    return [text] if text else []


def _slice(utterance: str, units: Sequence[Unit], first: int, last: int) -> str:
    return utterance[units[first].start : units[last - 1].end] if first < last else ""


def find_units(texts: Sequence[str], wanted: str, start: int, left: str = "") -> tuple[int, int] | None:
    """Return the first run of units, from `start` on, that spells `wanted` directly after one that spells `left`.

    White space does not count: how a text splits into units may depend on what stands beside it.
    """
    before, key = "".join(left.split()), "".join(wanted.split())
    for k in range(start, len(texts) + 1):
        first = _end_of(texts, k, before)
        if first is not None and (last := _end_of(texts, first, key)) is not None:
            return first, last
    return None


def _end_of(texts: Sequence[str], start: int, key: str) -> int | None:
    """Return where the run of units from `start` that spells `key` ends; None where there is no such run."""
    end, spelled = start, 0
    while spelled < len(key) and end < len(texts) and key.startswith(texts[end], spelled):
        spelled += len(texts[end])
        end += 1
    return end if spelled == len(key) else None


def find_spans(script: EditScript, utterance: str) -> list[Span]:
    """Return the script as spans of whole units; changes of white space alone have none."""
    units = split_units(utterance)
    spans = _unit_spans(script, units)
    if spans is None:  # an edit that cuts a unit: say the same change in whole units
        spans = _unit_spans(derive_edits(utterance, script.apply(utterance)), units)
    return spans or []


def _unit_spans(script: EditScript, units: Sequence[Unit]) -> list[Span] | None:
    """Return the edits as spans of units; None where an edit begins or ends inside a unit."""
    spans = []
    for edit in script:
        if not edit.old.strip() and not edit.new.strip():
            continue
        first = sum(unit.end <= edit.start for unit in units)
        last = first + sum(unit.start < edit.end for unit in units[first:])
        if any(unit.start < edit.start or unit.end > edit.end for unit in units[first:last]):
            return None
        if first == last and first < len(units) and units[first].start < edit.start:
            return None
        spans.append(Span(first, last, edit.new.strip()))
    return spans


def _shortest_left(utterance: str, units: Sequence[Unit], span: Span, reached: int) -> str:
    """Return the shortest text left of a span that, with the span's old text, first occurs where the span is."""
    texts = [unit.text for unit in units]
    old = _slice(utterance, units, span.first, span.last)
    for first in range(span.first - 1, reached - 1, -1):
        left = _slice(utterance, units, first, span.first)
        if find_units(texts, old, reached, left) == (span.first, span.last):
            return left
    return ""


def _read_placed(pieces: Sequence[str]) -> tuple[list[tuple[str | None, Operation]], bool]:
    """Return (left, operation) for each whole operation in the pieces, and whether that was all of them."""
    read: list[tuple[str | None, Operation]] = []
    left: str | None = None
    old: str | None = None
    well_formed = True
    for marker, text in marked_texts(pieces):
        if old is not None and marker != Marker.REPLACE:  # [D] x with no [R] after it
            well_formed, old, left = False, None, None
        if marker == Marker.PLACE and left is None:
            left = text
        elif marker == Marker.DELETE and text:
            old = text
        elif marker == Marker.REPLACE and old is not None:
            read.append((left, Operation(old, text)))
            left = old = None
        elif marker == Marker.REPLACE and left:  # [P] x [R] y can only mean that y takes x's place
            read.append((None, Operation(left, text)))
            well_formed, left = False, None
        elif marker == Marker.INSERT and text and left is not None:
            read.append((left, Operation("", text)))
            left = None
        else:
            well_formed = False
            left = text if marker == Marker.PLACE else None
    return read, well_formed and left is None and old is None


def _options(operation: Operation, texts: Sequence[str]) -> list[Span]:
    """Return where an operation may go, the likeliest places first."""
    if operation.is_insertion:
        # Speakers leave out what would come first or last more often than what stands inside.
        count = len(texts)
        places = sorted(range(count + 1), key=lambda k: (min(k, count - k), k))
        return [Span(k, k, operation.new) for k in places[:_PLACES]] if operation.new.strip() else []
    spans: list[Span] = []
    start = 0
    while len(spans) < _PLACES and (found := find_units(texts, operation.old, start)):
        spans.append(Span(*found, operation.new))
        start = found[0] + 1
    return spans


def _cheapest(order: Sequence[list[Span]], limit: int, *, apart: bool) -> list[tuple[Span, ...]]:
    """Return at most `limit` ways to take one place per operation from left to right, least sum of ranks first.

    `apart`: at least one untouched unit between two operations, as the alignment always leaves.
    """
    partial: list[tuple[int, tuple[Span, ...]]] = [(0, ())]
    by_last: dict[int, list[tuple[int, tuple[Span, ...]]]] = {-1: partial}
    for options in order:
        reachable: list[tuple[int, tuple[Span, ...]]] = []
        waiting = sorted(by_last)
        grown: dict[int, list[tuple[int, tuple[Span, ...]]]] = {}
        for rank, option in sorted(enumerate(options), key=lambda ranked: ranked[1].first):
            while waiting and (waiting[0] < option.first or (not apart and waiting[0] == option.first)):
                reachable = heapq.nsmallest(limit, reachable + by_last[waiting.pop(0)], key=lambda way: way[0])
            grown.setdefault(option.last, []).extend((cost + rank, (*way, option)) for cost, way in reachable)
        by_last = {last: heapq.nsmallest(limit, ways, key=lambda way: way[0]) for last, ways in grown.items()}
    ways = heapq.nsmallest(limit, (way for found in by_last.values() for way in found), key=lambda way: way[0])
    return [way for _, way in ways]


def make_script(placed: Sequence[Span], utterance: str) -> EditScript:
    """Return the edits that put each span's new text in its place, with the spaces a writer would put.

    The spans stand in order; those that touch become one edit.
    """
    units = split_units(utterance)
    merged: list[Span] = []
    for span in placed:
        if merged and merged[-1].last == span.first:  # both would lay claim to the space between them
            before = merged.pop()
            glue = " " if needs_space(before.new, span.new) else ""
            merged.append(Span(before.first, span.last, before.new + glue + span.new))
        else:
            merged.append(span)
    edits = (_edit(span, utterance, units) for span in merged)
    return EditScript(tuple(edit for edit in edits if edit.old != edit.new))


def _edit(span: Span, utterance: str, units: Sequence[Unit]) -> Edit:
    """Return the edit of one span: its units, the gaps around them, and what stands there afterwards."""
    start = units[span.first - 1].end if span.first else 0
    end = units[span.last].start if span.last < len(units) else len(utterance)
    left = units[span.first - 1].text if span.first else ""
    right = units[span.last].text if span.last < len(units) else ""
    if span.first == span.last:
        before, after = _insertion_gaps(left, utterance[start:end], right, span.new)
    else:
        old = _slice(utterance, units, span.first, span.last)
        gaps = utterance[start : units[span.first].start], utterance[units[span.last - 1].end : end]
        before, after = _replacement_gaps(left, old, right, span.new, gaps)
    old, new = utterance[start:end], before + span.new + after
    while old and new and old[0] == new[0] and old[0].isspace():
        old, new, start = old[1:], new[1:], start + 1
    while old and new and old[-1] == new[-1] and old[-1].isspace():
        old, new = old[:-1], new[:-1]
    return make_edit(start, old, new)


def _space(left: str, right: str) -> str:
    return " " if needs_space(left, right) else ""


def _insertion_gaps(left: str, gap: str, right: str, new: str) -> tuple[str, str]:
    """Return the white space before and after text that is inserted into a gap."""
    if not left:
        return gap, _space(new, right)
    if not right:
        return _space(left, new), gap
    if not gap:
        return _space(left, new), _space(new, right)
    if is_cjk(right[0]):  # a space ends a clause in these scripts: what was left out opens the next one
        return gap, _space(new, right)
    if not needs_space(left, right):  # a space where none is needed: this writer sets punctuation apart
        return _space(left, new), gap
    return gap if needs_space(left, new) else "", _space(new, right)


def _replacement_gaps(left: str, old: str, right: str, new: str, gaps: tuple[str, str]) -> tuple[str, str]:
    """Return the white space before and after text that takes the place of `old`; for a deletion, all of it first."""
    before, after = gaps
    if not new:
        if not left:
            return before, ""
        if not right:
            return "", after
        if before and after:
            return before, ""
        return (before or after or " ") if needs_space(left, right) else "", ""
    return _kept_gap(before, (left, old), (left, new)), _kept_gap(after, (old, right), (new, right))


def _kept_gap(gap: str, was: tuple[str, str], now: tuple[str, str]) -> str:
    """Return the white space on one side of a replacement: as it was, unless only the old text called for it.

    Where the writer left out a space that one would expect, the new text does without it too.
    """
    if needs_space(*was) == bool(gap):
        return gap if gap and needs_space(*now) else _space(*now)
    return gap


__all__ = [
    "PLACEMENT_LIMIT",
    "Executed",
    "Span",
    "apply_replacements",
    "execute_pieces",
    "find_spans",
    "find_units",
    "format_placed",
    "make_script",
    "placed_pieces",
    "placements",
    "replacement_spans",
]
