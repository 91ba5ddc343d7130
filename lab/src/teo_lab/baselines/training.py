"""train_baseline(...): a baseline on the rows of a dataset, the best state by exact match on the development rows."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from teo.data.row import Row
from teo.errors import DataError, InputError
from teo.provenance import git_commit, versions
from teo.runtime.torch_generator import choose_device
from teo.training.backbones import load_base
from teo.training.batches import like_batches
from teo.units import is_exact_match
from teo_lab.baselines.baseline import Baseline, Example
from teo_lab.baselines.storing import make_baseline, save_baseline

_HEAD_FACTOR = 5.0
"""The head starts from scratch and learns faster than the encoder."""
_ORDER = "peers"
"""Seeds the order of the rows; another word would give other figures than those that are stored."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BaselineTraining:
    """How a baseline is trained."""

    epochs: int = 15
    batch_size: int = 128
    learning_rate: float = 2.5e-4
    warmup: float = 0.06
    """Share of the steps in which the learning rate rises; after it the rate falls to zero."""
    dropout: float = 0.1
    evaluations: int = 5
    """How often exact match on the development rows is measured, evenly spread, the last time at the end."""
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected a number from 1 on, found {getattr(self, name)}")


def train_baseline(
    name: str, base: str, train: Sequence[Row], dev: Sequence[Row], folder: Path, settings: BaselineTraining
) -> Baseline:
    """Return a trained baseline, which is also written to a folder with what it was trained on and how it went."""
    torch.manual_seed(settings.seed)
    device = choose_device(settings.device)
    backbone, codec = load_base(base)
    baseline = make_baseline(name, backbone, codec).to(device)
    backbone.set_dropout(settings.dropout)
    started = time.perf_counter()
    prepared = [baseline.prepare(row) for row in train]
    examples = [example for example in prepared if example is not None]
    if not examples:
        raise DataError(f"train: expected rows that the baseline {name} can express, found none of {len(train)}")
    logger.info("%s: %d rows to learn, %d cannot be expressed", name, len(examples), len(train) - len(examples))
    history = _fit(baseline, examples, dev, settings)
    facts: dict[str, Any] = {
        "base": Path(base).name,
        "settings": {key: value for key, value in asdict(settings).items() if key != "device"},
        "train_rows": len(examples),
        "not_expressed": len(train) - len(examples),
        "dev_rows": len(dev),
        "dev_em": history,
        "seconds": round(time.perf_counter() - started, 1),
        "device": device,
        "git_commit": git_commit(),
        "versions": versions(("torch", "transformers", "tokenizers")),
    }
    save_baseline(baseline, folder, facts)
    return baseline


def _fit(
    baseline: Baseline, examples: Sequence[Example], dev: Sequence[Row], settings: BaselineTraining
) -> list[dict[str, Any]]:
    """Train, leave the best state in the baseline, and return the exact match after each part of the training."""
    optimizer = torch.optim.AdamW(
        [
            {"params": list(baseline.backbone.parameters()), "lr": settings.learning_rate},
            {"params": list(baseline.head.parameters()), "lr": _HEAD_FACTOR * settings.learning_rate},
        ],
        weight_decay=0.01,
        fused=baseline.device.type == "cuda",
    )
    steps = settings.epochs * -(-len(examples) // settings.batch_size)
    rising = max(1, round(settings.warmup * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / rising, (steps - step) / max(1, steps - rising))
    )
    measured_after = {round(settings.epochs * (k + 1) / settings.evaluations) for k in range(settings.evaluations)}
    rng = random.Random(f"{_ORDER}/{settings.seed}")
    lengths = [len(example.dialogue.ids) for example in examples]
    history: list[dict[str, Any]] = []
    best: dict[str, Any] = {}
    for epoch in range(1, settings.epochs + 1):
        started, total, count = time.perf_counter(), torch.zeros((), device=baseline.device), 0
        baseline.train()
        for numbers in like_batches(range(len(examples)), lengths, settings.batch_size, rng):
            batch = [examples[k] for k in numbers]
            with half_precision(baseline.device):
                loss = baseline.loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(baseline.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach()
            count += 1
        taken = time.perf_counter() - started
        logger.info("%s: epoch %d, loss %.4f, %.1f s", baseline.name, epoch, total.item() / count, taken)
        if epoch in measured_after and dev:
            em = exact_match(baseline, dev, settings.batch_size)
            logger.info("%s: epoch %d, dev EM %.4f", baseline.name, epoch, em)
            if em > max((float(item["em"]) for item in history), default=-1.0):
                best = {key: value.detach().cpu().clone() for key, value in baseline.state_dict().items()}
            history.append({"epoch": epoch, "em": em})
    if best:
        baseline.load_state_dict(best)
    return history


def exact_match(baseline: Baseline, rows: Sequence[Row], batch_size: int) -> float:
    """Return the share of rows whose prediction is an accepted rewrite."""
    with half_precision(baseline.device):
        predictions = baseline.predict([row.dialogue for row in rows], batch_size)
    right = [
        any(is_exact_match(prediction.rewrite, text) for text in (row.rewrite, *row.references))
        for row, prediction in zip(rows, predictions, strict=True)
    ]
    return sum(right) / len(right)


def half_precision(device: torch.device, *, wanted: bool = True) -> contextlib.AbstractContextManager[Any]:
    """Return the context of bf16 on CUDA, and one that changes nothing elsewhere or if it is not wanted."""
    use = wanted and device.type == "cuda"
    return torch.autocast("cuda", torch.bfloat16) if use else contextlib.nullcontext()
