"""What makes training steadier: R-Drop's divergence between two passes, and a running average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teo.models.backbone import IGNORED, Mixture


def two_passes(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a batch with its rows twice, the second time below the first: dropout differs between them."""
    doubled = {name: torch.cat([tensor, tensor]) for name, tensor in batch.items()}
    places = batch["masked_places"]
    doubled["masked_places"] = torch.cat([places, places + batch["source"].numel()])
    return doubled


def divergence(mixture: Mixture, counted: Tensor) -> Tensor:
    """Return R-Drop's term for a mixture of two passes: the mean of both directions, over the labels that count.

    The divergence is that of the pair (copied or not, token or source position): the gate's, plus the vocabulary's and
    the attention's by their shares. Comparing the mixed distributions would need the vocabulary scattered into for
    every position; the divergence of the pair is never below theirs, and costs no more than the loss itself.
    """
    half = len(counted) // 2
    logits = mixture.logits.log_softmax(-1).chunk(2)
    attention = [part[counted[:half]] for part in mixture.log_attention.split(half)]
    gates = [part[counted[:half]] for part in mixture.gate.split(half)]
    total = _one_way(logits[0], logits[1], attention[0], attention[1], gates[0], gates[1])
    total = total + _one_way(logits[1], logits[0], attention[1], attention[0], gates[1], gates[0])
    return total.mean() / 2


def _one_way(p: Tensor, q: Tensor, read_p: Tensor, read_q: Tensor, gate_p: Tensor, gate_q: Tensor) -> Tensor:
    """Return the divergence of the first pass from the second, for each position."""
    copying, generating = gate_p.sigmoid(), (-gate_p).sigmoid()
    copied = F.logsigmoid(gate_p) - F.logsigmoid(gate_q) + _kl(read_p, read_q)
    generated = F.logsigmoid(-gate_p) - F.logsigmoid(-gate_q) + _kl(p, q)
    return copying * copied + generating * generated


def logit_divergence(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """Return R-Drop's term for the logits of two passes: the mean of both directions, over the labels that count."""
    counted = labels != IGNORED
    p, q = first[counted].float().log_softmax(-1), second[counted].float().log_softmax(-1)
    return (_kl(p, q) + _kl(q, p)).mean() / 2


def _kl(p: Tensor, q: Tensor) -> Tensor:
    """Return the divergence of distributions from others, both in log-probabilities, over the last dimension."""
    return F.kl_div(q, p, log_target=True, reduction="none").sum(-1)


class RunningAverage:
    """The running average of a model's weights, beside them on the same device."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.weights: list[Tensor] = list(model.parameters())
        self.decay = decay
        self.average = [weight.detach().clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the average towards the weights after update `step`, from 0 on; early it follows them closely."""
        decay = min(self.decay, (2 + step) / (11 + step))
        torch._foreach_lerp_(self.average, self.weights, 1 - decay)

    @torch.no_grad()
    def restore(self, average: list[Tensor] | None) -> None:
        """Take up a checkpoint's average; one without an average starts it from the weights."""
        torch._foreach_copy_(self.average, self.weights if average is None else average)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the average into the model, and the weights back afterwards."""
        kept = [weight.detach().clone() for weight in self.weights]
        self.apply()
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, kept)

    @torch.no_grad()
    def apply(self) -> None:
        """Put the average into the model."""
        torch._foreach_copy_(self.weights, self.average)
