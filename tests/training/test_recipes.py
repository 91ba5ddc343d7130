"""Every file in configs/ is a whole, valid configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from teo.data import READERS
from teo.training.config import SYNTHETIC, read_config
from teo.training.settings import read_settings, to_tree

CONFIGS = Path(__file__).parents[2] / "configs"
PRETRAINING = sorted(CONFIGS.rglob("pretrain*.toml"))
RECIPES = sorted(set(CONFIGS.rglob("*.toml")) - set(PRETRAINING))
VARIANTS = sorted(path for path in (CONFIGS / "paper").glob("*-*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_valid_and_says_what_it_is(path: Path) -> None:
    config = read_config(path)
    assert path.read_text(encoding="utf-8").startswith("# "), "the first line says what the recipe is"
    assert all(settings.name in {*READERS, SYNTHETIC} for settings in config.data)
    assert config.output == f"runs/{path.stem}", "a recipe writes where its name says, so that no two collide"


@pytest.mark.parametrize("path", PRETRAINING, ids=lambda path: path.stem)
def test_a_recipe_of_pretraining_is_valid(path: Path) -> None:
    pytest.importorskip("torch")
    from teo.training.pretraining.pretrain import PretrainConfig

    assert path.read_text(encoding="utf-8").startswith("# ")
    assert read_settings(path, PretrainConfig).loop.steps == 40_000, "time, not steps, ends the shipped runs"


@pytest.mark.parametrize("name", ["rewrite", "res200k", "task"])
def test_the_papers_values(name: str) -> None:
    config = read_config(CONFIGS / "paper" / f"{name}.toml")
    assert config.roles == ("stage1", "stage2")
    assert (config.optimisation.epochs, config.optimisation.learning_rate) == (30, 5e-5), "appendix B"
    assert (config.perturbation.prob_p, config.perturbation.prob_r) == (0.6, 0.5), "figure 3 and appendix B"
    assert config.perturbation.operations == "perturbed"
    assert "bart-base" in config.model.base


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: path.stem)
def test_a_variant_changes_one_thing(path: Path) -> None:
    whole = to_tree(read_config(path.with_name(f"{path.stem.partition('-')[0]}.toml")))
    variant = to_tree(read_config(path))
    assert len([key for key in whole if whole[key] != variant[key] and key != "output"]) == 1
