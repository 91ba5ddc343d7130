"""Codec: pieces (markers and users' text) <-> token ids, for any Hugging Face tokenizer of a seq2seq model.

Each piece is encoded by itself: a marker is one id of the model's own, text never is, even where it spells a marker.
Text starts every piece in the form that it has inside a sentence, so that a word has the same ids in a turn, in an
operation and in the rewrite, and copying words means copying ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from teo.errors import ModelError
from teo.layouts import BASIC_MARKERS, PLAIN, Layout, Marker, Pieces
from teo.runtime.generator import Joiner, cut_at_markers
from teo.units import is_cjk, join_units

THEN = "[THEN]"
"""The `[SEP]` of a decoder's text where the family's own separator is also its end token (BART, T5)."""
_FAMILY_MARKERS = (Marker.CLS, Marker.SEP)
_CACHED_TEXTS = 1 << 17
_APOSTROPHE = re.compile(r"(?<=\w) (['’]) (?=(?:s|m|d|t|re|ve|ll)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=\d) ([.,:/]) (?=\d)")
_HYPHEN = re.compile(r"(?<=[A-Za-z0-9]) (-) (?=[A-Za-z0-9])")


class Codec:
    """Pieces to ids and back for one model; the tokenizer gets the markers it lacks as special tokens."""

    def __init__(self, tokenizer: Any, config: Any, layout: Layout = PLAIN) -> None:
        self.tokenizer = tokenizer
        self.layout = layout
        """The layout whose markers were asked for; a saved tokenizer may have more."""
        self.eos_id = int(_first(getattr(config, "eos_token_id", None), tokenizer.eos_token_id, tokenizer.sep_token_id))
        self.pad_id = int(_first(tokenizer.pad_token_id, getattr(config, "pad_token_id", None), self.eos_id))
        self.added = _add_markers(tokenizer, self.eos_id, layout)
        """How many tokens were new to the tokenizer; the model's embeddings must have room for them."""
        self._source_ids = _source_markers(tokenizer, self.eos_id)
        self._target_ids = {**self._source_ids, Marker.SEP: _target_separator(tokenizer)}
        self._markers = {number: marker for marker, number in self._target_ids.items() if marker is not Marker.CLS}
        self._start = _decoder_start(tokenizer, config)
        self._silent = {self.pad_id, tokenizer.bos_token_id, tokenizer.cls_token_id}
        self._reserved = _reserved_ids(tokenizer)
        self._joiner = Joiner(tokenizer.get_vocab())
        self._prefixed = self._plain_ids("a a") != self._plain_ids("a") * 2
        self._spaced = " " in tokenizer.decode(self._plain_ids("中文"), clean_up_tokenization_spaces=False).strip()
        self.encode_text = lru_cache(_CACHED_TEXTS)(self._encode_text)
        """Return the ids of users' text; kept, since every epoch reads the same turns."""

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Codec:
        """Return the codec of a saved model: its folder, or its name on a hub."""
        import transformers

        register_backbone()
        tokenizer = load_tokenizer(folder)
        return cls(tokenizer, transformers.AutoConfig.from_pretrained(str(folder)))

    def __len__(self) -> int:
        """Return how many ids there are; embeddings need at least as many rows."""
        return len(self.tokenizer)

    def encode(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of a source; markers that the family does not have are left out."""
        return self._encode(pieces, self._source_ids)

    def encode_target(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids that a decoder is to write, the end token included."""
        return [*self._encode(pieces, self._target_ids), self.eos_id]

    def decoder_start(self, prompt: Iterable[str] = ()) -> list[int]:
        """Return the ids that a decoder's text starts with: the family's start, then the prompt."""
        return [*self._start, *self._encode(prompt, self._target_ids)]

    def decode(self, ids: Iterable[int]) -> Pieces:
        """Return what a decoder wrote after its start, up to the end token; padding is left out."""
        return cut_at_markers(ids, self.eos_id, self._markers, self._silent, self._text)

    def measure(self, text: str) -> int:
        """Return how many ids a turn takes, its separator included."""
        return len(self.encode_text(text)) + 1

    def _encode(self, pieces: Iterable[str], markers: dict[Marker, int]) -> list[int]:
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
        lead = " " if self._prefixed and text and not is_cjk(text[0]) else ""
        return tuple(self._plain_ids(lead + text))

    def _plain_ids(self, text: str) -> list[int]:
        ids = [int(k) for k in self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)]
        if self._reserved.isdisjoint(ids):
            return ids
        # A Unigram model (T5) has its special tokens among its pieces and finds them in text: cut them in two.
        cut = text
        for number in self._reserved.intersection(ids):
            token = str(self.tokenizer.convert_ids_to_tokens(number))
            cut = cut.replace(token, f"{token[:1]}\0{token[1:]}")
        parts = [
            self.tokenizer.encode(part, add_special_tokens=False, split_special_tokens=True) for part in cut.split("\0")
        ]
        return [int(number) for part in parts for number in part if number not in self._reserved]

    def _text(self, ids: Sequence[int]) -> list[str]:
        if not ids:
            return []
        if self._spaced:
            text = _join_wordpieces(self.tokenizer.convert_ids_to_tokens(list(ids)))
        else:
            text = self.tokenizer.decode(
                self._joiner.clean(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
            text = text.removeprefix(" ") if self._prefixed else text
        return [text] if text else []

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; the cache of texts stays behind."""
        return {name: value for name, value in self.__dict__.items() if name != "encode_text"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.encode_text = lru_cache(_CACHED_TEXTS)(self._encode_text)


def load_tokenizer(folder: str | Path) -> Any:
    """Return a model's tokenizer; a folder without one is one clear line."""
    from transformers import AutoTokenizer

    path = Path(folder)
    if path.is_dir() and not any((path / name).is_file() for name in _TOKENIZER_FILES):
        raise ModelError(
            f"{path}: expected a tokenizer beside the model, found none of {', '.join(_TOKENIZER_FILES)}; "
            "save the tokenizer into the same folder"
        )
    try:
        return AutoTokenizer.from_pretrained(str(folder))
    except Exception as error:  # transformers raises what its parts raise: OSError, ValueError, ImportError, KeyError
        raise ModelError(f"{folder}: the tokenizer cannot be loaded ({first_line(error)})") from error


_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "source.spm")


def register_backbone() -> None:
    """Make the project's own backbone known to transformers' Auto classes."""
    import teo.models  # noqa: F401


def first_line(error: BaseException) -> str:
    """Return an error's first line, for use inside one of ours."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def _add_markers(tokenizer: Any, eos_id: int, layout: Layout) -> int:
    """Add the markers that the tokenizer lacks as special tokens; return how many were new."""
    known = tokenizer.get_vocab()
    wanted = [marker.value for marker in (*BASIC_MARKERS, *layout.markers) if marker not in _FAMILY_MARKERS]
    if known.get(Marker.SEP.value, eos_id) == eos_id:
        wanted.append(THEN)
    missing = [token for token in wanted if token not in known]
    return int(tokenizer.add_tokens(missing, special_tokens=True)) if missing else 0


def _source_markers(tokenizer: Any, eos_id: int) -> dict[Marker, int]:
    """Return the id of each marker in a source; T5 and Marian have no CLS."""
    known = tokenizer.get_vocab()
    ids = {
        marker: int(tokenizer.convert_tokens_to_ids(marker.value))
        for marker in Marker
        if marker not in _FAMILY_MARKERS and (marker in BASIC_MARKERS or marker.value in known)
    }
    start = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    if start is not None:
        ids[Marker.CLS] = int(start)
    ids[Marker.SEP] = int(_first(tokenizer.sep_token_id, eos_id))
    return ids


def _reserved_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids that no text may have: those of every special token but the unknown one."""
    special = {int(number) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(special | {int(number) for number in tokenizer.all_special_ids}) - {tokenizer.unk_token_id}


def _target_separator(tokenizer: Any) -> int:
    """Return the id of `[SEP]` in a decoder's text, which must not end it."""
    return int(tokenizer.convert_tokens_to_ids(THEN if THEN in tokenizer.get_vocab() else Marker.SEP.value))


def _decoder_start(tokenizer: Any, config: Any) -> list[int]:
    """Return what every decoder's text starts with.

    BART was pretrained to write its start-of-text token after the decoder's start; the others were not.
    """
    bos = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
    start = _first(getattr(config, "decoder_start_token_id", None), bos, tokenizer.pad_token_id)
    if getattr(config, "model_type", "") == "bart" and bos is not None and bos != start:
        return [int(start), int(bos)]
    return [int(start)]


def _join_wordpieces(tokens: Sequence[str]) -> str:
    """Return the text of BERT's word pieces: spaces only where a writer would put them."""
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


def _first(*values: Any) -> Any:
    """Return the first value that is there; a list of end tokens counts by its first."""
    for value in values:
        if isinstance(value, list | tuple) and value:
            return value[0]
        if value is not None:
            return value
    raise ModelError("model: expected token ids for its start, end and padding, found none; set them in config.json")
