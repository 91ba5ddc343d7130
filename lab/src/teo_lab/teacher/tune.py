"""Teaching a pretrained decoder our rows, as texts of one format."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from teo.training.batches import budget_batches

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """How long and how fast."""

    seconds: float = 150.0
    """Wall clock; the learning rate falls to zero over it."""
    learning_rate: float = 4e-4
    """Highest learning rate."""
    warmup: float = 0.03
    """Share of the time in which it rises."""
    batch_tokens: int = 32_768
    """Tokens of a batch, padding included."""
    rewrite_weight: float = 2.0
    """What a token of the rewrite counts; one of the dialogue counts 1."""
    log_every: int = 50
    """Updates between two lines of the log."""
    seed: int = 1
    """Seed of the order."""


def tune(model: Any, texts: Sequence[Sequence[int]], rewrite_mark: int, settings: TuneSettings) -> int:
    """Train the model in place and return the number of updates."""
    device = next(model.parameters()).device
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.01, fused=device.type == "cuda"
    )
    rng = random.Random(settings.seed)
    sizes = [(-(-len(text) // 16) * 16, 0) for text in texts]
    updates, started = 0, time.monotonic()
    while True:
        for batch in budget_batches(sizes, 1024, settings.batch_tokens, rng):
            share = (time.monotonic() - started) / settings.seconds
            if share >= 1:
                return updates
            rate = settings.learning_rate * min(share / settings.warmup, (1 - share) / (1 - settings.warmup))
            for group in optimizer.param_groups:
                group["lr"] = rate
            ids, weights = collate([texts[item] for item in batch], rewrite_mark, settings.rewrite_weight)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = weighted_loss(model, ids.to(device), weights.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            updates += 1
            if updates % settings.log_every == 0:
                logger.info("update %d, %.0f s, loss %.4f", updates, share * settings.seconds, loss.item())


def collate(texts: Sequence[Sequence[int]], rewrite_mark: int, rewrite_weight: float) -> tuple[Tensor, Tensor]:
    """Return padded ids and the weight of each as a target; padding and the first token weigh nothing."""
    width = max(map(len, texts))
    ids = torch.zeros((len(texts), width), dtype=torch.long)
    weights = torch.zeros((len(texts), width))
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        weights[row, 1 : len(text)] = 1.0
        weights[row, text.index(rewrite_mark) + 1 : len(text)] = rewrite_weight
    return ids, weights


def weighted_loss(model: Any, ids: Tensor, weights: Tensor) -> Tensor:
    """Return the mean loss of the next token, weighted; a decoder never sees the padding to its right."""
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    losses = functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    targets = weights[:, 1:].flatten()
    return (losses * targets).sum() / targets.sum()
