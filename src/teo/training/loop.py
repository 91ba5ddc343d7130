"""The loop that fits the backbone to batches of packed texts: pretraining and fast fine-tuning share it.

A batch's row is one source and several decoder texts, told apart by `segment` (teo.training.pretraining.batches).
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teo.files import write_whole
from teo.models.backbone import IGNORED, TeoForConditionalGeneration
from teo.training.averaging import RunningAverage, divergence, two_passes
from teo.training.processes import average_gradients, distributed_rank, from_first, wait_for_all

CHECKPOINT, LOG = "checkpoint.pt", "log.jsonl"


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How the weights are fitted."""

    steps: int = 10_000
    """Batches in all; fine-tuning counts them from its epochs."""
    minutes: float = 0.0
    """Where above 0, the learning rate reaches zero after this time if the steps are not done by then."""
    learning_rate: float = 1e-3
    """Peak learning rate of AdamW."""
    warmup: int = 400
    """Batches until the peak."""
    weight_decay: float = 0.01
    """Weight decay of matrices; vectors have none."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    masking_weight: float = 0.5
    """Weight of the encoder's loss on masked tokens against the decoder's."""
    r_drop: float = 0.0
    """Weight of R-Drop: the divergence between two passes of a batch with different dropout; 0 is off."""
    ema: float = 0.0
    """Decay of the running average of the weights that is saved at the end, such as 0.999; 0 is off."""
    compile: bool = False
    """Compile the layers: pays on a GPU after a minute, where batches have few shapes as in pretraining."""
    log_every: int = 50
    """Batches between two lines of the log."""
    save_every: int = 2000
    """Batches between two checkpoints; 0: none, and a stopped run starts again."""


class PackedModel(nn.Module):
    """The backbone with the loss of packed batches, and the head that fills masked tokens from the encoder."""

    def __init__(self, backbone: TeoForConditionalGeneration) -> None:
        super().__init__()
        self.backbone = backbone
        self.r_drop = 0.0
        width = backbone.config.d_model
        self.masked_head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the decoder's and the encoder's loss, the decoder's with R-Drop's term where asked for."""
        model = self.backbone
        batch = two_passes(batch) if self.r_drop else batch
        source, labels = batch["source"].long(), batch["labels"].long()
        mask = source != model.config.pad_token_id
        encoded = model.encoder(source, mask).last_hidden_state
        segment = batch["segment"]
        length = segment.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=source.device).tril()
        own_mask = (segment[:, None, :, None] == segment[:, None, None, :]) & causal
        states = model.decoder(batch["decoder_input"].long(), encoded, mask, own_mask)
        counted = labels != IGNORED
        mixture = model.mixture(states, encoded, mask, labels)
        decoder_loss = -model.scores_of(mixture, source, labels)[counted].mean()
        if self.r_drop:
            decoder_loss = decoder_loss + self.r_drop * divergence(mixture, counted)
        places = batch["masked_places"].long()
        if not len(places):
            return decoder_loss, decoder_loss.new_zeros(())
        hidden = self.masked_head(encoded.flatten(0, 1)[places])
        logits = F.linear(hidden, model.embedding.weight, model.output_bias).float()
        return decoder_loss, F.cross_entropy(logits, batch["masked_tokens"].long())


@dataclass(slots=True)
class Clock:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0


def schedule(step: int, elapsed: float, settings: LoopSettings) -> float:
    """Return the share of the peak learning rate: linear up, then linear down to zero by steps or by time."""
    done = step / settings.steps
    if settings.minutes > 0:
        done = max(done, elapsed / (60 * settings.minutes))
    return min((step + 1) / max(settings.warmup, 1), 1.0) * max(0.0, 1.0 - done)


