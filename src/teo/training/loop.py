"""The loop that fits a model to batches: fine-tuning of every family and pretraining share it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from teo.files import write_whole
from teo.training.averaging import RunningAverage
from teo.training.log import RunLog
from teo.training.losses import LossModel
from teo.training.processes import average_gradients, copy_from_first, distributed_rank, from_first, wait_for_all

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How the weights are fitted."""

    steps: int = 10_000
    """Batches in all; fine-tuning counts them from its epochs."""
    minutes: float = 0.0
    """If above 0, the learning rate reaches zero after this time, even if the steps are not done by then."""
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
    """Decay of the running average of the weights that is evaluated and saved, such as 0.999; 0 is off."""
    bf16: bool = True
    """On a GPU that can: compute in bfloat16 (the weights stay in full precision)."""
    cpu_bf16: bool = False
    """On a CPU too: two to three times as fast if the chip has it, slower if not; other chips give other weights."""
    compile: bool = False
    """Compile the layers: pays on a GPU after a minute, if batches have few shapes as in pretraining."""
    log_every: int = 50
    """Batches between two lines of the log."""
    save_every: int = 2000
    """Batches between two checkpoints; 0: none, and a stopped run starts again."""


@dataclass(slots=True)
class Clock:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0
    evaluated: int = -1
    """The update after which the weights were evaluated last."""


def schedule(step: int, elapsed: float, settings: LoopSettings) -> float:
    """Return the share of the peak learning rate: linear up, then linear down to zero by steps or by time."""
    done = step / settings.steps
    if settings.minutes > 0:
        done = max(done, elapsed / (60 * settings.minutes))
    return min((step + 1) / max(settings.warmup, 1), 1.0) * max(0.0, 1.0 - done)


class DevEvaluation(Protocol):
    """What measures the weights from time to time, and keeps the best of them."""

    every: int
    """Updates between two evaluations; 0: after the last update only."""

    def __call__(self, step: int) -> dict[str, float]:
        """Return the scores of the weights after an update."""
        ...


class Loop:
    """One run: the model, its optimiser and how far it is; `fit` resumes from there.

    Several processes have the same weights and update them by the mean of their gradients; the first one logs and
    saves.
    """

    def __init__(
        self,
        model: LossModel,
        settings: LoopSettings,
        output: Path,
        device: torch.device,
        *,
        seed: int = 0,
        label: str = "training",
        per_epoch: int = 0,
        evaluation: DevEvaluation | None = None,
    ) -> None:
        torch.set_float32_matmul_precision("high")
        self.model, self.settings, self.output, self.device = model.to(device), settings, output, device
        self.seed, self.evaluation = seed, evaluation
        self.model.r_drop = settings.r_drop
        copy_from_first(self.model)
        self.optimizer = make_optimizer(model, settings, device)
        self.average = RunningAverage(model, settings.ema) if settings.ema else None
        self.clock = Clock()
        self.rank = distributed_rank()[0]
        self.main = self.rank == 0
        self.log = RunLog(output, settings.log_every, settings.steps, label, per_epoch)
        output.mkdir(parents=True, exist_ok=True)
        self._resume()

    def fit(self, batches: Iterator[dict[str, Tensor]]) -> None:
        """Train on batches, the first of which is the one at `clock.step`; leave the average of the weights, if any."""
        settings, clock = self.settings, self.clock
        if settings.compile:
            self.model.compile_layers()
        began = time.monotonic() - clock.seconds
        self.model.train()
        for step in range(clock.step, settings.steps):
            elapsed = time.monotonic() - began
            if settings.minutes > 0:
                elapsed = from_first(elapsed, self.device)
            rate = settings.learning_rate * schedule(step, elapsed, settings)
            if rate <= 0.0:
                break
            tokens, figures = self._update(step, next(batches), rate)
            clock.step, clock.seconds = step + 1, time.monotonic() - began
            if self.average is not None:
                self.average.update(step)
            if self.main:
                self.log.add(clock.step, tokens, rate, elapsed, figures)
            if self.evaluation is not None and _due(clock.step, self.evaluation.every):
                self._evaluate(self.evaluation)
            if _due(clock.step, settings.save_every):
                self._save()
        self.log.clear()
        self.log.require_finite(clock.step)
        if self.evaluation is not None and clock.evaluated < clock.step:
            self._evaluate(self.evaluation)
        if settings.save_every:
            self._save()
        if self.average is not None:
            self.average.apply()

    def _update(self, step: int, batch: dict[str, Tensor], rate: float) -> tuple[int, Tensor]:
        """Make one update and return the batch's tokens, and its losses and gradient norm."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        # Dropout depends on the seed and the update alone, so that a resumed run needs no random state.
        torch.manual_seed(random.Random(f"dropout/{self.seed}/{step}/{self.rank}").getrandbits(63))
        batch = {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}
        settings = self.settings
        half = uses_bf16(settings.bf16, self.device.type, on_cpu=settings.cpu_bf16)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=half):
            decoder_loss, masked_loss = self.model(batch)
        (decoder_loss + settings.masking_weight * masked_loss).backward()
        average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return batch["source"].numel(), torch.stack([decoder_loss, masked_loss, norm]).detach().float()

    def _evaluate(self, evaluation: DevEvaluation) -> None:
        """Measure the weights, or their average if there is one; the best of them are kept."""
        self.log.require_finite(self.clock.step)
        # Decoding has shapes of its own, for which nothing should be compiled.
        eager = torch.compiler.set_stance("force_eager") if self.settings.compile else nullcontext()
        with nullcontext() if self.average is None else self.average.applied(), eager:
            scores = evaluation(self.clock.step)
        self.model.train()
        self.clock.evaluated = self.clock.step
        if self.main:
            self.log.add_scores(self.clock.step, scores)

    def _resume(self) -> None:
        checkpoint, figures = self.output / CHECKPOINT, []
        if checkpoint.is_file():
            stored = torch.load(checkpoint, map_location=self.device, weights_only=True)
            self.model.load_state_dict(stored["model"])
            self.optimizer.load_state_dict(stored["optimizer"])
            self.clock = Clock(**stored["clock"])
            figures = stored.get("figures", [])
            if self.average is not None:
                self.average.restore(stored.get("average"))
        if self.main:
            self.log.resume(self.clock.step, self.clock.evaluated, figures)
        wait_for_all()

    def _save(self) -> None:
        if self.main:
            self.log.require_finite(self.clock.step)
            stored: dict[str, Any] = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "clock": asdict(self.clock),
                "figures": self.log.figures,
            }
            if self.average is not None:
                stored["average"] = self.average.average
            write_whole(self.output / CHECKPOINT, lambda beside: torch.save(stored, beside))
        wait_for_all()


def uses_bf16(wanted: bool, device: str, *, on_cpu: bool = False) -> bool:
    """Tell whether to compute in bfloat16: on a GPU that can if it is wanted, on a CPU only if asked for there."""
    return on_cpu if device == "cpu" else wanted and device == "cuda" and torch.cuda.is_bf16_supported()


def _due(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


def make_optimizer(model: nn.Module, settings: LoopSettings, device: torch.device) -> torch.optim.Optimizer:
    """Return AdamW for the weights that are trained."""
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.98), fused=device.type == "cuda")
