"""The paper's experiments as values: its tables, the models that each needs, and what is measured of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from teo.errors import InputError

EVERY = "all"
"""The name that means: every table."""
DATASETS: Mapping[str, str] = {"task": "TASK", "rewrite": "REWRITE", "res200k": "RES200K"}
"""The paper's datasets, and what their authors call them."""
PAPER_PROB_P = 0.6
PROB_PS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Figure 3's values of prob_p."""
_PROB_P = "prob_p="
_FROM_STAGE1 = ("rfis", "predicted-ops")
OVERRIDES: Mapping[str, tuple[str, ...]] = {
    "teo": (),
    "direct": ('roles=["direct"]',),
    "rfis": ('roles=["stage1", "rfis"]',),
    "predicted-ops": ("perturbation.operations=predicted",),
    "t5": (),
    "shared": ("shared=true",),
    "fused": ('roles=["fused"]',),
    "insertions-first": ("order=insertions-first",),
}
"""What makes a kind of run of its dataset's recipe (configs/paper), as `teo train RECIPE KEY=VALUE` takes it.

- teo: two stages, as the recipe has them. t5: the same, from the T5 that `--t5` names.
- direct: the paper's BART baseline, the rewrite at once and no operations.
- rfis: replacements are made after stage 1, and stage 2 gets the insertions alone (TEO-RFIS).
- predicted-ops: stage 2 is trained on what stage 1 predicts for the training rows, without perturbation (section 4.4).
- shared: both stages in one set of weights. fused: one decoder writes the operations and then the rewrite.
- insertions-first: operations in the order of equation 2, all insertions before all replacements.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A model to train: the recipe of a dataset, a kind and a seed."""

    dataset: str
    kind: str
    """A key of OVERRIDES, or prob_p=VALUE: teo with that noise."""
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the run's folders."""
        return f"{self.dataset}-{self.kind}-seed{self.seed}"

    @property
    def recipe(self) -> str:
        """The file of configs/paper that the run follows."""
        return f"{self.dataset}.toml"

    @property
    def overrides(self) -> tuple[str, ...]:
        """What the run changes in its recipe."""
        return (f"perturbation.prob_p={self.prob_p}",) if self.prob_p is not None else OVERRIDES[self.kind]

    @property
    def prob_p(self) -> float | None:
        """The share of noise if it is not the recipe's, else None."""
        return float(self.kind.removeprefix(_PROB_P)) if self.kind.startswith(_PROB_P) else None

    @property
    def stage1_from(self) -> Run | None:
        """The run whose stage 1 this one takes as it is, so that stage 1 is trained once for all of them."""
        borrows = self.kind in _FROM_STAGE1 or self.prob_p is not None
        return Run(self.dataset, "teo", self.seed) if borrows else None


@dataclass(frozen=True, slots=True)
class System:
    """A row of a table: a variant of a trained model."""

    name: str
    kind: str
    """The run's kind."""
    variant: str
    """As `teo evaluate --variant` names it."""
    published: str = ""
    """The system's name in published.json; empty if the paper has no such row."""


TEO = System("TEO", "teo", "teo", "TEO")
SYSTEMS = (
    System("copy", "teo", "copy"),
    System("direct", "direct", "direct", "BART-base"),
    System("TEO-Stage1", "teo", "stage1", "TEO-Stage1"),
    System("TEO-RFIS", "rfis", "rfis", "TEO-RFIS"),
    System("TEO-T5", "t5", "teo", "TEO-T5"),
    TEO,
    System(
        "TEO, predicted operations", "predicted-ops", "teo", "TEO, stage 2 trained on predicted operations"
    ),  # section 4.4, on REWRITE alone
    System("TEO-Gold", "teo", "gold", "TEO-Gold"),
)
SEPARATE = System("separate", "teo", "teo", "TEO")
DIRECT = System("direct", "direct", "direct", "BART-base")
ARCHITECTURES: Mapping[System, str] = {
    SEPARATE: "a set of weights for each stage, as in the paper",
    System("shared", "shared", "teo"): "both stages in one set of weights; stage 2 reads the operations in its source",
    System("fused", "fused", "fused"): "one decoder writes the operations and then the rewrite",
    DIRECT: "the rewrite at once, without operations",
    System("stage 1 alone", "teo", "stage1", "TEO-Stage1"): "stage 1 of separate, its insertions at random positions",
    System("rerank", "teo", "rerank"): "both stages of separate score every position of the operations (equation 1)",
    System("insertions first", "insertions-first", "teo"): "separate, operations in the order of equation 2",
}
"""The architectures of the two stages, and what each is."""
CASES = "cases"
"""Stands for a variant if the paper's examples are rewritten instead of a test set."""
CASE_KINDS = ("teo", "shared", "fused", "direct")
"""The runs that rewrite the examples."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table or figure of the paper."""

    name: str
    title: str
    layout: Literal["systems", "flow", "cells", "errors", "cases", "statistics", "architectures", "sweep"]
    """Systems side by side, rates between the stages, rows right and wrong by stage, errors by operation, the paper's
    examples, dataset statistics, the architectures of the two stages, or EM against prob_p."""
    datasets: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    """Columns beside EM, by their names in published.json."""

    @property
    def counts_data(self) -> bool:
        """Whether it counts the datasets themselves, so that it needs their files."""
        return self.layout in ("statistics", "errors")