class Loop:
    """One run: the model, its optimiser and how far it is; `fit` goes on from there.

    Several processes have the same weights and update them by the mean of their gradients; the first one logs and
    saves.
    """

    def __init__(self, model: PackedModel, settings: LoopSettings, output: Path, device: torch.device) -> None:
        torch.set_float32_matmul_precision("high")
        self.model, self.settings, self.output, self.device = model.to(device), settings, output, device
        self.model.r_drop = settings.r_drop
        self.optimizer = _optimizer(model, settings, device)
        self.average = RunningAverage(model, settings.ema) if settings.ema else None
        self.clock = Clock()
        self.main = distributed_rank()[0] == 0
        output.mkdir(parents=True, exist_ok=True)
        self._resume()

    def fit(self, batches: Iterator[dict[str, Tensor]]) -> None:
        """Train on batches, the first of which is the one at `clock.step`; leave the average of the weights, if any."""
        settings, clock = self.settings, self.clock
        if settings.compile:
            for layer in (*self.model.backbone.encoder.layers, *self.model.backbone.decoder.layers):
                layer.compile()
        began = time.monotonic() - clock.seconds
        log = _Log(self.output / LOG, settings.log_every)
        self.model.train()
        for step in range(clock.step, settings.steps):
            elapsed = time.monotonic() - began
            if settings.minutes > 0:
                elapsed = from_first(elapsed, self.device)
            rate = settings.learning_rate * schedule(step, elapsed, settings)
            if rate <= 0.0:
                break
            tokens, *figures = self._update(next(batches), rate)
            if self.average is not None:
                self.average.update(step)
            if self.main:
                log.add(step, tokens, rate, elapsed, *figures)
            clock.step, clock.seconds = step + 1, time.monotonic() - began
            if settings.save_every and (step + 1) % settings.save_every == 0:
                self._save()
        if settings.save_every:
            self._save()
        if self.average is not None:
            self.average.apply()

    def _update(self, batch: dict[str, Tensor], rate: float) -> tuple[Any, ...]:
        """Make one update and return the batch's tokens, losses and gradient norm."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch = {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}
        # On a CPU half precision is not slower where the chip has it, but the tests want exact resumption.
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            decoder_loss, masked_loss = self.model(batch)
        (decoder_loss + self.settings.masking_weight * masked_loss).backward()
        average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return batch["source"].numel(), decoder_loss, masked_loss, norm

    def _resume(self) -> None:
        checkpoint = self.output / CHECKPOINT
        if checkpoint.is_file():
            stored = torch.load(checkpoint, map_location=self.device, weights_only=True)
            self.model.load_state_dict(stored["model"])
            self.optimizer.load_state_dict(stored["optimizer"])
            self.clock = Clock(**stored["clock"])
            if self.average is not None:
                self.average.restore(stored.get("average"))

    def _save(self) -> None:
        if not self.main:
            wait_for_all()
            return
        clock = {"step": self.clock.step, "seconds": self.clock.seconds}
        stored: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "clock": clock,
        }
        if self.average is not None:
            stored["average"] = self.average.average
        write_whole(self.output / CHECKPOINT, lambda beside: torch.save(stored, beside))
        wait_for_all()


def _optimizer(model: nn.Module, settings: LoopSettings, device: torch.device) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.98), fused=device.type == "cuda")


class _Log:
    """Writes means of the last batches as JSON lines, on stderr too; waits for the GPU only then."""

    def __init__(self, path: Path, every: int) -> None:
        self.path, self.every = path, every
        self.figures: list[Tensor] = []
        self.tokens, self.since = 0, time.monotonic()

    def add(self, step: int, tokens: int, rate: float, elapsed: float, *figures: Tensor) -> None:
        """Take one batch's figures."""
        self.figures.append(torch.stack([figure.detach().float() for figure in figures]))
        self.tokens += tokens
        if (step + 1) % self.every:
            return
        decoder, masked, norm = torch.stack(self.figures).mean(0).tolist()
        if not math.isfinite(decoder):
            raise FloatingPointError(f"the loss is not finite at step {step + 1}")
        now = time.monotonic()
        line = json.dumps(
            {
                "step": step + 1,
                "minutes": round(elapsed / 60, 2),
                "rate": float(f"{rate:.3g}"),
                "decoder_loss": round(decoder, 4),
                "masked_loss": round(masked, 4),
                "gradient_norm": round(norm, 3),
                "tokens_per_second": round(self.tokens / max(now - self.since, 1e-9)),
            }
        )
        with self.path.open("a", encoding="utf-8") as out:
            out.write(line + "\n")
        sys.stderr.write(line + "\n")
        self.figures, self.tokens, self.since = [], 0, now
