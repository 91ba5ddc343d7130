"""The smoke recipe end to end: one command trains every role, and every variant is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from teo.evaluation.ablations import VARIANTS
from teo.evaluation.evaluate import Request, evaluate_every
from teo.training.config import read_config
from teo.training.finetune import train

torch.set_num_threads(1)
CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.slow
def test_the_smoke_recipe_trains_and_every_variant_is_evaluated(tmp_path: Path) -> None:
    folder = tmp_path / "smoke"
    dev = train(read_config(CONFIGS / "smoke.toml", [f"output={folder}"])).em
    assert min(dev["stage1"], dev["stage2"], dev["direct"]) >= 0.9
    data = folder / "training" / "data" / "synthetic"
    request = Request("jsonl", data, tmp_path / "all", model=folder, device="cpu", batch_size=128)
    em = {name: evaluation.measures.scores["em"] for name, evaluation in evaluate_every(request).items()}
    assert set(em) == set(VARIANTS)
    for variant in VARIANTS:
        assert (tmp_path / "all" / variant / "report.md").is_file()
    table = (tmp_path / "all" / "variants.md").read_text()
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [f"| {variant}" for variant in VARIANTS]
    assert em["gold"] >= em["teo"] >= 0.9
    assert em["stage1"] < em["teo"], "insertions at random places: stage 2 is what places them"
