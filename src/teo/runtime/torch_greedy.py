"""Greedy search of our own backbone: ended texts leave the batch, and tokens come with their log-probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from teo.models import TeoForConditionalGeneration

_CHECK_EVERY = 4
"""Steps between two checks of which rows have ended: a check waits for the GPU."""
_COMPACT_AT = 0.8
"""Ended rows are taken out of the batch where at most this share of it goes on."""


@torch.no_grad()
def generate_greedily(
    model: TeoForConditionalGeneration, source: Any, mask: Tensor, starts: Tensor, limits: Sequence[int], end: int
) -> list[tuple[list[int], list[float]]]:
    """Return the ids of each text after its start, the end token included, and their log-probabilities.

    `source` is the encoder's output. A text ends at its end token or at its limit.
    """
    search = _Search(model, source, mask, starts, limits, end)
    for step in range(max(limits)):
        search.advance(step)
        if step % _CHECK_EVERY == _CHECK_EVERY - 1 and not search.drop_ended():
            break
    return search.texts(limits)


def until_end(ids: list[int], end: int) -> list[int]:
    """Return the ids up to the end token, which is kept; without one the search ran into its limit."""
    return ids[: ids.index(end) + 1] if end in ids else ids


class _Search:
    """The rows that go on, and the tokens of all."""

    def __init__(
        self,
        model: TeoForConditionalGeneration,
        source: Any,
        mask: Tensor,
        starts: Tensor,
        limits: Sequence[int],
        end: int,
    ) -> None:
        self.model, self.end = model, end
        self.source, self.source_ids, self.mask = source["last_hidden_state"], source["source_ids"], mask
        self.keys = model.copy_head.key(self.source)
        self.cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self.inputs = starts
        device = starts.device
        self.rows = torch.arange(len(limits), device=device)
        self.limits = torch.tensor(limits, device=device)
        self.ended = torch.zeros(len(limits), dtype=torch.bool, device=device)
        self.ids = torch.full((len(limits), max(limits)), end, device=device)
        self.scores = torch.zeros((len(limits), max(limits)), device=device)

    def advance(self, step: int) -> None:
        """Append the likeliest token to every row; what follows an end token does not count."""
        states = self.model.decoder(self.inputs, self.source, self.mask, None, self.cache)[:, -1:]
        logs = self.model.log_probabilities(states, self.keys, self.source_ids, self.mask)
        score, token = logs[:, 0].max(-1)
        self.ids[self.rows, step] = torch.where(self.ended, self.end, token)
        self.scores[self.rows, step] = score
        self.ended |= (token == self.end) | (self.limits <= step + 1)
        self.inputs = token[:, None]

    def drop_ended(self) -> bool:
        """Take out rows that have ended where that is worth it, and tell whether any go on."""
        going = self.ended.logical_not().nonzero()[:, 0]
        if not len(going):
            return False
        if len(going) <= _COMPACT_AT * len(self.rows):
            self.rows, self.limits, self.ended = self.rows[going], self.limits[going], self.ended[going]
            self.source, self.source_ids, self.mask = self.source[going], self.source_ids[going], self.mask[going]
            self.keys, self.inputs = self.keys[going], self.inputs[going]
            self.cache.batch_select_indices(going)
        return True

    def texts(self, limits: Sequence[int]) -> list[tuple[list[int], list[float]]]:
        """Return ids and log-probabilities up to the end token or the limit of each row."""
        found = []
        for ids, scores, limit in zip(self.ids.tolist(), self.scores.tolist(), limits, strict=True):
            text = until_end(ids[:limit], self.end)
            found.append((text, scores[: len(text)]))
        return found
