"""The text that each stage reads and writes, as pieces: markers and users' text, never mixed in one string.

A marker is a token of the model's; a piece of text is data, even where it spells a marker. Keeping them apart until
the tokenizer turns each into ids is what makes a user's literal "[SEP]" harmless.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from teo.dialogue import Dialogue
from teo.edits import Operation, Order, ParsedOperations, in_order, read_operations
from teo.excerpts import take_excerpt


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
    TURN = "[T]"
    """Between two turns of the history, where `[SEP]` is only the border before the utterance."""
    USER = "[U]"
    """Before what the user said, in a layout with speakers."""
    ASSISTANT = "[A]"
    """Before what the other one said, in a layout with speakers."""


LAYOUT_MARKERS = (Marker.TURN, Marker.USER, Marker.ASSISTANT)
"""Markers that only some layouts have; a model of another layout has no tokens for them."""
BASIC_MARKERS = tuple(marker for marker in Marker if marker not in LAYOUT_MARKERS)
"""Markers that every model has."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a dialogue becomes a source; a model keeps the layout that it was trained with."""

    version: Literal[1, 2] = 1
    """1: `[SEP]` after every turn. 2, as in section 3.4 of the paper: `[SEP]` only between history, utterance and
    operations, and `[T]` between the turns of the history."""
    speakers: bool = False
    """A mark before each turn: `[U]` for the user, `[A]` for the other one."""

    @property
    def markers(self) -> tuple[Marker, ...]:
        """The markers that this layout needs beyond the basic ones."""
        turn = () if self.version == 1 else (Marker.TURN,)
        return (*turn, Marker.USER, Marker.ASSISTANT) if self.speakers else turn

    @property
    def turn_tokens(self) -> int:
        """How many tokens a turn takes beside its text and the separator after it."""
        return int(self.speakers)


PLAIN = Layout()
"""The layout of models that name none."""


Pieces = tuple[str, ...]
"""Markers (instances of Marker) and text, in order."""


TruncationRule = Literal["oldest", "error"]
"""What becomes of a dialogue that is longer than a model reads: it is read in part, or it is refused."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a model did not get to read."""

    turns: int = 0
    """Turns that were dropped whole."""
    characters: int = 0
    """Characters of dropped turns, and those left out of turns that were read in part."""

    def __bool__(self) -> bool:
        return bool(self.turns or self.characters)

    def __add__(self, further: Truncation) -> Truncation:
        return Truncation(self.turns + further.turns, self.characters + further.characters)


def dialogue_source(dialogue: Dialogue, layout: Layout = PLAIN) -> Pieces:
    """Return what a stage reads of a dialogue: `[CLS] turn [SEP] .. [SEP] utterance [SEP]`, or as the layout has it."""
    pieces: list[str] = [Marker.CLS]
    turns = (*dialogue.history, dialogue.utterance)
    between = Marker.SEP if layout.version == 1 else Marker.TURN
    marks = [[mark] for mark in speaker_marks(dialogue)] if layout.speakers else [[]] * len(turns)
    for number, (turn, mark) in enumerate(zip(turns, marks, strict=True)):
        after = between if number < len(turns) - 2 else Marker.SEP
        pieces += [*mark, turn, after]
    return tuple(pieces)


def speaker_marks(dialogue: Dialogue) -> list[Marker]:
    """Return who said each turn and, last, the utterance; unless it is known, two take turns and the user is last."""
    known = dialogue.speakers
    if known is None:
        marks = (Marker.USER, Marker.ASSISTANT)
        return [marks[number % 2] for number in range(len(dialogue.history), -1, -1)]
    return [Marker.USER if speaker == "user" else Marker.ASSISTANT for speaker in known]


def stage2_source(dialogue: Dialogue, operations: Pieces, layout: Layout = PLAIN) -> Pieces:
    """Return what stage 2 reads: the dialogue, then the operations and a last `[SEP]` (paper, section 3.4)."""
    return (*dialogue_source(dialogue, layout), *operations, Marker.SEP)


def operation_pieces(operations: Iterable[Operation], order: Order = "position") -> Pieces:
    """Return the paper's notation as pieces; nothing to do is no piece at all."""
    pieces: list[str] = []
    for operation in in_order(operations, order):
        if operation.is_insertion:
            pieces += [Marker.INSERT, operation.new]
        else:
            pieces += [Marker.DELETE, operation.old, Marker.REPLACE, *([operation.new] if operation.new else [])]
    return tuple(pieces)


