"""Fast fine-tuning of the backbone: a row is read once and every role's text is learned from that one reading.

The same weights and losses as teo.training.trainer has for shared roles, several times faster on a GPU; for models of
other families and for roles that read operations in their source, the trainer is the way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from teo.errors import ConfigError
from teo.models import TeoForConditionalGeneration
from teo.runtime.torch_codec import Codec
from teo.training.config import TrainConfig
from teo.training.loop import Loop, LoopSettings, PackedModel
from teo.training.packed_batches import PACKED_ROLES, PackedBatches
from teo.training.pretraining.pretrain import load_batches
from teo.training.rows import RunRows

logger = logging.getLogger(__name__)


def check_packed(config: TrainConfig, model: Any, roles: Sequence[str]) -> None:
    """Refuse what packing cannot train, saying what can."""
    if not isinstance(model, TeoForConditionalGeneration):
        raise ConfigError(f"packed: expected our own backbone (model type teo), found {model.config.model_type}")
    if not config.shared or not set(roles) <= set(PACKED_ROLES):
        raise ConfigError(
            f"packed: expected shared = true and roles among {', '.join(PACKED_ROLES)}; found {', '.join(roles)}"
        )


def fit_packed(model: Any, codec: Codec, rows: RunRows, config: TrainConfig, work: Path, device: str) -> int:
    """Fit the model to the rows in place and return how many updates it took; a stopped run goes on."""
    optimisation = config.optimisation
    batches = PackedBatches(
        rows.train,
        codec,
        perturbation=config.perturbation,
        roles=config.roles,
        source_limit=config.model.source_limit,
        target_limit=config.model.target_limit,
        batch_rows=optimisation.batch_size,
        epochs=optimisation.epochs,
        seed=config.seed,
        repeats=rows.repeats,
    )
    steps = optimisation.steps or len(batches)
    logger.info("%d rows, %d left out, %d updates on %s", len(batches.rows), batches.left_out, steps, device)
    settings = LoopSettings(
        steps=min(steps, len(batches)),
        learning_rate=optimisation.learning_rate,
        warmup=round(optimisation.warmup * steps),
        weight_decay=optimisation.weight_decay,
        clip=optimisation.max_grad_norm,
        r_drop=optimisation.r_drop,
        ema=optimisation.ema,
        log_every=config.writing.log_steps,
        save_every=config.writing.checkpoint_epochs * batches.per_epoch,
    )
    target = torch.device(device)
    loop = Loop(PackedModel(model), settings, work, target)
    ahead = torch.utils.data.Subset(batches, range(loop.clock.step, len(batches)))
    loop.fit(iter(load_batches(ahead, optimisation.workers, target)))
    return loop.clock.step
