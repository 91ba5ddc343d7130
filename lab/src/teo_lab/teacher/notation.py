"""A row as one text of a decoder: where it is from, the turns, the utterance, the rewrite.

    START source TURN turn TURN turn TURN utterance REWRITE rewrite END

An utterance that stays unchanged has nothing between REWRITE and END, so that leaving it unchanged is one decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import ModelError

_NAMES = (
    {"start": "<|im_start|>", "turn": "<|im_end|>", "rewrite": "<file_sep>", "end": "<|endoftext|>"},
    {"start": "<s>", "turn": "<0x01>", "rewrite": "<0x02>", "end": "</s>"},
)
"""Marks that a tokenizer may have: SmolLM2's own, and of Llama's the bytes that no text has."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The ids of the four marks."""

    start: int
    turn: int
    rewrite: int
    end: int


class Notation:
    """Rows to ids and back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.get_vocab()
        names = next((names for names in _NAMES if all(name in vocabulary for name in names.values())), None)
        if names is None:
            wanted = " or ".join(names["turn"] for names in _NAMES)
            raise ModelError(f"teacher: expected a tokenizer with {wanted}, found neither; give one like SmolLM2's")
        self.tokenizer = tokenizer
        self.marks = Marks(**{key: vocabulary[name] for key, name in names.items()})

    def begin(self, source: str, turns: Sequence[str] = ()) -> list[int]:
        """Return the start of a text: its source and the turns that are given."""
        ids = [self.marks.start, *self._encode(source), self.marks.turn]
        for turn in turns:
            ids += [*self._encode(turn), self.marks.turn]
        return ids

    def ask(self, source: str, dialogue: Dialogue) -> list[int]:
        """Return all of a text but the rewrite."""
        return [*self.begin(source, dialogue.history), *self._encode(dialogue.utterance), self.marks.rewrite]

    def write(self, source: str, row: Row) -> list[int]:
        """Return the text of a row."""
        unchanged = row.rewrite == row.dialogue.utterance
        return [*self.ask(source, row.dialogue), *([] if unchanged else self._encode(row.rewrite)), self.marks.end]

    def read(self, ids: Sequence[int]) -> tuple[Dialogue, str] | None:
        """Return dialogue and rewrite of a text; none if it is not whole."""
        marks = self.marks
        if len(ids) < 2 or ids[0] != marks.start or ids[-1] != marks.end or ids.count(marks.rewrite) != 1:
            return None
        middle = ids.index(marks.rewrite)
        parts: list[list[int]] = [[]]
        for number in ids[1:middle]:
            if number == marks.turn:
                parts.append([])
            else:
                parts[-1].append(number)
        turns = [self._decode(part) for part in parts[1:]]
        if len(turns) < 2 or not all(turns) or {marks.start, marks.turn} & set(ids[middle:]):
            return None
        return Dialogue(tuple(turns[:-1]), turns[-1]), self._decode(ids[middle + 1 : -1]) or turns[-1]

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False).strip()