def read_operation_pieces(pieces: Sequence[str]) -> ParsedOperations:
    """Return the operations that a model's pieces say; never raises."""
    return read_operations(marked_texts(pieces))


def marked_texts(pieces: Sequence[str]) -> list[tuple[str, str]]:
    """Return (marker, text after it) for each marker; text before the first has the marker ""."""
    marked: list[tuple[str, str]] = []
    for piece in pieces:
        if isinstance(piece, Marker):
            marked.append((piece, ""))
        elif marked:
            marked[-1] = (marked[-1][0], f"{marked[-1][1]} {piece}".strip())
        elif piece.strip():
            marked.append(("", piece.strip()))
    return marked


def split_at_separator(pieces: Sequence[str]) -> tuple[Pieces, Pieces]:
    """Return what stands before and after the first `[SEP]`: a fused decoder's operations and rewrite."""
    for index, piece in enumerate(pieces):
        if piece is Marker.SEP:
            return tuple(pieces[:index]), tuple(pieces[index + 1 :])
    return tuple(pieces), ()


def text_of(pieces: Sequence[str]) -> str:
    """Return the users' text in the pieces, markers left out."""
    return "".join(piece for piece in pieces if not isinstance(piece, Marker))


ALWAYS_READ = 3
"""The last question before the utterance, the turn before that question, and the answer to it."""
_LEAST_SHARE, _LONG_SHARE = 1 / 4, 1 / 2
"""Of the room: what a turn gets at least that is read in part, and from where on a turn makes way for older ones."""
_LEAST_TOKENS = 12
"""Fewer tokens of a turn say nothing."""
_CHARACTERS_PER_TOKEN = 8
"""How much of a long word is looked at for each token of room: work is bounded, however long the word."""


def fit_history(dialogue: Dialogue, measure: Callable[[str], int], room: int) -> tuple[Dialogue, Truncation]:
    """Return the dialogue with its history cut to `room` tokens, and what was left out.

    `measure` gives a turn's length in tokens, its separator included. Turns that are too long are read in part, head
    and end, and leave the shorter ones whole; of a single word that is too long its head is read. The oldest turns are
    dropped where the room is too small even so. The last three are never dropped, whichever turn is long, unless there
    is hardly any room. The utterance is never cut.
    """
    least, long = max(int(room * _LEAST_SHARE), _LEAST_TOKENS), room * _LONG_SHARE
    lengths: list[int] = []  # of the latest turns, the last one first
    shortest = wanted = 0
    for turn in reversed(dialogue.history):
        length = measure(turn)
        shortest += min(length, least)
        wanted += least if length > max(long, least) else length
        if shortest > room or (wanted > room and len(lengths) >= ALWAYS_READ):
            break
        lengths.append(length)
    longest = _longest_turn(lengths, room)
    first = len(dialogue.history) - len(lengths)
    kept, dropped, unread = [], first, sum(map(len, dialogue.history[:first]))
    for number, turn in enumerate(dialogue.history[first:], start=first):
        excerpt, left_out = take_excerpt(turn, measure, longest)
        if turn and not excerpt:  # not even a word of it fits
            excerpt = _cut_word(turn.strip(), measure, longest)
            left_out = len(turn) - len(excerpt)
        unread += left_out
        if excerpt or not turn:
            kept.append((number, excerpt))
        else:  # nothing but white space
            dropped += 1
    speakers = dialogue.speakers and (*(dialogue.speakers[number] for number, _ in kept), dialogue.speakers[-1])
    fitted = Dialogue(tuple(excerpt for _, excerpt in kept), dialogue.utterance, speakers)
    return fitted, Truncation(dropped, unread)


def _cut_word(text: str, measure: Callable[[str], int], room: int) -> str:
    """Return the longest beginning that fits, cut between characters."""
    window = text[: room * _CHARACTERS_PER_TOKEN]
    return window[: bisect_right(range(1, len(window) + 1), room, key=lambda length: measure(window[:length]))]


def _longest_turn(lengths: Sequence[int], room: int) -> int:
    """Return how long a turn may be so that all fit once the longer ones are cut to that; all of the room at most."""
    for rank, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - rank)
        if length > share:
            return share
        room -= length
    return max(lengths, default=0)
