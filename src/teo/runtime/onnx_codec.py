"""TokenizerCodec: pieces <-> token ids without torch and transformers, for our own tokenizer and other families'.

The same ids and pieces as `teo.runtime.torch_codec.Codec` gives for the tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from teo.errors import ModelError
from teo.layouts import LAYOUT_MARKERS, Marker
from teo.runtime.codec import Coding, PieceCodec
from teo.runtime.onnx_files import Description, load_stored
from teo.runtime.text_cache import TextCache
from teo.units import replace_surrogates

CODING = "codec.json"
"""The file beside the tokenizer of a family other than our own that says how it is used."""
_CACHED_CHARACTERS = 500_000
"""Characters of the texts that are kept: they must not grow with what users send."""


class TokenizerCodec(PieceCodec):
    """Pieces to ids and back for our own tokenizer, or for that of BART, T5 or Marian by what its export noted of it.

    Marian numbers the pieces of its SentencePiece model by a vocabulary of its own: `pieces`, in the order of ids.
    """

    def __init__(self, tokenizer: Tokenizer, coding: Coding, pieces: Sequence[str] = (), unknown: int = 0) -> None:
        self.tokenizer = tokenizer
        self._pieces, self._unknown = pieces, unknown
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        super().__init__(coding, self._numbers or tokenizer.get_vocab())
        self._encode_cached = TextCache(self._encode_text, _CACHED_CHARACTERS)

    def __len__(self) -> int:
        return len(self._pieces) or int(self.tokenizer.get_vocab_size())

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text; a lone surrogate counts as the replacement character."""
        return self._encode_cached(text)

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


def load_codec(file: Path, description: Description) -> TokenizerCodec:
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
        return TokenizerCodec(tokenizer, _own_coding(tokenizer, description))
    try:
        stored = json.loads(beside.read_text(encoding="utf-8"))
        pieces = tuple(map(str, stored.get("pieces", ())))
        return TokenizerCodec(tokenizer, load_stored(Coding, stored), pieces, int(stored.get("unknown", 0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{beside}: not the description of a tokenizer ({error}); export the model again") from error


def _own_coding(tokenizer: Tokenizer, description: Description) -> Coding:
    """Return how our own tokenizer is used: its markers are tokens of their own, in sources as in a decoder's text."""
    ids = {marker: tokenizer.token_to_id(marker.value) for marker in Marker}
    missing = [marker.value for marker, number in ids.items() if number is None and marker not in LAYOUT_MARKERS]
    if missing:
        raise ModelError(f"tokenizer: expected the marker {missing[0]} among its tokens, found none; export again")
    markers = {marker: int(number) for marker, number in ids.items() if number is not None}
    return Coding(
        eos_id=description.eos_id,
        pad_id=description.pad_id,
        start=(description.start_id,),
        source=markers,
        target=markers,
        silent=frozenset({description.pad_id, markers[Marker.CLS]}),
        reserved={},
    )


def _language_code(text: str) -> tuple[list[str], str]:
    """Return the code of a language (>>de<<) that a text for Marian starts with, if any, and the rest."""
    end = text.find("<<") + 2 if text.startswith(">>") else 1
    return ([text[:end]], text[end:]) if end > 1 else ([], text)


def _unspaced(run: str) -> str:
    """Return the text of SentencePiece's pieces: the first space is of its making."""
    return run.replace("▁", " ").removeprefix(" ")
