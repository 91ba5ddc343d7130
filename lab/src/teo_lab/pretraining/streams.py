"""Pretraining text as token streams: compressed JSONL shards -> arrays of 16-bit ids that workers share.

A stream is `turn [SEP] turn [SEP] .. [EOS]` for one dialogue after another.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from teo.errors import DataError
from teo.files import open_text, write_whole
from teo.layouts import Marker
from teo.models.tokenizer import EOS, SPECIAL_TOKENS

SEP_ID, EOS_ID = SPECIAL_TOKENS.index(Marker.SEP), SPECIAL_TOKENS.index(EOS)
_LONGEST_TURN = 400
"""Tokens; a longer turn is a monologue, and the dialogue is cut there."""


def read_dialogues(path: Path) -> Iterator[list[str]]:
    """Yield the turns of each dialogue of a `.jsonl` or `.jsonl.xz` shard."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                turns = json.loads(line)["turns"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise DataError(
                    f'{path}:{number}: expected {{"turns": [...]}}, found {line[:60]!r} ({error})'
                ) from error
            yield turns


def tokenize_shard(path: Path, tokenizer: Tokenizer, batch: int = 4000) -> np.ndarray:
    """Return the token stream of one shard."""
    tokenizer.encode_special_tokens = True  # a literal "[SEP]" in a film's subtitle is text
    parts: list[np.ndarray] = []
    pending: list[list[str]] = []
    for turns in read_dialogues(path):
        pending.append(turns)
        if len(pending) == batch:
            parts.append(_stream(pending, tokenizer))
            pending = []
    parts.append(_stream(pending, tokenizer))
    return np.concatenate(parts)


def _stream(dialogues: Iterable[list[str]], tokenizer: Tokenizer) -> np.ndarray:
    dialogues = list(dialogues)
    flat = [turn for turns in dialogues for turn in turns]
    encoded = iter(tokenizer.encode_batch_fast(flat, add_special_tokens=False))
    ids: list[int] = []
    for turns in dialogues:
        for _ in turns:
            turn = next(encoded).ids
            if len(turn) > _LONGEST_TURN:
                ids.append(EOS_ID)
            elif turn:
                ids += turn
                ids.append(SEP_ID)
        ids.append(EOS_ID)
    return np.array(ids, dtype=np.uint16)


def save_stream(stream: np.ndarray, path: Path) -> None:
    """Write a token stream, whole or not at all."""
    write_whole(path, lambda beside: np.save(beside, stream))  # the name ends in .npy, or numpy would add it


def make_stream(shard: Path, stream: Path, tokenizer: str) -> None:
    """Write the token stream of a shard; the tokenizer comes as text, since each process needs its own."""
    save_stream(tokenize_shard(shard, Tokenizer.from_str(tokenizer)), stream)


@dataclass(frozen=True, slots=True)
class Corpus:
    """One shard's stream and where its dialogues with at least two turns start and end."""

    stream: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    weight: float

    @classmethod
    def load(cls, path: Path, weight: float = 1.0) -> Corpus:
        """Return a shard; `weight` says how often its text is drawn, 1 meaning as often as its size says."""
        if path.suffix == ".xz":
            with lzma.open(path, "rb") as compressed:
                stream = np.load(compressed)
        else:
            stream = np.load(path)
        borders = np.flatnonzero(stream == EOS_ID)
        starts = np.concatenate(([0], borders[:-1] + 1))
        turns = np.add.reduceat(stream == SEP_ID, starts)
        long_enough = turns > 1
        return cls(stream, starts[long_enough], borders[long_enough], weight * len(stream))

    def share(self, rank: int, world: int) -> Corpus:
        """Return what one of several processes reads: dialogues next to each other that no other process reads.

        The shares have about as many tokens, and together they are the whole.
        """
        if world == 1:
            return self
        if len(self.starts) < world:
            raise DataError(
                f"shards: expected a dialogue for each of {world} processes, found {len(self.starts)}; "
                "use larger shards or fewer processes"
            )
        first, after = (self._border(number, world) for number in (rank, rank + 1))
        start, end = int(self.starts[first]), int(self.ends[after - 1])
        stream = self.stream[start : end + 1]
        weight = self.weight * len(stream) / len(self.stream)
        return Corpus(stream, self.starts[first:after] - start, self.ends[first:after] - start, weight)

    def _border(self, number: int, world: int) -> int:
        """Return the dialogue at which a process's share begins; each process has one at least."""
        count = len(self.starts)
        at = int(np.searchsorted(self.starts, number * len(self.stream) // world))
        return count if number == world else min(max(at, number), count - world + number)

    def draw_dialogue(self, position: float) -> list[list[int]]:
        """Return the turns of the dialogue at a position between 0 and 1 of the stream: long ones come more often."""
        at = int(position * (len(self.stream) - 1))
        index = min(int(np.searchsorted(self.ends, at)), len(self.ends) - 1)
        return split_turns(self.stream[self.starts[index] : self.ends[index]].tolist())


def split_turns(ids: list[int]) -> list[list[int]]:
    """Return the turns of a dialogue's ids."""
    turns: list[list[int]] = []
    start = 0
    while start < len(ids):
        end = ids.index(SEP_ID, start)
        turns.append(ids[start:end])
        start = end + 1
    return turns


def frequent_tokens(corpora: Iterable[Corpus], cjk: Sequence[bool], share: int) -> np.ndarray:
    """Return which ids are among the `share` most frequent of their script: alone they make no span worth leaving out.

    Counted together, the characters of the larger language would leave no room for the other's words.
    """
    counts = np.zeros(len(cjk), dtype=np.int64)
    for corpus in corpora:
        counts += np.bincount(corpus.stream, minlength=len(cjk))
    frequent = np.zeros(len(cjk), dtype=bool)
    for script in (True, False):
        ids = np.flatnonzero(np.asarray(cjk) == script)
        frequent[ids[np.argsort(-counts[ids])[:share]]] = True
    return frequent
