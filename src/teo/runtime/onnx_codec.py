"""Codecs without torch and transformers: pieces <-> token ids for the project's own tokenizer and for other families'.

The same ids and pieces as `teo.runtime.torch_codec.Codec` gives for the tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from teo.errors import ModelError
from teo.layouts import LAYOUT_MARKERS, Marker, Pieces
from teo.runtime.codec import Coding, PieceCodec
from teo.runtime.generator import Joiner, cut_at_markers
from teo.runtime.onnx_files import Description
from teo.units import replace_surrogates

CODING = "codec.json"
"""The file beside the tokenizer of a family other than our own that says how it is used."""
_CACHED_TEXTS = 1 << 13
_CACHED_CHARACTERS = 4096
"""Longer texts are not kept: what is kept must not grow with what users send."""


class TokenizerCodec:
    """Pieces to ids and back; a marker is one id of the model's own, text never is, even where it spells a marker."""

    def __init__(self, tokenizer: Tokenizer, *, start_id: int, eos_id: int, pad_id: int) -> None:
        self.tokenizer = tokenizer
        self.start_id, self.eos_id, self.pad_id = start_id, eos_id, pad_id
        self._ids: dict[Marker, int] = {}
        for marker in Marker:
            number = tokenizer.token_to_id(marker.value)
            if number is None and marker in LAYOUT_MARKERS:
                continue
            if number is None:
                raise ModelError(
                    f"tokenizer: expected the marker {marker.value} among its tokens, found none; export again"
                )
            self._ids[marker] = int(number)
        self._markers = {number: marker for marker, number in self._ids.items() if marker is not Marker.CLS}
        self._silent = {pad_id, self._ids[Marker.CLS]}
        self._joiner = Joiner(tokenizer.get_vocab())
        self._encode_cached = lru_cache(_CACHED_TEXTS)(self._encode_text)

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text; a lone surrogate counts as the replacement character."""
        return self._encode_cached(text) if len(text) <= _CACHED_CHARACTERS else self._encode_text(text)

    def encode(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of pieces, each encoded by itself; markers of a layout that the model has not are left out."""
        ids: list[int] = []
        for piece in pieces:
            if not isinstance(piece, Marker):
                ids += self.encode_text(piece)
            elif piece in self._ids:
                ids.append(self._ids[piece])
        return ids

    def encode_target(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids that a decoder is to generate, the end token included."""
        return [*self.encode(pieces), self.eos_id]

    def decoder_start(self, prompt: Iterable[str] = ()) -> list[int]:
        """Return the ids that a decoder's text starts with: the start token, then the prompt."""
        return [self.start_id, *self.encode(prompt)]

    def decode(self, ids: Iterable[int]) -> Pieces:
        """Return what a decoder generated after its start, up to the end token."""
        return cut_at_markers(ids, self.eos_id, self._markers, self._silent, self._text)

    def measure(self, text: str) -> int:
        """Return how many ids a turn takes, its separator included."""
        return len(self.encode_text(text)) + 1

    def _encode_text(self, text: str) -> tuple[int, ...]:
        text = text if text.isascii() else replace_surrogates(text)
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _text(self, ids: Sequence[int]) -> list[str]:
        text = self.tokenizer.decode(self._joiner.clean(ids), skip_special_tokens=False) if ids else ""
        return [text] if text else []


class FamilyCodec(PieceCodec):
    """Pieces to ids and back for the tokenizer of BART, T5 or Marian, by what was noted of it at its export.

    Marian numbers the pieces of its SentencePiece model by a vocabulary of its own: `pieces`, in the order of ids.
    """

    def __init__(self, tokenizer: Tokenizer, coding: Coding, pieces: Sequence[str] = (), unknown: int = 0) -> None:
        self.tokenizer = tokenizer
        self._pieces, self._unknown = pieces, unknown
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        super().__init__(coding, self._numbers or tokenizer.get_vocab())
        self._encode_cached = lru_cache(_CACHED_TEXTS)(self._encode_text)

    def __len__(self) -> int:
        return len(self._pieces) or int(self.tokenizer.get_vocab_size())

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text; a lone surrogate counts as the replacement character."""
        return self._encode_cached(text) if len(text) <= _CACHED_CHARACTERS else self._encode_text(text)

    def _ids(self, text: str) -> list[int]:
        text = replace_surrogates(text)
        if not self._pieces:
            return list(self.tokenizer.encode(text, add_special_tokens=False).ids)
        code, text = _language_code(text)
        found = self.tokenizer.encode(text, add_special_tokens=False).tokens
        return [self._numbers.get(piece, self._unknown) for piece in (*code, *found)]

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        if self._pieces:
            return [self._pieces[number] for number in ids]
        return [self.tokenizer.id_to_token(number) or "" for number in ids]

    def _string(self, ids: Sequence[int]) -> str:
        if not self._pieces:
            return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))
        text, run = "", ""
        for number in ids:
            if number == self._unknown or number in self.coding.reserved:
                text, run = text + _unspaced(run) + self._pieces[number] + " ", ""
            else:
                run += self._pieces[number]
        return (text + _unspaced(run)).strip()


def load_codec(file: Path, description: Description) -> TokenizerCodec | FamilyCodec:
    """Return the codec of an exported model's `tokenizer.json`: our own backbone's, or another family's."""
    if not file.is_file():
        raise ModelError(f"{file}: expected the model's tokenizer, found none; export the model again")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{file}: not a tokenizer ({error}); export the model again") from error
    tokenizer.encode_special_tokens = True  # users' text has no special tokens
    tokenizer.no_padding()
    tokenizer.no_truncation()
    beside = file.with_name(CODING)
    if not beside.is_file():
        ids = {name: getattr(description, name) for name in ("start_id", "eos_id", "pad_id")}
        return TokenizerCodec(tokenizer, **ids)
    try:
        stored = json.loads(beside.read_text(encoding="utf-8"))
        pieces = tuple(map(str, stored.get("pieces", ())))
        return FamilyCodec(tokenizer, Coding.from_dict(stored), pieces, int(stored.get("unknown", 0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{beside}: not the description of a tokenizer ({error}); export the model again") from error


def _language_code(text: str) -> tuple[list[str], str]:
    """Return the code of a language (>>de<<) that a text for Marian starts with, if any, and the rest."""
    end = text.find("<<") + 2 if text.startswith(">>") else 1
    return ([text[:end]], text[end:]) if end > 1 else ([], text)


def _unspaced(run: str) -> str:
    """Return the text of SentencePiece's pieces: the first space is of its making."""
    return run.replace("▁", " ").removeprefix(" ")
