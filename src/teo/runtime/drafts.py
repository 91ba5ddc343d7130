"""Drafts: guesses at how a decoder's text continues, taken from its source; the model checks a draft in one pass.

A rewrite is mostly the utterance and spans of the history, and operations are spans of both. A wrong draft costs a
little time and never changes a text (`teo.runtime.search`), so nothing here needs to be right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from teo.layouts import Marker, Pieces
from teo.runtime.search import Draft

_OPERATIONS = (Marker.INSERT, Marker.DELETE, Marker.REPLACE, Marker.PLACE)
_PROPOSE = {Marker.WRITE_OPERATIONS, Marker.WRITE_PLACED}
"""Prompts after which operations come."""
_LONGEST_MATCH = 8
"""Tokens of the text so far that are looked for in the source, at most."""
_LONGEST_SPAN = 10
"""Tokens drafted of a span of the history: where it ends is not known."""
_SKIPPED = 4
"""Tokens of the utterance that a rewrite may leave out, at most, and still be taken to follow it."""


class TextCodec(Protocol):
    """What drafts need of a codec."""

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text."""

    def encode_target(self, pieces: Pieces) -> list[int]:
        """Return the ids that a decoder is to generate, the end token included."""


class Marks:
    """The ids of the markers in a decoder's text; a family may lack some."""

    def __init__(self, codec: TextCodec) -> None:
        markers = (*_OPERATIONS, Marker.SEP)
        ids = {marker: codec.encode_target((marker,))[:-1] for marker in markers}
        self.by_id: Mapping[int, Marker] = {found[0]: marker for marker, found in ids.items() if len(found) == 1}
        self.ids: Mapping[Marker, int] = {marker: number for number, marker in self.by_id.items()}


@dataclass(frozen=True, slots=True)
class Drafts:
    """The drafts of one row: its source by turns, its utterance, and what its text starts with."""

    turns: tuple[tuple[int, ...], ...]
    utterance: tuple[int, ...]
    start: tuple[int, ...]
    """What comes before the text: the prompt, and operations if they are given."""
    marks: Marks
    opening: tuple[int, ...]
    """The first draft: what the text is if nothing is to be changed."""
    proposes: bool
    """Whether the text starts with operations."""

    @classmethod
    def of(cls, codec: TextCodec, marks: Marks, source: Pieces, prompt: Pieces) -> Drafts:
        """Return the drafts of a source and a prompt."""
        sections = _sections(source)
        given = sections.pop() if len(sections) > 1 and _are_operations(sections[-1]) else ()
        texts = [piece for section in sections for piece in section if not isinstance(piece, Marker)]
        turns = tuple(codec.encode_text(text) for text in texts)
        whole: Pieces = (*given, Marker.SEP, *prompt) if given else prompt
        utterance, border = turns[-1] if turns else (), marks.ids.get(Marker.SEP)
        roles = {piece for piece in prompt if isinstance(piece, Marker)}
        opening = utterance
        if Marker.WRITE_PLACED in roles:
            opening = ()
        elif Marker.WRITE_OPERATIONS in roles:
            opening = () if border is None else (border, *utterance)
        start, proposes = tuple(codec.encode_target(whole)[:-1]), bool(roles & _PROPOSE)
        return cls(turns, utterance, start, marks, opening, proposes)

    def __call__(self, ids: Sequence[int]) -> Sequence[int]:
        """Return what may follow after the ids so far."""
        text = [*self.start, *ids]
        spans, border = self._spans(text), self.marks.ids.get(Marker.SEP)
        if border in text:
            return self._follow(text[text.index(border) + 1 :], spans)
        if not ids:
            return self.opening
        if self.proposes or spans:
            return self._operate(spans)
        return self._follow(ids, [])

    def _spans(self, text: Sequence[int]) -> list[tuple[Marker, list[int]]]:
        """Return the operations' markers up to the separator, each with the text after it."""
        spans: list[tuple[Marker, list[int]]] = []
        for number in text:
            marker = self.marks.by_id.get(number)
            if marker is Marker.SEP:
                break
            if marker is not None:
                spans.append((marker, []))
            elif spans:
                spans[-1][1].append(number)
        return spans

    def _operate(self, spans: Sequence[tuple[Marker, list[int]]]) -> Sequence[int]:
        """Return what may follow inside an operation: the other half of its kind, or more of a span."""
        if not spans or not spans[-1][1]:
            return ()
        marker, span = spans[-1]
        if marker is Marker.DELETE:  # most of what is replaced is one word
            return [self.marks.ids[Marker.REPLACE]] if Marker.REPLACE in self.marks.ids else ()
        if marker is Marker.PLACE:
            return self._continue(span, self.turns[-1:])
        return self._continue(span, self.turns[:-1])

    def _follow(self, text: Sequence[int], spans: Sequence[tuple[Marker, list[int]]]) -> Sequence[int]:
        """Return what may follow in a rewrite: the utterance with the operations carried out."""
        plan, inserted = _carry_out(self.utterance, spans)
        position, rest, lost = 0, list[int](), False
        for number in text:
            if rest and rest[0] == number:
                rest = rest[1:]
                continue
            rest, lost = [], False
            near = plan[position : position + _SKIPPED]
            span = next((span for span in inserted if span[0] == number), None)
            if near and near[0] == number:
                position += 1
            elif span is not None:
                inserted.remove(span)
                rest = span[1:]
            elif number in near:
                position += near.index(number) + 1
            else:
                lost = True
        if lost and (found := self._continue(text, self.turns[:-1])):
            return found
        return [*rest, *plan[position:]]

    def _continue(self, text: Sequence[int], turns: Sequence[tuple[int, ...]]) -> Sequence[int]:
        """Return what follows the longest match of a text's end in some turns, the latest of equals."""
        best, found = 0, tuple[int, ...]()
        last = text[-1]
        for turn in reversed(turns):
            position = -1
            while best < _LONGEST_MATCH:
                try:
                    position = turn.index(last, position + 1)
                except ValueError:
                    break
                length = 1
                while length < _LONGEST_MATCH and length <= position and turn[position - length] == _at(text, length):
                    length += 1
                if length > best:
                    best, found = length, turn[position + 1 : position + 1 + _LONGEST_SPAN]
        return found


