"""The text that each stage reads and writes, as pieces: markers and users' text, never mixed in one string.

A marker is a token of the model's; a piece of text is data, even where it spells a marker. Keeping them apart until
the tokenizer turns each into ids is what makes a user's literal "[SEP]" harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from teo.dialogue import Dialogue
from teo.edits import Operation, Order, ParsedOperations, read_operations


class Marker(StrEnum):
    """The model's own tokens inside a layout."""

    CLS = "[CLS]"
    SEP = "[SEP]"
    INSERT = "[I]"
    DELETE = "[D]"
    REPLACE = "[R]"
    PLACE = "[P]"
    """Before the text after which an insertion goes (the executable template)."""
    WRITE_OPERATIONS = "[E]"
    """Start of the decoder's text, shared weights: operations, then `[SEP]` and the rewrite."""
    WRITE_REWRITE = "[Y]"
    """Start of the decoder's text, shared weights: the rewrite at once."""
    WRITE_PLACED = "[F]"
    """Start of the decoder's text, shared weights: operations that carry their places."""
    BLANK = "[M]"
    """A span left out, in pretraining."""


Pieces = tuple[str, ...]
"""Markers (instances of Marker) and text, in order."""


TruncationRule = Literal["oldest", "error"]
"""What becomes of a dialogue that is longer than a model reads: its oldest turns are dropped, or it is refused."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a model did not get to read."""

    turns: int = 0
    characters: int = 0

    def __bool__(self) -> bool:
        return bool(self.turns or self.characters)

    def __add__(self, further: Truncation) -> Truncation:
        return Truncation(self.turns + further.turns, self.characters + further.characters)


def stage1_source(dialogue: Dialogue) -> Pieces:
    """Return what stage 1 reads: `[CLS] turn [SEP] .. [SEP] utterance [SEP]`."""
    pieces: list[str] = [Marker.CLS]
    for turn in (*dialogue.history, dialogue.utterance):
        pieces += [turn, Marker.SEP]
    return tuple(pieces)


def stage2_source(dialogue: Dialogue, operations: Pieces) -> Pieces:
    """Return what stage 2 reads: the dialogue, then the operations and a last `[SEP]` (paper, section 3.4)."""
    return (*stage1_source(dialogue), *operations, Marker.SEP)


def operation_pieces(operations: Iterable[Operation], order: Order = "position") -> Pieces:
    """Return the paper's notation as pieces; nothing to do is no piece at all."""
    listed = list(operations)
    if order == "insertions-first":
        listed.sort(key=lambda operation: not operation.is_insertion)
    pieces: list[str] = []
    for operation in listed:
        if operation.is_insertion:
            pieces += [Marker.INSERT, operation.new]
        else:
            pieces += [Marker.DELETE, operation.old, Marker.REPLACE, *([operation.new] if operation.new else [])]
    return tuple(pieces)


def read_operation_pieces(pieces: Sequence[str]) -> ParsedOperations:
    """Return the operations that a model's pieces say; never raises."""
    marked: list[tuple[str, str]] = []
    for piece in pieces:
        if isinstance(piece, Marker):
            marked.append((piece.value, ""))
        elif marked:
            marker, text = marked[-1]
            marked[-1] = (marker, f"{text} {piece}".strip())
        elif piece.strip():
            marked.append(("", piece.strip()))
    return read_operations(marked)


def split_at_separator(pieces: Sequence[str]) -> tuple[Pieces, Pieces]:
    """Return what stands before and after the first `[SEP]`: a fused decoder's operations and rewrite."""
    for index, piece in enumerate(pieces):
        if piece is Marker.SEP:
            return tuple(pieces[:index]), tuple(pieces[index + 1 :])
    return tuple(pieces), ()


def text_of(pieces: Sequence[str]) -> str:
    """Return the users' text in the pieces, markers left out."""
    return "".join(piece for piece in pieces if not isinstance(piece, Marker))


def fit_history(dialogue: Dialogue, measure: Callable[[str], int], room: int) -> tuple[Dialogue, Truncation]:
    """Return the dialogue with as many of its latest turns as fit, and what was dropped.

    `measure` gives a turn's length in tokens, its separator included. Turns are dropped whole, the oldest first; the
    utterance is never cut.
    """
    kept: list[str] = []
    for turn in reversed(dialogue.history):
        room -= measure(turn)
        if room < 0:
            break
        kept.append(turn)
    dropped = dialogue.history[: len(dialogue.history) - len(kept)]
    truncation = Truncation(len(dropped), sum(len(turn) for turn in dropped))
    return Dialogue(tuple(reversed(kept)), dialogue.utterance), truncation
