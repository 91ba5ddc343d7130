"""Codec: pieces (markers and users' text) <-> token ids, for any Hugging Face tokenizer of a seq2seq model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from teo.errors import ModelError
from teo.layouts import BASIC_MARKERS, PLAIN, Layout, Marker
from teo.runtime.codec import Coding, PieceCodec
from teo.runtime.text_cache import TextCache
from teo.units import replace_surrogates

THEN = "[THEN]"
"""The `[SEP]` of a decoder's text if the family's own separator is also its end token (BART, T5)."""
_FAMILY_MARKERS = (Marker.CLS, Marker.SEP)
_CACHED_CHARACTERS = 1 << 23
"""Characters of the texts that are kept: enough for the turns of a dataset, which every epoch reads."""


class Codec(PieceCodec):
    """Pieces to ids and back for one model; the tokenizer gets the markers it lacks as special tokens."""

    def __init__(self, tokenizer: Any, config: Any, layout: Layout = PLAIN) -> None:
        self.tokenizer = tokenizer
        self.layout = layout
        """The layout whose markers it needs; a saved tokenizer may have more."""
        eos_id = int(_first(getattr(config, "eos_token_id", None), tokenizer.eos_token_id, tokenizer.sep_token_id))
        self.added = _add_markers(tokenizer, eos_id, layout)
        """How many tokens were new to the tokenizer; the model's embeddings must have room for them."""
        super().__init__(_find_coding(tokenizer, config, eos_id), tokenizer.get_vocab())
        self.coding = replace(
            self.coding,
            prefixed=self._plain_ids("a a") != self._plain_ids("a") * 2,
            spaced=" " in self._string(self._plain_ids("中文")).strip(),
        )
        self._cached = TextCache(self._encode_text, _CACHED_CHARACTERS)

    def __len__(self) -> int:
        """Return how many ids there are; embeddings need at least as many rows."""
        return len(self.tokenizer)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the ids of users' text, kept for every epoch; a lone surrogate counts as the replacement character."""
        return self._cached(text)

    def _ids(self, text: str) -> list[int]:
        text = replace_surrogates(text)
        return list(map(int, self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)))

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        return list(map(str, self.tokenizer.convert_ids_to_tokens(list(ids))))

    def _string(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; the cache of texts stays behind."""
        return {name: value for name, value in self.__dict__.items() if name != "_cached"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cached = TextCache(self._encode_text, _CACHED_CHARACTERS)


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


def _find_coding(tokenizer: Any, config: Any, eos_id: int) -> Coding:
    """Return the ids of a tokenizer's markers and special tokens; the forms of text are not looked at."""
    pad_id = int(_first(tokenizer.pad_token_id, getattr(config, "pad_token_id", None), eos_id))
    source = _source_markers(tokenizer, eos_id)
    silent = (pad_id, tokenizer.bos_token_id, tokenizer.cls_token_id)
    return Coding(
        eos_id=eos_id,
        pad_id=pad_id,
        start=tuple(_decoder_start(tokenizer, config)),
        source=source,
        target={**source, Marker.SEP: _target_separator(tokenizer)},
        silent=frozenset(int(number) for number in silent if number is not None),
        reserved={number: str(tokenizer.convert_ids_to_tokens(number)) for number in _reserved_ids(tokenizer)},
    )


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


def _first(*values: Any) -> Any:
    """Return the first value that is there; a list of end tokens counts by its first."""
    for value in values:
        if isinstance(value, list | tuple) and value:
            return value[0]
        if value is not None:
            return value
    raise ModelError("model: expected token ids for its start, end and padding, found none; set them in config.json")
