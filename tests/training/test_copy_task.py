"""The proof on a task that tests generate: two stages solve it, and stage 2 reads its operations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Operation
from teo.stages import Proposal, rewrite_given
from teo.training.backbones import load_base
from teo.training.config import TrainConfig
from teo.training.dev import Decoding, propose_operations
from teo.training.finetune import train
from teo.training.settings import build
from teo.training.synthetic import generate_rows
from teo.units import is_exact_match

torch.set_num_threads(1)
pytestmark = pytest.mark.slow
DECODING = Decoding("cpu", source_limit=64, target_limit=32, batch_size=128)


@pytest.fixture(scope="module")
def held_out() -> list[Row]:
    """Return rows that training never sees; a quarter of them cannot be solved without operations."""
    return generate_rows(2400, ambiguous=0.25)[2100:]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny model of two stages, trained as the paper says: gold operations, perturbed with 0.6 and 0.5."""
    folder = tmp_path_factory.mktemp("copy")
    rows = generate_rows(2400, ambiguous=0.25)
    for split, part in (("train", rows[:2000]), ("dev", rows[2000:2100])):
        lines = [json.dumps(row.to_dict()) for row in part]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    tree = {
        "output": str(folder / "model"),
        "device": "cpu",
        "model": {
            "base": "random",
            "source_limit": 64,
            "target_limit": 32,
            "random": {"family": "teo", "width": 64, "layers": 2, "heads": 4},
        },
        "data": {"path": str(folder)},
        "perturbation": {"prob_p": 0.6, "prob_r": 0.5},
        "optimisation": {
            "epochs": 8,
            "batch_size": 64,
            "learning_rate": 2e-3,
            "warmup": 0.05,
            "weight_decay": 0.0,
        },
        "evaluation": {"every": 2, "batch_size": 128},
        "writing": {"checkpoint_epochs": 0, "plots": False},
    }
    return train(build(TrainConfig, tree, "copy task")).folder


@pytest.fixture(scope="module")
def proposed(model: Path, held_out: list[Row]) -> list[tuple[Operation, ...]]:
    stages = DECODING.stages(*load_base(str(model / "stage1")), ["stage1"])
    return propose_operations(stages, held_out, DECODING)


def exact(model: Path, rows: Sequence[Row], operations: Sequence[Sequence[Operation]] | None) -> list[bool]:
    """Return which rows stage 2 gets right with the operations given; with the gold ones where none are."""
    stages = DECODING.stages(*load_base(str(model / "stage2")), ["stage2"])
    gold = [derive_edits(row.dialogue.utterance, row.rewrite).operations for row in rows]
    proposals = [Proposal(tuple(listed)) for listed in operations or gold]
    written = rewrite_given(stages, [row.dialogue for row in rows], proposals)
    return [is_exact_match(text.text, row.rewrite) for text, row in zip(written, rows, strict=True)]


def share(right: Sequence[bool], rows: Sequence[Row], kind: str) -> float:
    chosen = [one for one, row in zip(right, rows, strict=True) if row.id.startswith(kind)]
    return sum(chosen) / len(chosen)


def test_two_stages_solve_the_task_on_rows_they_never_saw(
    model: Path, held_out: list[Row], proposed: list[tuple[Operation, ...]]
) -> None:
    assert share(exact(model, held_out, proposed), held_out, "clear") >= 0.95


def test_gold_operations_are_at_least_as_good(
    model: Path, held_out: list[Row], proposed: list[tuple[Operation, ...]]
) -> None:
    two_stage, gold = exact(model, held_out, proposed), exact(model, held_out, None)
    assert sum(gold) >= sum(two_stage)
    assert share(gold, held_out, "clear") >= 0.95


def test_stage_2_uses_its_operations(model: Path, held_out: list[Row], proposed: list[tuple[Operation, ...]]) -> None:
    # "did he call" after two people were named: the dialogue does not say who, the operations do.
    assert share(exact(model, held_out, proposed), held_out, "ambiguous") < 0.75, "a guess is right half the time"
    assert share(exact(model, held_out, None), held_out, "ambiguous") >= 0.95
