"""Every file in lab/configs is a whole, valid configuration; those of the paper have tests of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from teo.data import READERS
from teo.training.config import read_config
from teo.training.settings import read_settings
from teo_lab.paths import CONFIGS
from teo_lab.rows.build import build_rows
from teo_lab.rows.settings import RowsRecipe

SHIPPED = CONFIGS / "shipped"
ROWS = [
    CONFIGS / "everyday.toml",
    *(SHIPPED / f"{name}.toml" for name in ("rows", "mend-rows", "clean-rows", "research-rows")),
]


def test_every_file_is_of_a_known_kind() -> None:
    known = {*ROWS, *(SHIPPED / f"{name}.toml" for name in ("default", "mend", "clean", "research", "pretrain"))}
    found = {path for path in CONFIGS.rglob("*.toml") if path.parent.name != "paper"}
    assert found == known
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in found), "the first line says what it is"


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_a_recipe_of_rows_is_valid(path: Path) -> None:
    assert all(data.name in READERS for data in read_settings(path, RowsRecipe).data)


@pytest.mark.parametrize(
    ("model", "rows_file", "base"),
    [
        ("default", "rows", "teo-base"),
        ("mend", "mend-rows", "teo-default"),
        ("clean", "clean-rows", "teo-base"),
        ("research", "research-rows", "runs/clean/weights"),
    ],
)
def test_a_model_learns_the_rows_of_its_recipe(model: str, rows_file: str, base: str) -> None:
    config = read_config(SHIPPED / f"{model}.toml")
    recipe = read_settings(SHIPPED / f"{rows_file}.toml", RowsRecipe)
    *datasets, rows = config.data
    assert (rows.name, rows.path, rows.train, rows.dev) == ("jsonl", f"runs/{rows_file}.jsonl", "all", "")
    assert [(data.name, data.path, data.options) for data in datasets] == [
        (data.name, data.path, data.options) for data in recipe.data
    ], "the datasets that are trained on lend rewrites and histories"
    assert config.one_source, "the rows can be encoded beforehand"
    assert (config.output, config.model.base) == (f"runs/{model}", base)


def test_the_clean_model_learns_no_rows_without_a_free_licence() -> None:
    config, recipe = read_config(SHIPPED / "clean.toml"), read_settings(SHIPPED / "clean-rows.toml", RowsRecipe)
    assert {data.name for data in config.data} == {"task", "canard", "followup", "jsonl"}
    assert set(recipe.openings) == {"own", "free", "request"}, "no turns of corpora; the English requests are free"
    assert not (recipe.mudoco or recipe.labels or recipe.requests_zh)
    assert set(recipe.request_sources) == {"clinc150", "hwu64", "snips", "banking77"}


def test_the_recipe_of_pretraining_is_valid() -> None:
    pytest.importorskip("torch")
    from teo_lab.pretraining.clean_text import CLEAN_LINES
    from teo_lab.pretraining.pretrain import PretrainConfig

    config = read_settings(SHIPPED / "pretrain.toml", PretrainConfig)
    assert config.loop.steps == 60_000, "time, not steps, ends the run"
    shards = {Path(shard).stem for shard in config.shards}
    assert shards >= set(CLEAN_LINES) - {"zh_smile_more"}, "the shards that `teo-lab clean` writes"


def test_the_everyday_rows_of_own_data_are_what_their_recipe_makes(tmp_path: Path) -> None:
    recipe = read_settings(CONFIGS / "everyday.toml", RowsRecipe)
    assert build_rows(recipe, tmp_path / "everyday.jsonl") == 800
    stored = CONFIGS.parents[1] / "configs" / "everyday.jsonl"
    assert (tmp_path / "everyday.jsonl").read_bytes() == stored.read_bytes()
