"""TokenizerCodec: pieces <-> token ids for the project's own tokenizer, without torch and transformers.

The same ids and pieces as `teo.runtime.torch_codec.Codec` gives for that tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from teo.errors import ModelError
from teo.layouts import LAYOUT_MARKERS, Marker, Pieces
from teo.runtime.generator import Joiner, cut_at_markers
from teo.units import replace_surrogates

_CACHED_TEXTS = 1 << 13
_CACHED_CHARACTERS = 4096
"""Longer texts are not kept: what is kept must not grow with what users send."""
_LONGEST_TOKEN = 64


class TokenizerCodec:
    """Pieces to ids and back; a marker is one id of the model's own, text never is, even where it spells a marker."""

    def __init__(self, tokenizer: Tokenizer, *, start_id: int, eos_id: int, pad_id: int) -> None:
        self.tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # users' text has no special tokens
        tokenizer.no_padding()
        tokenizer.no_truncation()
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

    @classmethod
    def load(cls, file: Path, *, start_id: int, eos_id: int, pad_id: int) -> TokenizerCodec:
        """Return the codec of a `tokenizer.json`."""
        if not file.is_file():
            raise ModelError(f"{file}: expected the model's tokenizer, found none; export the model again")
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises plain Exception
            raise ModelError(f"{file}: not a tokenizer ({error}); export the model again") from error
        return cls(tokenizer, start_id=start_id, eos_id=eos_id, pad_id=pad_id)

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
        """Return how many ids a turn takes, its separator included; for very long text a lower bound."""
        if len(text) > _LONGEST_TOKEN * 2048:  # more tokens than any source may have
            return len(text) // _LONGEST_TOKEN
        return len(self.encode_text(text)) + 1

    def _encode_text(self, text: str) -> tuple[int, ...]:
        clean = text if text.isascii() else replace_surrogates(text)
        return tuple(self.tokenizer.encode(clean, add_special_tokens=False).ids)

    def _text(self, ids: Sequence[int]) -> list[str]:
        text = self.tokenizer.decode(self._joiner.clean(ids), skip_special_tokens=False) if ids else ""
        return [text] if text else []
