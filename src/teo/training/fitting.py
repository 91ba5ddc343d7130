"""fit(model, batches): one set of weights, from a configuration's settings to the best weights by dev EM."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from teo.runtime.torch_codec import Codec
from teo.training.batches import Batches, ProcessShare
from teo.training.best import BestWeights
from teo.training.config import TrainConfig
from teo.training.dev import DevSet
from teo.training.loop import Loop, LoopSettings
from teo.training.losses import loss_model
from teo.training.packing import load_batches
from teo.training.processes import distributed_rank
from teo.training.saving import disk_errors

logger = logging.getLogger(__name__)


def fit(
    model: Any, codec: Codec, batches: Batches, dev: DevSet | None, config: TrainConfig, work: Path, device: str
) -> None:
    """Fit the model to the batches, from its checkpoint if there is one, and leave the best weights in `work`."""
    share = ProcessShare(batches, *distributed_rank())
    settings, target = loop_settings(config, share), torch.device(device)
    loop = Loop(
        loss_model(model),
        settings,
        work,
        target,
        seed=config.seed,
        label=work.name,
        per_epoch=share.per_epoch,
        evaluation=BestWeights(model, codec, dev, work, config.evaluation.every * share.per_epoch),
    )
    share.first = loop.clock.step
    begun = f", resumed after {share.first}" if share.first else ""
    logger.info("%s: %d items, %d updates%s", work.name, len(batches.sizes), settings.steps, begun)
    with disk_errors(work):
        loop.fit(iter(load_batches(share, config.optimisation.workers, target)))


def loop_settings(config: TrainConfig, share: ProcessShare) -> LoopSettings:
    """Return the loop's settings for a configuration's, which counts in epochs and shares of them."""
    fitting = config.optimisation
    steps = min(fitting.steps or len(share), len(share))
    return LoopSettings(
        steps=steps,
        minutes=fitting.minutes,
        learning_rate=fitting.learning_rate,
        warmup=round(fitting.warmup * steps),
        weight_decay=fitting.weight_decay,
        clip=fitting.clip,
        r_drop=fitting.r_drop,
        ema=fitting.ema,
        bf16=fitting.bf16,
        cpu_bf16=fitting.cpu_bf16,
        compile=fitting.compile,
        log_every=config.writing.log_every,
        save_every=config.writing.checkpoint_epochs * share.per_epoch,
    )
