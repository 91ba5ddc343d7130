"""train(config): rows and a base model -> one teo folder, role after role (or all roles in shared weights).

rows -> stage1 -> (its operations for dev) -> stage2, from stage 1's weights -> teo.json
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformers import set_seed
from transformers.utils import logging as transformers_logging

from teo.edits import Operation
from teo.errors import ConfigError, TeoError
from teo.layouts import Layout
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import choose_device, learned_positions
from teo.training.backbones import LayoutChoice, build_random, load_base
from teo.training.batches import ExampleDataset
from teo.training.config import RANDOM, TrainConfig
from teo.training.curves import draw_curves
from teo.training.dev import Decoding, DevSet, propose_operations
from teo.training.encoded import EncodedBatches, EncodedRows, made_for
from teo.training.examples import ExampleMaker
from teo.training.packed import Batches, check_packed, fit_packed, pack, read_losses
from teo.training.processes import distributed_rank, join_process_group, own_device, wait_for_all
from teo.training.record import RECORD, GroupResult, TrainResult, write_record
from teo.training.rows import RunRows, hash_files, read_operations, read_rows, write_operations
from teo.training.run_folder import SHARED, WORK, adopt_stage1, describe, open_folder
from teo.training.saving import (
    complete_checkpoints,
    disk_errors,
    drop_checkpoints,
    drop_incomplete,
    save_weights,
)
from teo.training.trainer import BEST, Pace, StageTrainer, training_arguments, uses_bf16

_FROM_STAGE1 = frozenset({"stage2", "rfis"})

logger = logging.getLogger(__name__)


def train(config: TrainConfig, *, resume: bool = False) -> TrainResult:
    """Train the roles of a configuration and return the folder of the model that they make up."""
    with disk_errors(Path(config.output)):
        return Run(config, resume=resume).finish()


class Run:
    """One training run: its folders, its rows, and the sets of weights that are finished."""

    def __init__(self, config: TrainConfig, *, resume: bool = False) -> None:
        transformers_logging.set_verbosity_error()
        if not sys.stderr.isatty():
            transformers_logging.disable_progress_bar()
        self.config = config
        self.device = choose_device(config.device)
        self.layout = LayoutChoice(config.model.layout, config.model.speakers)
        self.output = Path(config.output)
        self.work = self.output / WORK
        join_process_group(self.device)
        self.main = distributed_rank()[0] == 0
        if self.main:
            open_folder(self.output, config, resume=resume)
        wait_for_all()
        self.rows = self._read_rows()
        self.result = TrainResult(self.output)

    def finish(self) -> TrainResult:
        """Train what is not trained yet, then describe the whole in teo.json."""
        config = self.config
        if config.model.stage1 and self.main:
            adopt_stage1(Path(config.model.stage1), self.output / "stage1", self.layout)
        wait_for_all()
        groups = {SHARED: config.roles} if config.shared else {role: (role,) for role in config.roles}
        for name, roles in groups.items():
            if not (self.output / name).is_dir():
                self._train_group(name, roles)
            self.result.groups[name] = GroupResult.read(self.work / name)
        if self.main:
            describe(self.output, config, groups, self.result.em, self._own_layout(groups))
            for name in groups:
                drop_checkpoints(self.work / name)
        wait_for_all()
        return self.result

    def _own_layout(self, groups: Iterable[str]) -> Layout:
        """Return the layout that the finished weights were trained with."""
        import transformers

        folder = self.output / next(iter(groups))
        return self.layout.of_model(transformers.AutoConfig.from_pretrained(str(folder)))

    def _read_rows(self) -> RunRows:
        """Return the rows; the main process writes the record once they are read."""
        folder = self.work / "data"
        if self.main:
            rows = self._read(folder, writes=True)
            if not (self.work / RECORD).is_file():
                hashes = hash_files(rows.sources)
                write_record(self.work, self.config, hashes, self.device, distributed_rank()[1])
        wait_for_all()
        if self.main:
            return rows
        return self._read(folder, writes=False)

    def _read(self, folder: Path, *, writes: bool) -> RunRows:
        """Return the rows of the datasets; none where they were encoded beforehand."""
        if self.config.encoded:
            return RunRows(sources=[Path(file) for file in self.config.encoded])
        return read_rows(self.config.data, folder, self.config.augmentation, writes=writes)

    def _train_group(self, name: str, roles: Sequence[str]) -> None:
        """Train one set of weights and move the best of them to their place in the output folder."""
        config, work = self.config, self.work / name
        work.mkdir(parents=True, exist_ok=True)
        set_seed(config.seed)
        model, codec = self._start(name)
        if config.packed:
            check_packed(config, model, distributed_rank()[1])
        if config.encoded:
            encoded = EncodedRows.load(config.encoded)
            encoded.require(made_for(roles, codec))
            self._train_packed(name, model, codec, EncodedBatches(encoded, config.optimisation, config.seed), None)
            return
        predicted = self._predicted_for_training(roles)
        makers = [ExampleMaker.of_config(config, role, codec.layout, predicted) for role in roles]
        dataset = ExampleDataset.of_config(config, self.rows, makers, codec, learned_positions(model.config))
        logger.info("%s: %s, %s parameters, on %s", name, dataset.report, f"{model.num_parameters():,}", self.device)
        dev = None
        if self.rows.dev:
            dev = DevSet(
                self.rows.dev,
                roles,
                self._decoding(),
                shared=config.shared,
                order=config.order,
                proposals=self._predicted_for_dev(roles),
                gold_only=config.evaluation.operations == "gold",
            )
        if config.packed:
            self._train_packed(name, model, codec, pack(dataset, config), dev)
            return
        trainer = self._trainer(model, dataset, dev, name)
        done = complete_checkpoints(work)
        if done:
            trainer.pace.resumed_from = done[-1]
            logger.info("%s: going on from %s", name, done[-1].name)
        try:
            with disk_errors(work):
                trainer.train(resume_from_checkpoint=str(done[-1]) if done else None)
        except TeoError:
            drop_incomplete(work)
            raise
        judged = (work / BEST).is_dir()
        wait_for_all()  # before one process moves that folder away: all must take the same way here
        if not judged:  # killed between the last checkpoint and the first evaluation
            trainer.evaluate()
        if self.main:
            self._close_group(name, trainer)
        wait_for_all()

    def _train_packed(self, name: str, model: Any, codec: Codec, batches: Batches, dev: DevSet | None) -> None:
        """Train one set of weights on all roles at once, judge them on dev and put them into their place."""
        work = self.work / name
        step = fit_packed(model, batches, self.config, work, own_device(self.device))
        scores = dev.evaluate(model, codec) if dev is not None else {}
        if not self.main:
            return
        history = [*read_losses(work), {"step": step, **{f"eval_{key}": score for key, score in scores.items()}}]
        result = GroupResult.of_history(history, step)
        self._write_result(name, result)
        save_weights(model, codec, self.output / name, {"step": step})

    def _start(self, name: str) -> tuple[Any, Codec]:
        """Return the model that a set of weights starts from: stage 1's for stage 2 (section 3.4), else the base."""
        stage1 = self.output / "stage1"
        if name in _FROM_STAGE1 and stage1.is_dir():
            return load_base(str(stage1), self.layout)
        base, dropout = self.config.model.base, self.config.model.dropout
        if base != RANDOM:
            model, codec = load_base(base, self.layout)
            if dropout >= 0:
                if not hasattr(model, "set_dropout"):
                    raise ConfigError(
                        f"model.dropout: only our own backbone can change it, found {type(model).__name__}"
                    )
                model.set_dropout(dropout)
            return model, codec
        folder = self.work / "base"
        if self.main and not folder.is_dir():
            model, codec = build_random(self.config.model.random, self.rows.texts, self.config.seed)
            save_weights(model, codec, folder)
        wait_for_all()
        return load_base(str(folder), self.layout)

    def _decoding(self) -> Decoding:
        config = self.config
        return Decoding(
            device=own_device(self.device),
            source_limit=config.model.source_limit,
            target_limit=config.model.target_limit,
            batch_size=config.evaluation.batch_size,
            bf16=uses_bf16(config, self.device),
        )

    def _predicted_for_training(self, roles: Sequence[str]) -> dict[str, tuple[Operation, ...]] | None:
        """Return stage 1's operations for the training rows, where stage 2 is to be trained on them."""
        settings = self.config.perturbation
        if settings.operations != "predicted" or "stage2" not in roles:
            return None
        if settings.predicted:
            return read_operations(Path(settings.predicted))
        if self.config.shared or not (self.output / "stage1").is_dir():
            raise ConfigError(
                "perturbation.predicted: expected a JSONL file, since no stage 1 is finished before stage 2 here; "
                "give one, or train stage1 first in weights of its own"
            )
        return self._predict("train")

    def _predicted_for_dev(self, roles: Sequence[str]) -> list[tuple[Operation, ...]] | None:
        """Return stage 1's operations for the dev rows, where a finished stage 1 precedes the second stage."""
        if not _FROM_STAGE1 & set(roles) or self.config.shared or not (self.output / "stage1").is_dir():
            return None
        predicted = self._predict("dev")
        return [predicted[row.id] for row in self.rows.dev]

    def _predict(self, split: str) -> dict[str, tuple[Operation, ...]]:
        """Return what stage 1 predicts for a split; it is predicted once and kept as JSONL."""
        path = self.work / f"operations.{split}.jsonl"
        rows = self.rows.train if split == "train" else self.rows.dev
        if not path.is_file():
            logger.info("stage1: predicting operations for %d %s rows", len(rows), split)
            model, codec = load_base(str(self.output / "stage1"), self.layout)
            stages = self._decoding().stages(model, codec, ("stage1",), order=self.config.order)
            proposals = propose_operations(stages, rows, self._decoding())
            if self.main:
                write_operations(path, rows, proposals, self.config.order)
        wait_for_all()
        return read_operations(path)

    def _trainer(self, model: Any, dataset: ExampleDataset, dev: DevSet | None, name: str) -> StageTrainer:
        config = self.config
        return StageTrainer(
            model,
            training_arguments(config, self.work / name, self.device, len(dataset)),
            dataset,
            optimisation=config.optimisation,
            pace=Pace(dataset, config.evaluation, config.writing, config.optimisation.ema),
            dev=dev,
            label=name,
        )

    def _close_group(self, name: str, trainer: StageTrainer) -> None:
        """Write the curves and the result, then move the best weights to their place, which says: finished."""
        work = self.work / name
        best = work / BEST
        step = int(json.loads((best / "training.json").read_text(encoding="utf-8"))["step"])
        self._write_result(name, GroupResult.of_history(trainer.state.log_history, step))
        best.rename(self.output / name)

    def _write_result(self, name: str, result: GroupResult) -> None:
        """Write the result and the curves of a set of weights, and log its dev EM."""
        result.write(self.work / name)
        if self.config.writing.plots:
            draw_curves(result.history, self.work / f"{name}.png", name)
        scores = ", ".join(f"dev EM {role} {score:.4f}" for role, score in result.em.items())
        logger.info("%s: weights of step %d kept%s", name, result.step, f": {scores}" if scores else "")
