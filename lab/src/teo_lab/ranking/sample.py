"""Texts drawn from a model: several for each source, all of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel

from teo.models import TeoForConditionalGeneration
from teo.runtime.torch_generator import KERNELS
from teo.runtime.torch_steps import TorchSteps

_LEAST = 0.02
"""Tokens that are less likely than this share of the likeliest are not drawn."""
_KEPT = 0.5
"""Ended texts leave the batch when at most this share of it still grows."""


class DrawnSteps(TorchSteps):
    """Steps that draw the next token instead of giving the likeliest ones."""

    def draw(self, tokens: Tensor, temperature: float) -> Tensor:
        """Take further tokens of every text (texts, tokens), and return one drawn to follow each."""
        states = self._decode(tokens)[:, -1:]
        self._lengths = self._lengths + tokens.shape[1]
        scores = self._model.log_probabilities(states, self._copy_keys, self._source_ids, self._mask)[:, 0]
        likely = scores >= scores.amax(-1, keepdim=True) + np.log(_LEAST)
        scores = (scores / temperature).masked_fill(~likely, -torch.inf)
        return (scores - torch.empty_like(scores).exponential_().log()).argmax(-1)


@torch.no_grad()
def draw_texts(
    model: TeoForConditionalGeneration,
    sources: Tensor,
    start: Sequence[int],
    count: int,
    *,
    temperature: float,
    limit: int,
) -> list[set[tuple[int, ...]]]:
    """Return the different texts among `count` drawn ones of each source, each with its end token.

    Texts that do not end within the limit are left out.
    """
    mask = (sources != model.config.pad_token_id).long()
    with sdpa_kernel(KERNELS):
        steps = DrawnSteps(model, model.encoder(sources, mask), mask)
        steps.keep(np.repeat(np.arange(len(sources)), count))
        tokens = torch.tensor(start, device=sources.device).expand(len(sources) * count, -1)
        place = torch.arange(len(tokens), device=sources.device)  # which text each row of the batch belongs to
        texts = torch.full((len(tokens), limit), model.config.pad_token_id, device=sources.device)
        for length in range(limit):
            drawn = steps.draw(tokens, temperature)
            texts[place, length] = drawn
            growing = drawn != model.config.eos_token_id
            # Ended texts that still stand in the batch write on behind their end; that is cut off below.
            left = growing & ~(texts[place, :length] == model.config.eos_token_id).any(-1)
            if int(left.sum()) <= _KEPT * len(place):
                kept = left.nonzero()[:, 0]
                if not len(kept):
                    break
                steps.keep(kept.cpu().numpy())
                drawn, place = drawn[kept], place[kept]
            tokens = drawn[:, None]
    found: list[set[tuple[int, ...]]] = [set() for _ in range(len(sources))]
    end = model.config.eos_token_id
    for number, ids in enumerate(texts.tolist()):
        if end in ids:
            found[number // count].add(tuple(ids[: ids.index(end) + 1]))
    return found
