"""Every file in configs/ is a whole, valid configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from teo.data import READERS
from teo.training.config import SYNTHETIC, read_config

RECIPES = sorted((Path(__file__).parents[2] / "configs").rglob("*.toml"))


def test_there_are_recipes() -> None:
    assert [path.stem for path in RECIPES] == ["own", "smoke"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_valid_and_says_what_it_is(path: Path) -> None:
    config = read_config(path)
    assert path.read_text(encoding="utf-8").startswith("# "), "the first line says what the recipe is"
    assert all(settings.name in {*READERS, SYNTHETIC} for settings in config.data)
    assert config.output == f"runs/{path.stem}", "a recipe writes where its name says, so that no two collide"