def batch_drafts(codec: TextCodec, marks: Marks, rows: Sequence[tuple[Pieces, Pieces]]) -> Draft:
    """Return the drafts of a batch's sources and prompts."""
    drafts = [Drafts.of(codec, marks, source, prompt) for source, prompt in rows]
    return lambda row, ids: drafts[row](ids)


def _at(text: Sequence[int], back: int) -> int | None:
    """Return the token `back` positions before a text's last."""
    return text[-1 - back] if back < len(text) else None


def _sections(source: Pieces) -> list[Pieces]:
    """Return the parts of a source between its separators."""
    sections: list[list[str]] = [[]]
    for piece in source:
        if piece is Marker.SEP:
            sections.append([])
        else:
            sections[-1].append(piece)
    return [tuple(section) for section in (sections if sections[-1] else sections[:-1])]


def _are_operations(section: Pieces) -> bool:
    """Tell whether a section is what stage 2 reads after the utterance: operations, or nothing."""
    return not section or (section[0] in _OPERATIONS and isinstance(section[0], Marker))


def _carry_out(
    utterance: Sequence[int], spans: Sequence[tuple[Marker, list[int]]]
) -> tuple[list[int], list[list[int]]]:
    """Return the utterance with its replacements made, and the insertions, whose positions are not known."""
    plan, inserted, reached = list(utterance), list[list[int]](), 0
    for number, (marker, span) in enumerate(spans):
        new = spans[number + 1][1] if number + 1 < len(spans) else []
        if marker is Marker.INSERT and span:
            inserted.append(span)
        elif marker is Marker.DELETE and span:
            position = _find(plan, span, reached)
            if position >= 0:
                plan[position : position + len(span)] = new
                reached = position + len(new)
    return plan, inserted


def _find(text: Sequence[int], span: Sequence[int], start: int) -> int:
    """Return where a span stands in a text from a position on, or -1."""
    for position in range(start, len(text) - len(span) + 1):
        if list(text[position : position + len(span)]) == list(span):
            return position
    return -1 if start == 0 else _find(text, span, 0)
