"""train(config): rows and a base model -> one teo folder, role after role (or all roles in shared weights).

rows -> stage1 -> (its operations for dev) -> stage2, from stage 1's weights -> teo.json
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformers import set_seed
from transformers.utils import logging as transformers_logging

from teo.edits import Operation
from teo.errors import ConfigError
from teo.layouts import Layout
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import choose_device, learned_positions
from teo.training.backbones import LayoutChoice, build_random, load_base
from teo.training.batches import Batches, make_batches
from teo.training.best import BEST, read_facts
from teo.training.config import RANDOM, TrainConfig
from teo.training.curves import draw_curves
from teo.training.dataset import ExampleDataset
from teo.training.dev import Decoding, DevSet, propose_operations
from teo.training.examples import ExampleMaker
from teo.training.fitting import fit
from teo.training.log import read_history
from teo.training.loop import CHECKPOINT, uses_bf16
from teo.training.processes import distributed_rank, join_process_group, own_device, wait_for_all
from teo.training.record import GroupResult, TrainResult, require_same_data, write_record
from teo.training.rows import RunRows, hash_files, read_operations, read_rows, write_operations
from teo.training.run_folder import (
    DATA,
    SHARED,
    WORK,
    adopt_stage1,
    clear_folder,
    describe,
    find_stage1,
    is_made,
    open_folder,
)
from teo.training.saving import disk_errors, save_weights

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
        self.rows = self._prepare(resume)
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
                self.train_group(name, roles)
            self.result.groups[name] = GroupResult.read(self.work / name)
        if self.main:
            describe(self.output, config, groups, self.result.em, self._own_layout(groups))
            for name in groups:
                (self.work / name / CHECKPOINT).unlink(missing_ok=True)
        wait_for_all()
        return self.result

    def _own_layout(self, groups: Iterable[str]) -> Layout:
        """Return the layout that the finished weights were trained with."""
        import transformers

        folder = self.output / next(iter(groups))
        return self.layout.of_model(transformers.AutoConfig.from_pretrained(str(folder)))

    def _prepare(self, resume: bool) -> RunRows:
        """Return the rows; the main process changes the folder only once they and the models have loaded."""
        folder = self.work / DATA
        if self.main:
            resumed = open_folder(self.output, self.config, resume=resume)
            rows = self.read(folder, writes=True)
            files = [file for file in hash_files(rows.sources) if not is_made(self.output, Path(file["file"]))]
            if resumed:
                require_same_data(self.work, files)
            else:
                clear_folder(self.output, self._try_sources())
                write_record(self.work, self.config, files, self.device, distributed_rank()[1])
        wait_for_all()
        return rows if self.main else self.read(folder, writes=False)

    def _try_sources(self) -> list[Path]:
        """Return the files and folders that the run starts from, after loading them: a mistake is named early."""
        config, sources = self.config, []
        if config.model.stage1:
            sources.append(find_stage1(Path(config.model.stage1), self.layout))
            self._load(str(sources[0]))
        from_base = set(config.roles) - (_FROM_STAGE1 | {"stage1"} if sources and not config.shared else set())
        if from_base and config.model.base != RANDOM:
            self._load(config.model.base)
            sources.append(Path(config.model.base))
        if config.perturbation.predicted:
            sources.append(Path(config.perturbation.predicted))
            read_operations(sources[-1])
        return sources

    def read(self, folder: Path, *, writes: bool) -> RunRows:
        """Return the rows of the datasets."""
        config = self.config
        return read_rows(config.data, folder, config.unchanged, seed=config.seed, writes=writes)

    def train_group(self, name: str, roles: Sequence[str]) -> None:
        """Train one set of weights and move the best of them into the output folder."""
        work = self.work / name
        work.mkdir(parents=True, exist_ok=True)
        set_seed(self.config.seed)
        model, codec = self.start(name)
        batches = self.make_batches(name, roles, model, codec)
        fit(model, codec, batches, self._dev_set(roles), self.config, work, own_device(self.device))
        if self.main:
            self._close_group(name)
        wait_for_all()

    def make_batches(self, name: str, roles: Sequence[str], model: Any, codec: Codec) -> Batches:
        """Return the batches that a set of weights learns its roles from."""
        config = self.config
        predicted = self._predicted_for_training(roles)
        makers = [ExampleMaker.of_config(config, role, codec.layout, predicted) for role in roles]
        dataset = ExampleDataset.of_config(config, self.rows, makers, codec, learned_positions(model.config))
        logger.info("%s: %s, %s parameters, on %s", name, dataset.report, f"{model.num_parameters():,}", self.device)
        return make_batches(model, dataset, config)

    def _dev_set(self, roles: Sequence[str]) -> DevSet | None:
        """Return the rows that choose the best weights; None if there are none."""
        if not self.rows.dev:
            return None
        return DevSet(
            self.rows.dev,
            roles,
            self._decoding(),
            shared=self.config.shared,
            order=self.config.order,
            proposals=self._predicted_for_dev(roles),
            gold_only=self.config.evaluation.operations == "gold",
        )

    def start(self, name: str) -> tuple[Any, Codec]:
        """Return the model that a set of weights starts from: stage 1's for stage 2 (section 3.4), else the base."""
        stage1, base = self.output / "stage1", self.config.model.base
        if name in _FROM_STAGE1 and stage1.is_dir():
            return self._load(str(stage1))
        if base != RANDOM:
            return self._load(base)
        folder = self.work / "base"
        if self.main and not folder.is_dir():
            model, codec = build_random(self.config.model.random, self.rows.texts, self.config.seed)
            save_weights(model, codec, folder)
        wait_for_all()
        set_seed(self.config.seed)  # again: a resumed run that finds the folder draws the same new embeddings
        return self._load(str(folder))

    def _load(self, name: str) -> tuple[Any, Codec]:
        """Return a model to start from, with the dropout and the frozen layers of this run."""
        model, codec = load_base(name, self.layout)
        dropout = self.config.model.dropout
        if dropout >= 0 and hasattr(model, "set_dropout"):
            model.set_dropout(dropout)
        elif dropout >= 0 and self.config.model.base != RANDOM:  # a model from scratch was made with it
            raise ConfigError(f"model.dropout: only our own backbone can change it, found {type(model).__name__}")
        if frozen := self.config.model.frozen_layers:
            if not hasattr(model, "freeze"):
                raise ConfigError(f"model.frozen_layers: only our own backbone has them, found {type(model).__name__}")
            if frozen > (most := model.config.encoder_layers):
                raise ConfigError(f"model.frozen_layers: expected at most {most}, found {frozen}")
            model.freeze(frozen)
        return model, codec

    def _decoding(self) -> Decoding:
        config = self.config
        return Decoding(
            device=own_device(self.device),
            source_limit=config.model.source_limit,
            target_limit=config.model.target_limit,
            batch_size=config.evaluation.batch_size,
            bf16=uses_bf16(config.optimisation.bf16, self.device),
        )

    def _predicted_for_training(self, roles: Sequence[str]) -> dict[str, tuple[Operation, ...]] | None:
        """Return stage 1's operations for the training rows, if stage 2 is to be trained on them."""
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
        """Return stage 1's operations for the dev rows, if a finished stage 1 precedes the second stage."""
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

    def _close_group(self, name: str) -> None:
        """Write the curves and the result, then move the best weights into the output folder, which says: finished."""
        work = self.work / name
        step = int(read_facts(work / BEST)["step"])
        result = GroupResult.of_history(read_history(work), step)
        result.write(work)
        if self.config.writing.plots:
            draw_curves(result.history, self.work / f"{name}.png", name)
        scores = ", ".join(f"dev EM {role} {score:.4f}" for role, score in result.em.items())
        logger.info("%s: weights of step %d kept%s", name, step, f": {scores}" if scores else "")
        (work / BEST).rename(self.output / name)
