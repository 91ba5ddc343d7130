"""`teo-lab rows`: a recipe in, rows that `teo train` reads out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from teo.errors import ConfigError
from teo_lab.cli.app import app


def test_a_recipe_becomes_a_file_of_rows(tmp_path: Path) -> None:
    recipe, out = tmp_path / "rows.toml", tmp_path / "rows.jsonl"
    recipe.write_text("everyday_en = 500\ncounting_zh = 4\nseed = 2\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["rows", str(recipe), str(out), "everyday_en=6"], catch_exceptions=False)
    assert done.stdout == f"{out}: 10 rows\n"
    assert "6 rows of everyday-en" in done.stderr and "4 rows of counting-zh" in done.stderr
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 10
    assert all(row.keys() == {"id", "history", "utterance", "rewrite"} for row in rows)


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.toml").write_text("everyday_en = 5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="everyday_fr: unknown key"):
        command = ["rows", str(tmp_path / "rows.toml"), str(tmp_path / "out.jsonl"), "everyday_fr=3"]
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert not (tmp_path / "out.jsonl").exists()
