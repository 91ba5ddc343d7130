"""Editing operations in two forms: positioned edits that can be executed, and the paper's string that models write.

An `EditScript` says exactly what changes where. An `Operation` is what the paper's notation can express: which text
goes, which text comes, but not where an insertion goes (section 3.3). The string form is lossless for operations:
markers that occur in a user's text are escaped with a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from teo.errors import InputError

INSERT, DELETE, REPLACE = "[I]", "[D]", "[R]"
Order = Literal["position", "insertions-first"]

_MARKER = re.compile(r"(\\*)(\[(?:I|D|R|P|SEP|CLS)\])")


@dataclass(frozen=True, slots=True)
class Insert:
    """New text before the character at `start`."""

    start: int
    new: str
    op = "insert"
    old = ""

    @property
    def end(self) -> int:
        """Same as `start`: an insertion removes nothing."""
        return self.start


@dataclass(frozen=True, slots=True)
class Replace:
    """New text in the place of `old`, which stands from `start` to `end`."""

    start: int
    end: int
    old: str
    new: str
    op = "replace"


@dataclass(frozen=True, slots=True)
class Delete:
    """`old` goes, and nothing comes in its place."""

    start: int
    end: int
    old: str
    op = "delete"
    new = ""


Edit = Insert | Replace | Delete


def make_edit(start: int, old: str, new: str) -> Edit:
    """Return the edit that puts `new` where `old` stands."""
    end = start + len(old)
    if not old:
        return Insert(start, new)
    return Replace(start, end, old, new) if new else Delete(start, end, old)


def _keep_spacing(start: int, old: str, new: str) -> Edit:
    """Return the edit with white space at the ends of `old` left in its place."""
    kept = old.strip()
    if not kept or not new.strip():
        return make_edit(start, old, new)
    before = len(old) - len(old.lstrip())
    new = new.lstrip() if before else new
    new = new.rstrip() if old[-1].isspace() else new
    return make_edit(start + before, kept, new)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the paper's notation: `old` empty is an insertion, `new` empty a pure deletion."""

    old: str
    new: str

    @property
    def is_insertion(self) -> bool:
        """Whether nothing goes and text comes."""
        return not self.old

    def __str__(self) -> str:
        old, new = escape_markers(self.old), escape_markers(self.new)
        parts = [INSERT, new] if self.is_insertion else [DELETE, old, REPLACE, new]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class EditScript:
    """All edits of one utterance, in order of position, none overlapping. Empty: nothing to change."""

    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        previous_end = 0
        for edit in self.edits:
            if edit.start < previous_end:
                raise InputError(
                    f"edits must be in order and must not overlap; found one at {edit.start} after {previous_end}"
                )
            previous_end = edit.end

    def __bool__(self) -> bool:
        return bool(self.edits)

    def __len__(self) -> int:
        return len(self.edits)

    def __iter__(self) -> Iterator[Edit]:
        return iter(self.edits)

    def apply(self, text: str) -> str:
        """Return the text with every edit made; the edits must have been derived from that text."""
        pieces, previous_end = [], 0
        for edit in self.edits:
            if text[edit.start : edit.end] != edit.old or edit.start > len(text):
                raise InputError(
                    f"edit at {edit.start}: expected {edit.old!r}, found {text[edit.start : edit.end]!r}; "
                    "apply a script only to the text it was derived from"
                )
            pieces += [text[previous_end : edit.start], edit.new]
            previous_end = edit.end
        return "".join([*pieces, text[previous_end:]])

    def moved_to(self, text: str) -> EditScript:
        """Return the edits of a text with as many code points, such as a user's own string behind its reading.

        White space at the ends of what is replaced stays as that text has it; changes of white space alone are dropped.
        """
        moved = [
            _keep_spacing(edit.start, text[edit.start : edit.end], edit.new)
            for edit in self.edits
            if edit.old.strip() or edit.new.strip()
        ]
        return EditScript(tuple(edit for edit in moved if edit.old != edit.new))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What the paper's notation keeps of this script; changes of white space alone have no operation."""
        kept = (Operation(edit.old.strip(), edit.new.strip()) for edit in self.edits)
        return tuple(operation for operation in kept if operation.old or operation.new)

    def to_dicts(self) -> list[dict[str, str | int]]:
        """Return the edits as the record shows them."""
        names = ("op", "start", "end", "old", "new")
        return [{name: getattr(edit, name) for name in names} for edit in self.edits]


@dataclass(frozen=True, slots=True)
class ParsedOperations:
    """What a string in the paper's notation says; `well_formed` is false where something had to be dropped."""

    operations: tuple[Operation, ...]
    well_formed: bool


def format_operations(operations: Iterable[Operation], order: Order = "position") -> str:
    """Return the paper's string."""
    return " ".join(map(str, in_order(operations, order)))


def in_order(operations: Iterable[Operation], order: Order) -> list[Operation]:
    """Return operations by position (the paper's text and figure) or insertions first (its equation 2)."""
    if order == "insertions-first":
        return sorted(operations, key=lambda operation: not operation.is_insertion)  # each kind stays in order
    return list(operations)


def parse_operations(text: str) -> ParsedOperations:
    """Return the operations that a string says, whatever the string is; never raises."""
    return read_operations(split_markers(text))


def split_markers(text: str) -> list[tuple[str, str]]:
    """Return (marker, text after it) for each marker; text before the first has the marker ""."""
    pieces: list[tuple[str, str]] = []
    marker, buffer, reached = "", [], 0
    for match in _MARKER.finditer(text):
        slashes = len(match.group(1))
        buffer.append(text[reached : match.start()] + "\\" * (slashes // 2))
        reached = match.end()
        if slashes % 2 or match.group(2) not in (INSERT, DELETE, REPLACE):
            buffer.append(match.group(2))
        else:
            pieces.append((marker, "".join(buffer).strip()))
            marker, buffer = match.group(2), []
    buffer.append(text[reached:])
    pieces.append((marker, "".join(buffer).strip()))
    return pieces if pieces[0][1] else pieces[1:]


def read_operations(pieces: Iterable[tuple[str, str]]) -> ParsedOperations:
    """Parse (marker, text) pieces into operations; pieces that fit no operation are dropped and flagged."""
    operations: list[Operation] = []
    pending: str | None = None
    well_formed = True
    for marker, text in pieces:
        if pending is not None and marker != REPLACE:
            well_formed, pending = False, None  # [D] x with no [R] after it
        if marker == DELETE and text:
            pending = text
        elif marker == REPLACE and pending is not None:
            operations.append(Operation(pending, text))
            pending = None
        elif marker == INSERT and text:
            operations.append(Operation("", text))
        else:
            well_formed = False
    return ParsedOperations(tuple(operations), well_formed and pending is None)


def escape_markers(text: str) -> str:
    """Return a text in which the markers that it spells are escaped with a backslash."""
    return _MARKER.sub(lambda match: match.group(1) * 2 + "\\" + match.group(2), text)
