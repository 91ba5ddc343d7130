"""Whether stage 2 minds the operations it is given: EM with stage 1's and with gold ones, E2C and C2E.

    python benchmarks/listening.py --data data --base weights/base --out lab/results/listening

The cells of PLAN differ in what stage 2 starts from, in its noise, epochs and dropout; the stage 1 that proposes and
`direct` are trained beside them. Each is measured on development rows, which are carved from train. The line of a cell
goes to DATASET.jsonl under --out, and which rows it has right to DATASET-rights.jsonl, for paired comparisons.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from given_operations import Measured, Operations, measure_direct, measure_stage1, measure_stage2
from teo.data import load_rows
from teo.data.row import Row
from teo.files import write_json, write_jsonl
from teo.pipelines import PIPELINES, predict
from teo.provenance import git_commit, versions
from teo.runtime.torch_generator import choose_device
from teo.stages import Proposal, rewrite_given
from teo.training.backbones import load_base
from teo.training.batches import ProcessShare, make_batches
from teo.training.config import TrainConfig, read_config
from teo.training.dataset import ExampleDataset
from teo.training.dev import Decoding, propose_operations
from teo.training.examples import ExampleMaker
from teo.training.fitting import loop_settings
from teo.training.loop import Loop, uses_bf16
from teo.training.losses import loss_model
from teo.training.packing import load_batches
from teo.training.rows import RunRows
from teo_lab.paths import CONFIGS

SETTINGS = (
    "optimisation.batch_size=128",
    "optimisation.batch_tokens=16384",
    "optimisation.learning_rate=2e-4",
    "optimisation.warmup=0.05",
    "optimisation.workers=2",
    "writing.checkpoint_epochs=0",
)
"""What is laid over the recipe of a dataset, as for the stored tables of the paper."""
FOLDS, DECODED_ROWS = 2, 512


@dataclass(frozen=True, slots=True)
class Cell:
    """What is trained and measured."""

    dataset: str = "rewrite"
    role: str = "stage2"
    """stage1, stage2 or direct."""
    start: str = "base"
    """base, or stage1: the weights of the dataset's stage 1."""
    prob_p: float | None = 0.6
    """None: stage 2 learns from operations that stage 1 predicts for rows that it has not seen."""
    epochs: int = 2
    dropout: float = 0.0

    @property
    def operations(self) -> str:
        """The operations that the role learns from."""
        if self.role != "stage2":
            return "none"
        return "folds" if self.prob_p is None else "perturbed"

    @property
    def name(self) -> str:
        """The name of the cell in the results."""
        start = "" if self.role == "stage1" else f"-from-{self.start}"
        noise = {"none": "", "folds": "-folds", "perturbed": f"-p{self.prob_p or 0:g}"}[self.operations]
        dropout = f"-dropout{self.dropout:g}" if self.dropout else ""
        return f"{self.dataset}-{self.role}{start}{noise}-e{self.epochs}{dropout}"

    def facts(self, seed: int) -> dict[str, Any]:
        """Return what the cell is, as its line begins."""
        noise = {"prob_p": self.prob_p if self.role == "stage2" else None, "operations": self.operations}
        known = {"cell": self.name, "dataset": self.dataset, "role": self.role, "start": self.start, **noise}
        return {**known, "epochs": self.epochs, "dropout": self.dropout, "seed": seed}


PLAN = (
    Cell(role="stage1", epochs=8),
    Cell(start="stage1"),
    *(Cell(prob_p=prob_p) for prob_p in (0.6, 0.0, 0.2, 1.0)),
    Cell(start="stage1", prob_p=0.0),
    Cell(role="direct"),
    Cell(dropout=0.2),
    *(Cell(prob_p=prob_p) for prob_p in (0.4, 0.8, None)),
    Cell("res200k", "stage1", epochs=8),
    Cell("res200k", epochs=6),
    Cell("res200k", start="stage1", epochs=6),
    Cell("res200k", prob_p=0.0, epochs=6),
    Cell(epochs=1),
    Cell(epochs=8),
    *(Cell(start="stage1", prob_p=prob_p) for prob_p in (0.2, 1.0)),
    Cell(prob_p=0.2, dropout=0.2),
    *(Cell(start="stage1", prob_p=prob_p) for prob_p in (0.4, 0.8)),
    *(Cell(start="stage1", epochs=epochs) for epochs in (8, 1)),
    Cell("res200k", prob_p=0.2, epochs=6),
    Cell("res200k", "direct", epochs=6),
    Cell("res200k", prob_p=1.0, epochs=6),
)
"""The cells, the most informative first; the stage 1 of a dataset stands before its others."""


