"""Our configuration in transformers' terms: the device, the trainer's arguments, TensorBoard."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from transformers import Seq2SeqTrainingArguments

from teo.errors import ConfigError
from teo.training.config import TrainConfig
from teo.training.dev import distributed_rank


def choose_device(name: str) -> str:
    """Return "cuda" or "cpu"; CUDA that is asked for must be there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: cuda was asked for, but torch finds no CUDA GPU here; use device=cpu or device=auto")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def torch_device(device: str) -> str:
    """Return the device of this process, by its number where there are several."""
    return f"cuda:{torch.cuda.current_device()}" if device == "cuda" else "cpu"


def uses_bf16(config: TrainConfig, device: str) -> bool:
    """Tell whether to compute in bfloat16."""
    return config.optimisation.bf16 and device == "cuda" and torch.cuda.is_bf16_supported()


def training_arguments(config: TrainConfig, folder: Path, device: str, examples: int = 1) -> Seq2SeqTrainingArguments:
    """Return transformers' settings for ours; evaluation and saving are timed by our own callback."""
    fit = config.optimisation
    batches = math.ceil(examples / (fit.batch_size * distributed_rank()[1]))
    updates = fit.steps or batches * fit.epochs
    on_gpu = device == "cuda"
    return Seq2SeqTrainingArguments(
        output_dir=str(folder),
        use_cpu=not on_gpu,
        bf16=uses_bf16(config, device),
        per_device_train_batch_size=fit.batch_size,
        num_train_epochs=fit.epochs,
        max_steps=fit.steps or -1,
        learning_rate=fit.learning_rate,
        warmup_steps=round(fit.warmup * updates),
        weight_decay=fit.weight_decay,
        max_grad_norm=fit.max_grad_norm,
        optim="adamw_torch_fused" if on_gpu else "adamw_torch",
        dataloader_num_workers=fit.workers,
        seed=config.seed,
        logging_steps=config.writing.log_steps,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
    )
