"""StageTrainer: transformers' Seq2SeqTrainer with our order of rows, loss options, averaged weights and dev EM."""

from __future__ import annotations

import copy
import json
import logging
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import PrinterCallback, ProgressCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from teo.models.backbone import IGNORED
from teo.training.averaging import RunningAverage, logit_divergence
from teo.training.batches import Collator, EpochOrder, ExampleDataset
from teo.training.config import EvaluationSettings, OptimisationSettings, OutputSettings, TrainConfig
from teo.training.dev import DevSet
from teo.training.processes import distributed_rank, wait_for_all
from teo.training.saving import COMPLETE, drop_checkpoints, save_weights

BEST = "best"
_AVERAGE = "average.pt"

logger = logging.getLogger(__name__)


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
        max_grad_norm=fit.clip,
        optim="adamw_torch_fused" if on_gpu else "adamw_torch",
        dataloader_num_workers=fit.workers,
        seed=config.seed,
        logging_steps=config.writing.log_every,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
    )


class Pace(TrainerCallback):
    """When to redraw the noise, evaluate and save; checkpoints are marked complete once all of them is written."""

    def __init__(
        self,
        dataset: ExampleDataset,
        evaluation: EvaluationSettings,
        writing: OutputSettings,
        ema: float = 0.0,
    ) -> None:
        self.dataset = dataset
        self.evaluation = evaluation
        self.writing = writing
        self.ema = ema
        self.average: RunningAverage | None = None
        self.resumed_from: Path | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Start the average of the weights, from a resumed run's where there is one."""
        if self.ema:
            self.average = RunningAverage(model, self.ema)
            if self.resumed_from is not None:
                stored = torch.load(self.resumed_from / _AVERAGE, map_location=model.device, weights_only=True)
                self.average.restore(stored)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Choose the epoch's noise and order, before any worker starts."""
        # A resumed run begins inside an epoch: the whole part of the fraction done is the epoch's number.
        self.dataset.set_epoch(int((state.epoch or 0.0) + 1e-6))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Update the average."""
        if self.average is not None:
            self.average.update(state.global_step - 1)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate and save every so many epochs, and after the last."""
        last = state.global_step >= state.max_steps
        number = self.dataset.epoch + 1
        control.should_log = True
        control.should_evaluate = last or _due(number, self.evaluation.every)
        control.should_save = _due(number, self.writing.checkpoint_epochs)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Mark the checkpoint complete, then drop the ones before it."""
        path = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        wait_for_all()  # every process writes its own random state
        if state.is_world_process_zero:
            if self.average is not None:
                torch.save(self.average.average, path / _AVERAGE)
            (path / COMPLETE).touch()
            drop_checkpoints(path.parent, keep=path)


def _due(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


class Bar(ProgressCallback):
    """A progress bar on stderr, and nothing else: the library's own also writes every log entry to stdout."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Leave logging to the lines."""


class Lines(TrainerCallback):
    """One plain line per logged loss and evaluation, for logs that are not a terminal."""

    def __init__(self, label: str) -> None:
        self.label = label

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Log the loss or the exact match."""
        if not state.is_world_process_zero or logs is None:
            return
        known = {"loss": "loss {:.4f}", "learning_rate": "lr {:.2e}", "eval_em": "dev EM {:.4f}"}
        shown = [form.format(float(logs[name])) for name, form in known.items() if name in logs]
        shown += [f"{name[8:]} {value:.4f}" for name, value in logs.items() if name.startswith("eval_em_")]
        if shown:
            logger.info("%s: epoch %.2f step %d: %s", self.label, state.epoch or 0, state.global_step, ", ".join(shown))


class StageTrainer(Seq2SeqTrainer):
    """Trains one set of weights on one or more roles, and keeps the best of them by dev EM."""

    def __init__(
        self,
        model: Any,
        args: Seq2SeqTrainingArguments,
        dataset: ExampleDataset,
        *,
        optimisation: OptimisationSettings,
        pace: Pace,
        dev: DevSet | None,
        label: str,
    ) -> None:
        self.codec = dataset.codec
        self.control: Any
        super().__init__(
            model=model,
            args=args,
            train_dataset=dataset,
            data_collator=Collator(dataset.codec.pad_id),
            callbacks=[pace, Lines(label)],
        )
        for printing in (PrinterCallback, ProgressCallback):  # both write to stdout, which is for data
            self.remove_callback(printing)
        if not args.disable_tqdm:
            self.add_callback(Bar())
        self.examples = dataset
        self.settings = optimisation
        self.pace = pace
        self.dev = dev
        # The loss is the mean over a batch's tokens.
        self.model_accepts_loss_kwargs = False

    def get_train_dataloader(self) -> DataLoader:
        """Return the batches of an epoch, in an order that depends on the seed and the epoch alone."""
        size, seed = self.args.per_device_train_batch_size, self.args.seed
        loader = DataLoader(
            self.examples,
            batch_size=size,
            sampler=EpochOrder(self.examples, seed, size),
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=torch.cuda.is_available() and not self.args.use_cpu,
        )
        return self.accelerator.prepare(loader)

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], return_outputs: bool = False, **_: Any) -> Any:
        """Return the mean negative log-likelihood of the target's tokens, with R-Drop where it is asked for."""
        if not self.settings.r_drop:
            outputs = model(**inputs)
            return (outputs.loss, outputs) if return_outputs else outputs.loss
        labels = inputs["labels"]
        unlabelled = {name: value for name, value in inputs.items() if name != "labels"}
        outputs = model(**unlabelled)
        again = model(**unlabelled).logits
        loss = (token_loss(outputs.logits, labels) + token_loss(again, labels)) / 2
        loss = loss + self.settings.r_drop * logit_divergence(outputs.logits, again, labels)
        return (loss, outputs) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return the dev EM of the (averaged) weights, and keep them if they are the best so far."""
        metrics: dict[str, float] = {}
        # Decoding changes the generation settings; the checkpoint keeps the plain ones.
        settings = copy.deepcopy(self.model.generation_config)
        with nullcontext() if self.pace.average is None else self.pace.average.applied():
            if self.dev is not None:
                scores = self.dev.evaluate(self.model, self.codec)
                metrics = {f"eval_{name}": value for name, value in scores.items()}
            self.model.generation_config = settings
            self.keep_best(metrics.get("eval_em", float(self.state.global_step)))
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def keep_best(self, score: float) -> None:
        """Save the weights beside the checkpoints if no earlier ones scored as high."""
        path = Path(self.args.output_dir) / BEST
        if distributed_rank()[0] == 0 and score > best_score(path):
            save_weights(self.model, self.codec, path, {"score": score, "step": self.state.global_step})
        wait_for_all()


def best_score(path: Path) -> float:
    """Return the score of the best weights so far; below any score where there are none."""
    file = path / "training.json"
    return float(json.loads(file.read_text(encoding="utf-8"))["score"]) if file.is_file() else -1.0


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss over the labels that count."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
