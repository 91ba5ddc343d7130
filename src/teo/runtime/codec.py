"""PieceCodec: pieces (markers and users' text) <-> token ids, whatever family and library the tokenizer is of.

Each piece is encoded by itself: a marker is one id of the model's own, text never is, even if it spells a marker.
Text starts every piece in the form that it has inside a sentence, so that a word has the same ids in a turn, in an
operation and in the rewrite, and copying words means copying ids.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from teo.layouts import Marker, Pieces
from teo.runtime.generator import Joiner, cut_at_markers
from teo.units import is_cjk, join_units

_APOSTROPHE = re.compile(r"(?<=\w) (['’]) (?=(?:s|m|d|t|re|ve|ll)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=\d) ([.,:/]) (?=\d)")
_HYPHEN = re.compile(r"(?<=[A-Za-z0-9]) (-) (?=[A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class Coding:
    """How a family's tokenizer is used: the ids of its markers, and the form that text takes."""

    eos_id: int
    pad_id: int
    start: tuple[int, ...]
    """What every decoder's text starts with."""
    source: Mapping[Marker, int]
    """The id of each marker in a source; a family may lack some."""
    target: Mapping[Marker, int]
    """The id of each marker in a decoder's text, in which the separator must not be the end."""
    silent: frozenset[int]
    """Ids that are left out of what a decoder generated."""
    reserved: Mapping[int, str]
    """The special tokens, which no text may become, by id."""
    prefixed: bool = False
    """Whether a word has another form at the start of a text, without its space."""
    spaced: bool = False
    """Whether decoding puts a space between any two tokens, as BERT's word pieces do."""


class PieceCodec(ABC):
    """Pieces to ids and back, over what a library's tokenizer does with plain text."""

    def __init__(self, coding: Coding, vocabulary: Mapping[str, int]) -> None:
        self.coding = coding
        self.eos_id, self.pad_id = coding.eos_id, coding.pad_id
        self._markers = {number: marker for marker, number in coding.target.items() if marker is not Marker.CLS}
        self._joiner = Joiner(vocabulary)

    @abstractmethod
    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text, by `_encode_text` or from a cache of it."""

    @abstractmethod
    def _ids(self, text: str) -> list[int]:
        """Return the tokenizer's ids of a text, no special tokens added."""

    @abstractmethod
    def _tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens of ids."""

    @abstractmethod
    def _string(self, ids: Sequence[int]) -> str:
        """Return the tokenizer's text of ids."""

    def encode(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of a source; markers that the family does not have are left out."""
        return self._encode(pieces, self.coding.source)

    def encode_target(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids that a decoder is to generate, the end token included."""
        return [*self._encode(pieces, self.coding.target), self.eos_id]

    def decoder_start(self, prompt: Iterable[str] = ()) -> list[int]:
        """Return the ids that a decoder's text starts with: the family's start, then the prompt."""
        return [*self.coding.start, *self._encode(prompt, self.coding.target)]

    def decode(self, ids: Iterable[int]) -> Pieces:
        """Return what a decoder generated after its start, up to the end token; padding is left out."""
        return cut_at_markers(ids, self.eos_id, self._markers, self.coding.silent, self._text)

    def measure(self, text: str) -> int:
        """Return how many ids a turn takes, its separator included."""
        return len(self.encode_text(text)) + 1

    def _encode(self, pieces: Iterable[str], markers: Mapping[Marker, int]) -> list[int]:
        ids: list[int] = []
        for piece in pieces:
            if not isinstance(piece, Marker):
                ids += self.encode_text(piece)
            elif piece in markers:
                ids.append(markers[piece])
        return ids

    def _encode_text(self, text: str) -> tuple[int, ...]:
        # A byte-level BPE has two forms of a word, with and without its space: every piece starts with a space, so
        # that only the first form is used. Scripts without spaces need none.
        lead = " " if self.coding.prefixed and text and not is_cjk(text[0]) else ""
        return tuple(self._plain_ids(lead + text))

    def _plain_ids(self, text: str) -> list[int]:
        ids, reserved = self._ids(text), self.coding.reserved
        if reserved.keys().isdisjoint(ids):
            return ids
        # A Unigram model (T5) has its special tokens among its pieces and finds them in text: cut them in two.
        cut = text
        for number in reserved.keys() & set(ids):
            token = reserved[number]
            cut = cut.replace(token, f"{token[:1]}\0{token[1:]}")
        return [number for part in cut.split("\0") for number in self._ids(part) if number not in reserved]

    def _text(self, ids: Sequence[int]) -> list[str]:
        if not ids:
            return []
        if self.coding.spaced:
            text = join_wordpieces(self._tokens(ids))
        else:
            text = self._string(self._joiner.clean(ids))
            text = text.removeprefix(" ") if self.coding.prefixed else text
        return [text] if text else []


def join_wordpieces(tokens: Sequence[str]) -> str:
    """Return the text of BERT's word pieces, with the spaces that a writer would put."""
    words: list[str] = []
    for token in tokens:
        if token.startswith("##") and words:
            words[-1] += token[2:]
        else:
            words.append(token)
    text = " ".join(words)
    for pattern in (_APOSTROPHE, _NUMBER, _HYPHEN):
        text = pattern.sub(r"\1", text)
    return join_units(text.split())
