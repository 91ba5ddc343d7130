"""OnnxGenerator: an exported model on ONNX Runtime, behind the stages' protocol; needs no torch.

A row's result does not depend on the rows beside it, to the last bit: tokens stand in one line without padding, sums
of int8 products are exact (`teo.export.graph`), and if attention does need padding, sources are
padded to multiples of a width at which the padding adds nothing but zeros to sums that are made in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from teo.cores import available_cores
from teo.errors import InputError, ModelError
from teo.layouts import Pieces
from teo.runtime.drafts import Marks, batch_drafts
from teo.runtime.generator import Generated, decoder_starts, measure_bounded, text_limit
from teo.runtime.onnx_codec import load_codec
from teo.runtime.onnx_files import Description, Embedding
from teo.runtime.onnx_session import open_graphs
from teo.runtime.onnx_steps import HIDDEN, OnnxSteps, lay_out, rounded, taken
from teo.runtime.search import Draft, Text, search_beams, search_greedily

_BATCH_TOKENS = 4096
"""Tokens of all sources of a batch, padding included, whatever `batch_size` says: memory stays bounded."""
_ENCODER_TOKENS = 512
"""Tokens that the encoder reads at once: more of them leave the processor's cache and take longer each."""
_SHORT, _ALIKE = 64, 0.75
"""Up to which width sources are read together whatever their length, and how long the shortest must be beyond it."""
_SCORED_TOKENS = 256
"""Positions scored at a time: each has a probability for every token of the vocabulary."""


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
        self._marks = Marks(self.codec)
        self.drafts = True
        """Whether greedy search checks drafts from the source: the same texts and scores in fewer passes."""
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
        """Return how many tokens a turn takes, its separator included; of one that never fits, more than do."""
        return measure_bounded(self.codec.measure, text, self.source_limit)

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
        """Return each source's texts, best first; one by greedy search if there is one beam."""
        encoded, starts = self._encode(sources), decoder_starts(self.codec.decoder_start, prompts, len(sources))
        results: dict[int, list[Text]] = {}
        order = sorted(range(len(encoded)), key=lambda k: len(encoded[k]), reverse=True)
        rows, tokens = max(1, self.batch_size // beams), _BATCH_TOKENS // beams
        for batch in batches(order, [len(ids) for ids in encoded], rows, tokens=tokens):
            steps, start = self.read([encoded[k] for k in batch]), [starts[k] for k in batch]
            rooms = [max(1, min(self.max_new_tokens, self.positions - len(ids))) for ids in start]
            limits = [text_limit(len(encoded[k]), room) for k, room in zip(batch, rooms, strict=True)]
            end = self.codec.eos_id
            if beams == 1:
                drafts = self._drafts([(sources[k], prompts[k] if prompts else ()) for k in batch])
                texts = [[text] for text in search_greedily(steps, start, limits, end, drafts)]
            else:
                texts = search_beams(steps, start, limits, end, beams, per_token=per_token)
            results.update(zip(batch, texts, strict=True))
        decode = self.codec.decode
        return [[Generated(decode(text.ids), tuple(text.scores)) for text in results[k]] for k in range(len(sources))]

    def _drafts(self, rows: Sequence[tuple[Pieces, Pieces]]) -> Draft | None:
        """Return the drafts of a batch's sources and prompts; none if they are switched off."""
        return batch_drafts(self.codec, self._marks, rows) if self.drafts else None

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
        results = [0.0] * len(sources)
        # Rows of the same source stand together: it is read once for all of its targets.
        order = sorted(range(len(encoded)), key=lambda k: (len(encoded[k]), encoded[k], whole[k]))
        for batch in batches(order, [len(ids) for ids in encoded], self.batch_size):
            unique = list(dict.fromkeys(encoded[k] for k in batch))
            numbers = {ids: number for number, ids in enumerate(unique)}
            steps = self.read(unique)
            for part in batches(batch, whole, len(batch), tokens=_SCORED_TOKENS):
                rows = np.array([numbers[encoded[k]] for k in part], dtype=np.int64)
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
        lengths = [len(ids) for ids in encoded]
        width = rounded(max(lengths))
        inside = np.arange(width)[None] < np.array(lengths)[:, None]
        parts = list(encoder_parts(lengths))
        if len(parts) == 1:
            read = self._read_part(encoded)
        else:
            read = {}
            for part in parts:
                for name, value in self._read_part([encoded[k] for k in part]).items():
                    shape = (len(encoded), *value.shape[1:-2], width, value.shape[-1])
                    whole = read.setdefault(name, np.zeros(shape, dtype=value.dtype))
                    whole[np.array(part), ..., : value.shape[-2], :] = value
        read["bias"] = np.where(inside, np.float32(0), HIDDEN)[:, None, None, :]
        if "copy_keys" in read:
            read["source_ids"] = np.full((len(encoded), width), self.codec.pad_id, dtype=np.int64)
            read["source_ids"][inside] = [number for ids in encoded for number in ids]
        return OnnxSteps(self._decoder, self.embedding, self.description, read)

    def _read_part(self, encoded: Sequence[tuple[int, ...]]) -> dict[str, Any]:
        """Return what the encoder gives out for some sources, by name."""
        flat = np.array([number for ids in encoded for number in ids], dtype=np.int64)
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        inside, slots, places = lay_out(lengths, rounded(int(lengths.max())))
        # A token's turn is counted from the end, by the separators to its right.
        ends = [np.cumsum((np.array(ids) == self.description.sep_id)[::-1])[::-1] for ids in encoded]
        turns = [np.clip(count - 1, 0, self.description.turn_types - 1).astype(np.int64) for count in ends]
        inputs = {
            "embedded": self.embedding(flat),
            "turns": np.concatenate(turns),
            "positions": np.concatenate([np.arange(length) for length in lengths])[:, None],
            "slots": slots,
            "places": places,
            "bias": np.where(inside, np.float32(0), HIDDEN)[:, None, None, :],
        }
        names = [output.name for output in self._encoder.get_outputs()]
        return dict(zip(names, self._encoder.run(None, taken(self._encoder, inputs)), strict=True))


def encoder_parts(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield which rows of a batch the encoder reads together: of like length, and few enough to stay in the cache."""
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    part: list[int] = []
    for k in order:
        longest = rounded(lengths[part[0]]) if part else 0
        unlike = longest > _SHORT and rounded(lengths[k]) < _ALIKE * longest
        if part and (unlike or sum(lengths[j] for j in part) + lengths[k] > _ENCODER_TOKENS):
            yield part
            part = []
        part.append(k)
    if part:
        yield part


def batches(
    order: Sequence[int], lengths: Sequence[int], rows: int, *, tokens: int = _BATCH_TOKENS
) -> Iterator[list[int]]:
    """Yield the rows of each batch, in the order given: at most `rows` of them, and `tokens` once they are padded."""
    batch: list[int] = []
    longest = 0
    for k in order:
        longest = max(longest, lengths[k])
        if batch and (len(batch) == rows or (len(batch) + 1) * longest > tokens):
            yield batch
            batch, longest = [], lengths[k]
        batch.append(k)
    if batch:
        yield batch
