"""The paper's recipes, and that each kind of run changes one thing in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from teo.training.config import read_config
from teo.training.settings import to_tree
from teo_lab.paths import CONFIGS
from teo_lab.reproduce.experiments import DATASETS, OVERRIDES, Run

FOLDER = CONFIGS / "paper"


def test_every_dataset_has_a_recipe_and_no_file_is_left_over() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_the_papers_values(name: str) -> None:
    path = FOLDER / f"{name}.toml"
    config = read_config(path)
    assert path.read_text(encoding="utf-8").startswith("# "), "the first line says what the recipe is"
    assert config.output == f"runs/{name}"
    assert config.data[0].name == name
    assert config.roles == ("stage1", "stage2")
    assert (config.optimisation.epochs, config.optimisation.learning_rate) == (30, 5e-5), "appendix B"
    assert (config.perturbation.prob_p, config.perturbation.prob_r) == (0.6, 0.5), "figure 3 and appendix B"
    assert config.perturbation.operations == "perturbed"
    assert "bart-base" in config.model.base


CHANGED = {
    "teo": None,
    "t5": None,
    "direct": ("roles", ["direct"]),
    "rfis": ("roles", ["stage1", "rfis"]),
    "fused": ("roles", ["fused"]),
    "shared": ("shared", True),
    "insertions-first": ("order", "insertions-first"),
    "predicted-ops": ("perturbation.operations", "predicted"),
    "prob_p=0.2": ("perturbation.prob_p", 0.2),
}


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("kind", CHANGED)
def test_a_kind_of_run_changes_one_thing(kind: str, dataset: str) -> None:
    assert CHANGED.keys() - OVERRIDES.keys() == {"prob_p=0.2"}, "every kind is in this table"
    run = Run(dataset, kind)
    whole, made = (flat(FOLDER / run.recipe, overrides) for overrides in ((), run.overrides))
    different = [(key, made[key]) for key in whole if whole[key] != made[key]]
    assert different == ([CHANGED[kind]] if CHANGED[kind] else [])


def flat(path: Path, overrides: tuple[str, ...]) -> dict[str, object]:
    """Return a configuration by dotted keys, two levels deep."""
    found: dict[str, object] = {}
    for name, value in to_tree(read_config(path, overrides)).items():
        inner = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        found |= {key: list(part) if isinstance(part, tuple) else part for key, part in inner.items()}
    return found