class Study:
    """The model that each cell trains anew, the weights that cells start from, and what stage 1 proposed."""

    def __init__(self, options: argparse.Namespace) -> None:
        set_seed(options.seed)
        self.options, self.device = options, choose_device(options.device)
        self.model, self.codec = load_base(options.base)
        self.model.to(self.device)
        self.weights = {"base": self._copy_weights()}
        self.proposed: dict[str, list[Operations]] = {}

    def run(self, cell: Cell) -> Measured:
        """Train a cell, measure it, and return its figures and the rows that are right."""
        rows, dev = self._read(cell, "train", self.options.rows), self._read(cell, "dev", self.options.dev_rows)
        predicted, about_folds = self._predict_by_folds(cell, rows) if cell.operations == "folds" else ({}, {})
        taken = self._fit(cell, rows, predicted)
        started = time.monotonic()
        measured, rights = self._measure(cell, dev)
        return {**measured, **about_folds, **taken, "eval_seconds": round(time.monotonic() - started, 2)}, rights

    def _read(self, cell: Cell, split: str, limit: int) -> Sequence[Row]:
        return load_rows(cell.dataset, self.options.data / cell.dataset, split).rows[: limit or None]

    def _configure(self, cell: Cell) -> TrainConfig:
        noise = "predicted" if cell.operations == "folds" else "perturbed"
        values = {"roles": [cell.role], "seed": self.options.seed, "optimisation.epochs": cell.epochs}
        values |= {"perturbation.operations": noise, "perturbation.prob_p": cell.prob_p or 0.0}
        changes = [f"{key}={json.dumps(value)}" for key, value in values.items()]
        return read_config(CONFIGS / "paper" / f"{cell.dataset}.toml", [*SETTINGS, *changes])

    def _fit(self, cell: Cell, rows: Sequence[Row], predicted: Mapping[str, Operations]) -> dict[str, Any]:
        """Train the model in place and return what it took."""
        started, config, device = time.monotonic(), self._configure(cell), torch.device(self.device)
        self.model.load_state_dict(self.weights["base" if cell.start == "base" else f"{cell.dataset}-stage1"])
        self.model.set_dropout(cell.dropout)
        set_seed(config.seed)
        maker = ExampleMaker.of_config(config, cell.role, self.codec.layout, predicted)
        dataset = ExampleDataset.of_config(config, RunRows(list(rows)), [maker], self.codec)
        share = ProcessShare(make_batches(self.model, dataset, config))
        settings = loop_settings(config, share)
        with tempfile.TemporaryDirectory() as folder:
            loop = Loop(loss_model(self.model), settings, Path(folder), device, seed=config.seed, label=cell.name)
            prepared = time.monotonic()
            loop.fit(iter(load_batches(share, config.optimisation.workers, device)))
        self.model.set_dropout(0.0)
        seconds = {"prepare_seconds": prepared - started, "train_seconds": time.monotonic() - prepared}
        counts = {"train_rows": len(rows), "updates": loop.clock.step, "updates_planned": settings.steps}
        return {**counts, **{name: round(value, 2) for name, value in seconds.items()}}

    def _predict_by_folds(self, cell: Cell, rows: Sequence[Row]) -> tuple[dict[str, Operations], dict[str, Any]]:
        """Return the operations of each row by a stage 1 that has not seen it, and how many of them are right."""
        predicted: dict[str, Operations] = {}
        started = time.monotonic()
        stage1 = Cell(cell.dataset, "stage1", epochs=cell.epochs + 1)  # one more, since it has only a part of the rows
        for number in range(FOLDS):
            self._fit(stage1, [row for k, row in enumerate(rows) if k % FOLDS != number], {})
            unseen = rows[number::FOLDS]
            predicted |= zip([row.id for row in unseen], self._propose(stage1, unseen), strict=True)
        right = measure_stage1(rows, [predicted[row.id] for row in rows])[0]["stage1_em"]
        return predicted, {"folds_em": right, "fold_seconds": round(time.monotonic() - started, 2)}

    def _measure(self, cell: Cell, rows: Sequence[Row]) -> Measured:
        """Return the figures of the trained model; of stage 1, keep the weights and what it proposes."""
        if cell.role == "stage1":
            self.weights[f"{cell.dataset}-stage1"] = self._copy_weights()
            proposed = self.proposed[cell.dataset] = self._propose(cell, rows)
            return measure_stage1(rows, proposed)
        decoding = self._decoding(cell)
        stages = decoding.stages(self.model, self.codec, (cell.role,))

        def rewrite(asked: Sequence[Row], given: Sequence[Operations]) -> list[str]:
            def run(part: list[int]) -> list[str]:
                dialogues = [asked[k].dialogue for k in part]
                if cell.role == "direct":
                    return [made.rewrite for made in predict(PIPELINES["direct"], stages, dialogues)]
                return [made.text for made in rewrite_given(stages, dialogues, [Proposal(given[k]) for k in part])]

            return decoding.run(run, len(asked))

        measure = measure_direct if cell.role == "direct" else measure_stage2
        return measure(rows, self.proposed[cell.dataset], rewrite)

    def _propose(self, cell: Cell, rows: Sequence[Row]) -> list[Operations]:
        decoding = self._decoding(cell)
        return propose_operations(decoding.stages(self.model, self.codec, ("stage1",)), rows, decoding)

    def _decoding(self, cell: Cell) -> Decoding:
        limits, bf16 = self._configure(cell).model, uses_bf16(True, self.device)
        return Decoding(self.device, limits.source_limit, limits.target_limit, DECODED_ROWS, bf16)

    def _copy_weights(self) -> dict[str, torch.Tensor]:
        return {name: weight.detach().clone() for name, weight in self.model.state_dict().items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in order, print the line of each, and store all lines after each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds rewrite and res200k")
    parser.add_argument("--base", required=True, help="the model that cells start from")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--minutes", type=float, default=0.0, help="no cell is begun after them; 0: all are run")
    parser.add_argument("--rows", type=int, default=0, help="training rows of a dataset, for a trial; 0: all")
    parser.add_argument("--dev-rows", type=int, default=1000, help="development rows to measure on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    options, began = parser.parse_args(arguments), time.monotonic()
    study, stored = Study(options), defaultdict[str, list[dict[str, Any]]](list)
    options.out.mkdir(parents=True, exist_ok=True)
    facts = {name: getattr(options, name) for name in ("base", "seed", "minutes", "rows", "dev_rows")}
    facts |= {"device": torch.cuda.get_device_name() if study.device == "cuda" else study.device, "settings": SETTINGS}
    made_by = {"versions": versions(["torch", "transformers"]), "commit": git_commit()}
    write_json(options.out / "run.json", {**facts, **made_by})
    for cell in PLAN:
        seconds = time.monotonic() - began
        line = {**cell.facts(options.seed), "status": "done", "at_seconds": round(seconds, 1)}
        if options.minutes and seconds >= 60 * options.minutes:
            line |= {"status": "skipped", "why": "no minutes left"}
        else:
            figures, rights = study.run(cell)
            line |= figures
            stored[f"{cell.dataset}-rights"].append({"cell": cell.name, **rights})
        stored[cell.dataset].append(line)
        for name, lines in stored.items():
            write_jsonl(options.out / f"{name}.jsonl", lines)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