_ROUGE = ("rouge1", "rouge2", "rougeL")
_RESTORATION = ("p1", "r1", "f1", "p2", "r2", "f2", "p3", "r3", "f3")
TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table("table2", "Table 2: TASK", "systems", ("task",), ("bleu4", "f1")),
        Table("table3", "Table 3: REWRITE", "systems", ("rewrite",), ("bleu1", "bleu2", *_ROUGE, "f1", "f2", "f3")),
        Table("table4", "Table 4: RES200K", "systems", ("res200k",), (*_RESTORATION, "bleu1", "bleu2", *_ROUGE[:2])),
        Table("table5", "Table 5: what stage 2 makes of stage 1", "flow", tuple(DATASETS)),
        Table("table9", "Table 9: dataset statistics", "statistics", tuple(DATASETS)),
        Table(
            "architectures",
            "Separate, shared, fused: architectures of two stages",
            "architectures",
            tuple(DATASETS),
            ("bleu4", "rougeL"),
        ),
        Table("figure2", "Figure 2: right and wrong in both stages", "cells", tuple(DATASETS)),
        Table("errors", "Section 4.9: operations and errors by kind", "errors", tuple(DATASETS)),
        Table("cases", "Tables 1, 6 and 8: the paper's examples", "cases", ("task", "rewrite")),
        Table("figure3", "Figure 3: EM on REWRITE against prob_p", "sweep", ("rewrite",)),
    )
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A variant of a run's model, to be measured on the test set."""

    run: Run
    variant: str


def find_tables(name: str) -> list[Table]:
    """Return the table of a name, or all of them."""
    if name == EVERY:
        return list(TABLES.values())
    if name not in TABLES:
        raise InputError(f"reproduce: expected one of {', '.join(TABLES)}, {EVERY}; found '{name}'")
    return [TABLES[name]]


def systems_of(dataset: str, *, t5: bool) -> list[System]:
    """Return the rows of a dataset's table; the T5 row only if there is a T5 to start from."""
    left_out = {kind for kind, absent in (("t5", not t5), ("predicted-ops", dataset != "rewrite")) if absent}
    return [system for system in SYSTEMS if system.kind not in left_out]


def architectures_of(dataset: str) -> list[System]:
    """Return the architectures that are compared on a dataset; the order of equation 2 on REWRITE alone."""
    return [system for system in ARCHITECTURES if system.kind != "insertions-first" or dataset == "rewrite"]


def sweep_run(value: float, dataset: str, seed: int) -> Run:
    """Return the run of one prob_p; the paper's own value is that of TEO itself."""
    return Run(dataset, "teo" if value == PAPER_PROB_P else f"{_PROB_P}{value:g}", seed)


def list_measurements(
    tables: Sequence[Table], datasets: Sequence[str], *, seeds: int, t5: bool = False
) -> list[Measurement]:
    """Return what must be measured for the tables, each once; a model stands before those that take its stage 1."""
    listed: list[Measurement] = []
    for table in tables:
        for dataset in (name for name in table.datasets if name in datasets):
            for seed in range(seeds):
                listed += _of_table(table, dataset, seed, t5=t5)
    first = {measurement.run: place for place, measurement in reversed(list(enumerate(listed)))}
    return sorted(dict.fromkeys(listed), key=lambda item: (item.run.stage1_from is not None, first[item.run]))


def _of_table(table: Table, dataset: str, seed: int, *, t5: bool) -> list[Measurement]:
    if table.layout == "systems":
        return [Measurement(Run(dataset, system.kind, seed), system.variant) for system in systems_of(dataset, t5=t5)]
    if table.layout == "architectures":
        return [Measurement(Run(dataset, system.kind, seed), system.variant) for system in architectures_of(dataset)]
    if table.layout == "cases":
        return [Measurement(Run(dataset, kind), CASES) for kind in CASE_KINDS] if seed == 0 else []
    if table.layout in ("flow", "cells", "errors"):
        return [Measurement(Run(dataset, "teo", seed), "teo")]
    if table.layout == "sweep":
        return [Measurement(sweep_run(value, dataset, seed), "teo") for value in PROB_PS]
    return []
