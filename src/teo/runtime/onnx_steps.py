"""OnnxSteps: an exported decoder over a batch of sources, pass by pass; texts advance by any number of tokens each.

A text's numbers do not depend on how many tokens a pass takes, nor on the texts beside it, to the last bit. Three
things see to that. Keys and values stand at their own position in a text, and texts are padded to multiples of a width,
so that sums run in one order. Queries are laid out by at least two, since a product of one row takes another way
through the library and rounds otherwise. All other sums are integers, or of one row by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from teo.runtime.onnx_files import Description, Embedding
from teo.runtime.search import Floats, Ids

HIDDEN = np.float32(-1e30)
"""What is added to the score of a position that must not be read."""
_WIDTH = 32
"""Sources and texts are padded to a multiple of this: whole vector registers, whatever the batch."""
_LEAST_QUERIES = 2
_LEAST = 1e-12
"""Added to a probability before its logarithm, as in training."""


class OnnxSteps:
    """The decoder over a batch of sources: what it read, and the keys and values of what it wrote."""

    def __init__(self, session: Any, embedding: Embedding, description: Description, read: dict[str, Any]) -> None:
        self._session, self._embedding, self._description = session, embedding, description
        self._read = read
        rows = len(read["bias"])
        self._sources = np.arange(rows)  # which of the sources read each row writes for
        self._lengths = np.zeros(rows, dtype=np.int64)  # tokens of each text that are cached
        self._cached = self._no_cache(rows)
        self._present = [name.replace("past", "present") for name in self._cached]

    def advance(self, tokens: Sequence[Sequence[int]], asked: Sequence[int], count: int) -> tuple[Floats, Ids]:
        """Take further tokens of each text; return scores and ids of the `count` likeliest after the last `asked`."""
        wanted = np.zeros((sum(asked), 1), dtype=np.int64)
        feed = self._inputs(tokens, asked, wanted, count)
        found, ids, *present = self._session.run(["probabilities", "ids", *self._present], feed)
        self._cached = dict(zip(self._cached, present, strict=True))
        self._lengths = self._lengths + np.array([len(row) for row in tokens], dtype=np.int64)
        return _logs(found), ids

    def forget(self, counts: Sequence[int]) -> None:
        """Take back the last tokens of each text."""
        self._lengths = self._lengths - np.array(counts, dtype=np.int64)

    def keep(self, rows: Ids) -> None:
        """Continue with these rows only, in this order."""
        kept = self._sources[rows]
        if not np.array_equal(kept, self._sources):  # other texts of the same sources read the same
            self._read = {name: np.take(value, rows, axis=0) for name, value in self._read.items()}
        self._sources, self._lengths = kept, self._lengths[rows]
        self._cached = {name: np.take(value, rows, axis=0) for name, value in self._cached.items()}

    def score(self, rows: Ids, starts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of whole texts after their starts, each for one of the sources read."""
        read = {name: np.take(value, rows, axis=0) for name, value in self._read.items()}
        whole = OnnxSteps(self._session, self._embedding, self._description, read)
        tokens = [[*start, *ids[:-1]] for start, ids in zip(starts, texts, strict=True)]
        wanted = np.array([number for ids in texts for number in ids], dtype=np.int64)[:, None]
        feed = whole._inputs(tokens, [len(ids) for ids in texts], wanted, 1)
        scores = iter(_logs(self._session.run(["wanted_probabilities"], feed)[0][:, 0]).tolist())
        return [sum(next(scores) for _ in ids) for ids in texts]

    def _inputs(self, tokens: Sequence[Sequence[int]], asked: Sequence[int], wanted: Ids, count: int) -> dict[str, Any]:
        """Return what the graph takes: the new tokens in one line, and where each stands."""
        flat = np.array([number for row in tokens for number in row], dtype=np.int64)
        sizes = np.array([len(row) for row in tokens], dtype=np.int64)
        inside, slots, places = lay_out(sizes, max(_LEAST_QUERIES, int(sizes.max())))
        owner = np.repeat(np.arange(len(sizes)), sizes)
        past, length = self._lengths[:, None], inside.shape[1]
        before = np.arange(len(flat)) - slots[owner, 0]  # new tokens of its text in front of each
        last = np.flatnonzero(before >= (sizes - np.array(asked))[owner])
        position = np.arange(rounded(int((self._lengths + sizes).max())))[None]
        width = next(iter(self._cached.values())).shape[1]
        new = position - past + len(sizes) * width + slots[:, :1]
        stored = np.arange(len(sizes))[:, None] * width + position
        text_slots = np.where(
            position < past, stored, np.where(position < past + sizes[:, None], new, len(sizes) * width)
        )
        readable = position[:, None] <= past[:, :, None] + np.arange(length)[None, :, None]
        inputs = {
            "embedded": self._embedding(flat),
            "positions": (before + self._lengths[owner])[:, None],
            "slots": slots,
            "places": places,
            "text_slots": text_slots,
            "own_bias": np.where(readable, np.float32(0), HIDDEN)[:, None],
            "asked": last,
            "asked_rows": owner[last],
            "asked_places": places[last],
            "wanted": wanted,
            "count": np.array([count], dtype=np.int64),
        }
        return taken(self._session, {**self._read, **self._cached, **inputs})

    def _no_cache(self, rows: int) -> dict[str, Any]:
        described = self._description
        empty = np.zeros((rows, 0, described.heads * described.head_size), dtype=np.float32)
        names = [f"past_{part}_{k}" for k in range(described.decoder_layers) for part in ("key", "value")]
        return dict.fromkeys(names, empty)


def lay_out(sizes: Ids, width: int) -> tuple[Any, Ids, Ids]:
    """Return how rows of tokens that stand in one line lie in rows of a width.

    What comes back is which slots hold a token, which token each slot holds (the first, if none), and in which slot
    each token lies, counted over all rows.
    """
    inside = np.arange(width)[None] < sizes[:, None]
    first = np.cumsum(sizes) - sizes
    return inside, np.where(inside, first[:, None] + np.arange(width)[None], 0), np.flatnonzero(inside)


def rounded(length: int) -> int:
    """Return the width that a text of this length is padded to."""
    return -(-length // _WIDTH) * _WIDTH


def taken(session: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs that a graph has: which they are depends on the family."""
    return {known.name: inputs[known.name] for known in session.get_inputs()}


def _logs(probabilities: Floats) -> Floats:
    """Return logarithms number by number: over arrays, the last bit depends on a number's position."""
    logs = [math.log(probability + _LEAST) for probability in probabilities.ravel().tolist()]
    return np.array(logs, dtype=np.float64).reshape(probabilities.shape)
