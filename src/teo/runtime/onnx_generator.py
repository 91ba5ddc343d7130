"""OnnxGenerator: an exported model on ONNX Runtime, behind the stages' protocol; needs no torch.

A row's result does not depend on the rows beside it, to the last bit: tokens stand in one line without padding, sums
of int8 products are exact (`teo.export.graph`), and where attention does need padding, sources are
padded to multiples of a width at which the padding adds nothing but zeros to sums that are made in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import InputError, ModelError
from teo.layouts import Pieces
from teo.runtime.generator import Generated, decoder_starts, text_limit
from teo.runtime.onnx_codec import load_codec
from teo.runtime.onnx_files import Description, Embedding
from teo.runtime.onnx_session import available_cores, open_graphs
from teo.runtime.search import Floats, Ids, Text, search_beams, search_greedily

_WIDTH = 32
"""Sources and scored targets are padded to a multiple of this: whole vector registers, whatever the batch."""
_BATCH_TOKENS = 4096
"""Tokens of all sources of a batch, at most, whatever `batch_size` says: memory stays bounded."""
_SCORED_TOKENS = 256
"""Positions scored at a time: each has a probability for every token of the vocabulary."""
_HIDDEN = np.float32(-1e30)
_LEAST = 1e-12
"""Added to a probability before its logarithm, as in training."""


class OnnxGenerator:
    """An exported model: pieces in, pieces out, in batches of like length; the order of the rows is kept.

    May be used from several threads at once: nothing of a call is kept.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        threads: int = 0,
        source_limit: int = 256,
        batch_size: int = 32,
        max_new_tokens: int = 256,
    ) -> None:
        path = Path(folder)
        self.description = Description.load(path)
        self.threads = threads or min(4, available_cores())
        self.batch_size = batch_size
        self.positions = self.description.positions
        self.max_new_tokens = max_new_tokens
        self.source_limit = min(source_limit, self.positions)
        """How many tokens a source may have."""
        own = path / "tokenizer.json"  # else the one that all weights of the model share
        self.codec = load_codec(own if own.is_file() else path.parent / own.name, self.description)
        self.embedding = Embedding(path, self.description)
        if len(self.embedding) < len(self.codec):
            raise ModelError(
                f"{path}: expected embeddings for the tokenizer's {len(self.codec)} tokens, found "
                f"{len(self.embedding)}; export the model again"
            )
        int8 = self.description.form == "int8"
        graphs = ("encoder.onnx", "decoder.onnx")
        self._encoder, self._decoder = open_graphs(path, graphs, threads=self.threads, int8=int8)

    def measure(self, text: str) -> int:
        """Return how many tokens a turn takes, its separator included."""
        return self.codec.measure(text)

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        """Return the most probable text by greedy or beam search for each source, in order, with token scores."""
        return [texts[0] for texts in self._search(sources, prompts, beams, per_token=True)]

    def generate_several(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, count: int
    ) -> list[list[Generated]]:
        """Return at most `count` texts for each source, the most probable first, by beam search of that width."""
        return self._search(sources, prompts, count, per_token=False)

    def _search(
        self, sources: Sequence[Pieces], prompts: Sequence[Pieces] | None, beams: int, *, per_token: bool
    ) -> list[list[Generated]]:
        """Return each source's texts, best first; one by greedy search where there is one beam."""
        encoded, starts = self._encode(sources), decoder_starts(self.codec.decoder_start, prompts, len(sources))
        results: dict[int, list[Text]] = {}
        # A batch has starts of one length, so that no decoder's text needs padding on its left.
        order = sorted(range(len(encoded)), key=lambda k: (len(starts[k]), len(encoded[k])), reverse=True)
        lengths, groups = [len(ids) for ids in encoded], [len(start) for start in starts]
        rows, tokens = max(1, self.batch_size // beams), _BATCH_TOKENS // beams
        for batch in batches(order, lengths, rows, groups=groups, tokens=tokens):
            steps = self.read([encoded[k] for k in batch])
            start = np.array([starts[k] for k in batch], dtype=np.int64)
            room = max(1, min(self.max_new_tokens, self.positions - start.shape[1]))
            limits = [text_limit(len(encoded[k]), room) for k in batch]
            end = self.codec.eos_id
            texts = (
                [[text] for text in search_greedily(steps, start, limits, end)]
                if beams == 1
                else search_beams(steps, start, limits, end, beams, per_token=per_token)
            )
            results.update(zip(batch, texts, strict=True))
        decode = self.codec.decode
        return [[Generated(decode(text.ids), tuple(text.scores)) for text in results[k]] for k in range(len(sources))]

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        """Return the log-probability of each target given its source, its end token included."""
        if len(sources) != len(targets):
            raise InputError(f"score: expected a target per source, found {len(sources)} and {len(targets)}")
        encoded, starts = self._encode(sources), decoder_starts(self.codec.decoder_start, prompts, len(sources))
        written = [self.codec.encode_target(target) for target in targets]
        whole = [len(start) + len(ids) for start, ids in zip(starts, written, strict=True)]
        if max(whole, default=0) > self.positions:
            raise InputError(f"target: expected at most {self.positions} tokens, found {max(whole)}; shorten the text")
        widths = [_rounded(length) for length in whole]
        results = [0.0] * len(sources)
        # Rows of the same source stand together: it is read once for all of its targets.
        order = sorted(range(len(encoded)), key=lambda k: (len(starts[k]), len(encoded[k]), encoded[k], whole[k]))
        for batch in batches(
            order, [len(ids) for ids in encoded], self.batch_size, groups=[len(start) for start in starts]
        ):
            unique = list(dict.fromkeys(encoded[k] for k in batch))
            place = {ids: number for number, ids in enumerate(unique)}
            steps = self.read(unique)
            for part in batches(batch, widths, len(batch), tokens=_SCORED_TOKENS):
                rows = np.array([place[encoded[k]] for k in part], dtype=np.int64)
                scores = steps.score(rows, [starts[k] for k in part], [written[k] for k in part])
                for k, score in zip(part, scores, strict=True):
                    results[k] = score
        return results

    def _encode(self, sources: Sequence[Pieces]) -> list[tuple[int, ...]]:
        encoded = [tuple(self.codec.encode(source)) for source in sources]
        for ids in encoded:
            if not 0 < len(ids) <= self.positions:
                raise InputError(
                    f"source: expected 1 to {self.positions} tokens, which is all that the model has positions for, "
                    f"found {len(ids)}; shorten the utterance"
                )
        return encoded

    def read(self, encoded: Sequence[tuple[int, ...]]) -> OnnxSteps:
        """Return the decoder's steps over a batch of sources, each read once."""
        flat = np.array([number for ids in encoded for number in ids], dtype=np.int64)
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        width = _rounded(int(lengths.max()))
        first = np.cumsum(lengths) - lengths
        inside = np.arange(width)[None] < lengths[:, None]
        slots = np.where(inside, first[:, None] + np.arange(width)[None], 0)
        bias = np.where(inside, np.float32(0), _HIDDEN)[:, None, None, :]
        positions = np.concatenate([np.arange(length) for length in lengths])
        # A token's turn is counted from the end, by the separators to its right.
        ends = [np.cumsum((np.array(ids) == self.description.sep_id)[::-1])[::-1] for ids in encoded]
        turns = [np.clip(count - 1, 0, self.description.turn_types - 1).astype(np.int64) for count in ends]
        inputs = {
            "embedded": self.embedding(flat),
            "turns": np.concatenate(turns),
            "positions": positions[:, None],
            "slots": slots,
            "places": np.flatnonzero(inside),
            "bias": bias,
        }
        names = [output.name for output in self._encoder.get_outputs()]
        read = dict(zip(names, self._encoder.run(None, _asked(self._encoder, inputs)), strict=True))
        read["bias"] = bias
        if "copy_keys" in read:
            read["source_ids"] = np.where(inside, flat[slots], self.codec.pad_id)[:, None, :]
        return OnnxSteps(self._decoder, self.embedding, self.description, read)


class OnnxSteps:
    """The decoder over a batch of sources: what it read, and the keys and values of what it wrote."""

    def __init__(self, session: Any, embedding: Embedding, description: Description, read: dict[str, Any]) -> None:
        self._session, self._embedding, self._description = session, embedding, description
        self._read = read
        self._sources = np.arange(len(read["bias"]))  # which of the sources read each row writes for
        self._cached = self._no_cache(len(read["bias"]))
        self._present = [name.replace("past", "present") for name in self._cached]

    def advance(self, tokens: Ids, count: int) -> tuple[Floats, Ids]:
        """Take further tokens and return the scores and ids of the `count` likeliest next ones."""
        wanted = np.zeros((len(tokens), 1, 1), dtype=np.int64)
        last = np.array([tokens.shape[1] - 1], dtype=np.int64)
        inputs = self._inputs(tokens, self._cached, self._read, last, wanted, count)
        found, ids, *present = self._session.run(["probabilities", "ids", *self._present], inputs)
        self._cached = dict(zip(self._cached, present, strict=True))
        return _logs(found[:, 0]), ids[:, 0]

    def keep(self, rows: Ids) -> None:
        """Go on with these rows only, in this order."""
        kept = self._sources[rows]
        if not np.array_equal(kept, self._sources):  # other texts of the same sources read the same
            self._read = {name: np.take(value, rows, axis=0) for name, value in self._read.items()}
        self._sources = kept
        self._cached = {name: np.take(value, rows, axis=0) for name, value in self._cached.items()}

    def score(self, rows: Ids, starts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of whole texts after starts of one length, each for one of the sources read."""
        begin = len(starts[0]) - 1
        inputs = [[*start, *ids[:-1]] for start, ids in zip(starts, texts, strict=True)]
        width = _rounded(max(len(row) for row in inputs))
        tokens = np.full((len(inputs), width), self._description.pad_id, dtype=np.int64)
        wanted = np.zeros((len(inputs), width - begin, 1), dtype=np.int64)
        for k, (row, ids) in enumerate(zip(inputs, texts, strict=True)):
            tokens[k, : len(row)] = row
            wanted[k, : len(ids), 0] = ids
        read = {name: np.take(value, rows, axis=0) for name, value in self._read.items()}
        asked = np.arange(begin, width, dtype=np.int64)
        feed = self._inputs(tokens, self._no_cache(len(rows)), read, asked, wanted, 1)
        scores = _logs(self._session.run(["wanted_probabilities"], feed)[0][:, :, 0])
        return [sum(row[: len(ids)].tolist()) for row, ids in zip(scores, texts, strict=True)]

    def _inputs(
        self, tokens: Ids, cached: dict[str, Any], read: dict[str, Any], at: Ids, wanted: Ids, count: int
    ) -> dict[str, Any]:
        length = tokens.shape[1]
        past = next(iter(cached.values())).shape[2]
        hidden = np.triu(np.full((length, past + length), _HIDDEN), past + 1)
        inputs = {
            "embedded": self._embedding(tokens),
            "past_length": np.array([past], dtype=np.int64),
            "own_bias": hidden[None, None],
            "at": at,
            "wanted": wanted,
            "count": np.array([count], dtype=np.int64),
        }
        return _asked(self._session, {**read, **cached, **inputs})

    def _no_cache(self, rows: int) -> dict[str, Any]:
        heads, size = self._description.kv_heads, self._description.head_size
        empty = np.zeros((rows, heads, 0, size), dtype=np.float32)
        names = [f"past_{part}_{k}" for k in range(self._description.decoder_layers) for part in ("key", "value")]
        return dict.fromkeys(names, empty)


def batches(
    order: Sequence[int],
    lengths: Sequence[int],
    rows: int,
    *,
    groups: Sequence[int] | None = None,
    tokens: int = _BATCH_TOKENS,
) -> Iterator[list[int]]:
    """Yield the rows of each batch, in the order given: at most so many rows and tokens, rows of one group."""
    batch: list[int] = []
    taken = 0
    for k in order:
        length = lengths[k]
        if batch and (len(batch) == rows or taken + length > tokens or (groups and groups[k] != groups[batch[0]])):
            yield batch
            batch, taken = [], 0
        batch.append(k)
        taken += length
    if batch:
        yield batch


def _asked(session: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs that a graph has: which they are depends on the family."""
    return {known.name: inputs[known.name] for known in session.get_inputs()}


def _logs(probabilities: Floats) -> Floats:
    """Return logarithms number by number: over arrays, the last bit depends on a number's place."""
    logs = [math.log(probability + _LEAST) for probability in probabilities.ravel().tolist()]
    return np.array(logs, dtype=np.float64).reshape(probabilities.shape)


def _rounded(length: int) -> int:
    return -(-length // _WIDTH) * _WIDTH
