"""Every file in configs/ is a whole, valid configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from teo.data import READERS
from teo.training.config import SYNTHETIC, read_config

CONFIGS = Path(__file__).parents[2] / "configs"


def recipes() -> list[Path]:
    """Return the files that describe training (others in the folder describe pretraining)."""
    found = sorted(CONFIGS.glob("*.toml"))
    return [
        path
        for path in found
        if {"output", "extends"} & tomllib.loads(path.read_text(encoding="utf-8")).keys()
        and not path.name.startswith("pretrain")
    ]


@pytest.mark.parametrize("path", recipes(), ids=lambda path: path.stem)
def test_a_recipe_is_valid_and_says_what_it_is(path: Path) -> None:
    config = read_config(path)
    assert path.read_text(encoding="utf-8").startswith("# "), "the first line says what the recipe is"
    assert all(settings.name in {*READERS, SYNTHETIC} for settings in config.data)
    assert config.output == f"runs/{path.stem}", "a recipe writes where its name says, so that no two collide"


@pytest.mark.parametrize("name", ["rewrite", "res200k", "task"])
def test_the_papers_values(name: str) -> None:
    config = read_config(CONFIGS / f"{name}.toml")
    assert config.roles == ("stage1", "stage2")
    assert (config.optimisation.epochs, config.optimisation.learning_rate) == (30, 5e-5), "appendix B"
    assert (config.perturbation.prob_p, config.perturbation.prob_r) == (0.6, 0.5), "figure 3 and appendix B"
    assert config.perturbation.operations == "perturbed"
    assert "bart-base" in config.model.base


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("rewrite-direct", lambda config: config.roles == ("direct",)),
        ("rewrite-rfis", lambda config: config.roles == ("stage1", "rfis")),
        ("rewrite-fast", lambda config: config.roles == ("fast",)),
        ("rewrite-fused", lambda config: config.roles == ("fused",)),
        ("rewrite-shared", lambda config: config.shared),
        ("rewrite-t5", lambda config: "t5" in config.model.base),
        ("rewrite-predicted-ops", lambda config: config.perturbation.operations == "predicted"),
        ("rewrite-insertions-first", lambda config: config.order == "insertions-first"),
        ("rewrite-gold-ops", lambda config: config.perturbation.operations == "gold"),
    ],
)
def test_a_variant_differs_where_its_name_says(name: str, difference: object) -> None:
    assert callable(difference)
    assert difference(read_config(CONFIGS / f"{name}.toml"))
    assert not difference(read_config(CONFIGS / "rewrite.toml"))
