"""TorchSteps: the decoder of our own backbone in torch over a batch of sources, pass by pass (`teo.runtime.search`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from teo.models import TeoForConditionalGeneration
from teo.models.layers import DecoderLayer, rotary_table
from teo.runtime.search import Floats, Ids

_CHECKED = {"cpu": 256, "cuda": 4096}
"""Tokens of all drafts of a batch, at most, in one pass: each has a probability for every token of the vocabulary."""


class TorchSteps:
    """The decoder over a batch of encoded sources: what it read, and the keys and values of what it wrote.

    A text's keys and values stand at their own position, with the padding behind them.
    """

    def __init__(self, model: TeoForConditionalGeneration, source: Any, mask: Tensor) -> None:
        self._model, self._mask = model, mask
        self._source_ids, states = source["source_ids"], source["last_hidden_state"]
        self._copy_keys = model.copy_head.key(states)
        self._layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        self._read = [layer.cross_attention.keys_values(states) for layer in self._layers]
        self._lengths = torch.zeros(len(mask), dtype=torch.long, device=mask.device)
        empty = states.new_zeros((len(mask), model.config.heads, 0, model.config.head_size))
        self._written = [(empty, empty) for _ in self._layers]
        self.checked = _CHECKED.get(mask.device.type, _CHECKED["cpu"])

    def advance(self, tokens: Sequence[Sequence[int]], asked: Sequence[int], count: int) -> tuple[Floats, Ids]:
        """Take further tokens of each text; return scores and ids of the `count` likeliest after the last `asked`."""
        length = max(map(len, tokens))
        pad, device = self._model.config.pad_token_id, self._mask.device
        padded = torch.tensor([[*row, *[pad] * (length - len(row))] for row in tokens], device=device)
        places = [(k, len(row) - back) for k, row in enumerate(tokens) for back in range(asked[k], 0, -1)]
        rows, columns = (torch.tensor(part, device=device) for part in zip(*places, strict=True))
        states = self._decode(padded)
        self._lengths = self._lengths + torch.tensor([len(row) for row in tokens], device=device)
        scores, ids = [], []
        step = max(1, self.checked // length)  # texts whose probabilities are held at once
        for first in range(0, len(tokens), step):
            part = slice(first, first + step)
            keys, source_ids, mask = self._copy_keys[part], self._source_ids[part], self._mask[part]
            found = self._model.log_probabilities(states[part], keys, source_ids, mask).topk(count, dim=-1)
            inside = (rows >= first) & (rows < first + step)
            chosen = rows[inside] - first, columns[inside]
            scores.append(found.values[chosen])
            ids.append(found.indices[chosen])
        return torch.cat(scores).float().cpu().numpy(), torch.cat(ids).cpu().numpy()

    def forget(self, counts: Sequence[int]) -> None:
        """Take back the last tokens of each text."""
        self._lengths = self._lengths - torch.tensor(counts, device=self._lengths.device)

    def keep(self, rows: Ids) -> None:
        """Continue with these rows only, in this order."""
        kept = torch.from_numpy(np.ascontiguousarray(rows)).to(self._mask.device)
        self._mask, self._source_ids, self._copy_keys = self._mask[kept], self._source_ids[kept], self._copy_keys[kept]
        self._read = [(key[kept], value[kept]) for key, value in self._read]
        self._written = [(key[kept], value[kept]) for key, value in self._written]
        self._lengths = self._lengths[kept]

    def _decode(self, tokens: Tensor) -> Tensor:
        """Return the states of new tokens (batch, length); their keys and values are written behind those before."""
        decoder, config = self._model.decoder, self._model.config
        positions = self._lengths[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        width = int(positions.max()) + 1
        turned = rotary_table(width, config.head_size, tokens.device)[:, positions][:, :, None]
        own_mask = (torch.arange(width, device=tokens.device) <= positions[..., None])[:, None]
        source_mask = self._mask[:, None, None, :].bool()
        x = decoder.embedding_norm(decoder.embedding(tokens))
        for index, layer in enumerate(self._layers):
            new = layer.self_attention.keys_values(layer.self_norm(x), turned)
            written = self._written[index]
            own = tuple(_write(old, part, positions, width) for old, part in zip(written, new, strict=True))
            self._written[index] = own[0], own[1]
            x = layer(x, turned, self._read[index], source_mask, self._written[index], own_mask)
        return cast("Tensor", decoder.final_norm(x))


def _write(old: Tensor, new: Tensor, positions: Tensor, width: int) -> Tensor:
    """Return keys or values (batch, heads, width, size) with the new ones at their positions."""
    room = F.pad(old[:, :, :width], (0, 0, 0, max(0, width - old.shape[2])))
    return room.to(new.dtype).scatter(2, positions[:, None, :, None].expand_as(new), new)
