"""`teo-lab pretrain`: a thin cover over teo_lab.pretraining.pretrain."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from teo.errors import ConfigError
from teo.training.settings import read_settings
from teo_lab.cli.app import app
from teo_lab.pretraining.pretrain import PretrainConfig


def configuration(tmp_path: Path) -> Path:
    shard = tmp_path / "tiny.jsonl"
    turns = ["Do you know the film Batman?", "Yes, the film Batman is great.", "Who acted in the film Batman?"]
    shard.write_text("".join(json.dumps({"turns": turns}) + "\n" for _ in range(8)))
    file = tmp_path / "pretrain.toml"
    file.write_text(
        f'output = "{tmp_path / "out"}"\nvocabulary = 450\nworkers = 0\nfrequent = 3\n'
        f'[shards]\n"{shard}" = 1.0\n'
        "[size]\nd_model = 16\nencoder_layers = 1\ndecoder_layers = 1\nheads = 2\nd_ff = 32\n"
        "[[buckets]]\nsource = 32\ntarget = 80\nrows = 2\n[loop]\nsteps = 2\nwarmup = 1\n"
    )
    return file


@pytest.mark.train
def test_preparing_and_pretraining(tmp_path: Path) -> None:
    file = configuration(tmp_path)
    prepared = CliRunner().invoke(app, ["pretrain", str(file), "--prepare"], catch_exceptions=False)
    assert prepared.stdout.strip() == str(tmp_path / "out")
    assert (tmp_path / "out" / "streams" / "tiny.npy").is_file()
    done = CliRunner().invoke(app, ["pretrain", str(file)], catch_exceptions=False)
    assert done.stdout.strip() == str(tmp_path / "out" / "model")
    assert (tmp_path / "out" / "model" / "config.json").is_file()


def test_the_help_names_a_key_that_pretraining_has(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["pretrain", "--help"], env={"COLUMNS": "200"}).stdout
    (override,) = re.findall(r"such as (\S+=\S+?)\.", shown)
    settings = read_settings(configuration(tmp_path), PretrainConfig, [override])
    assert settings.loop.steps == 20_000


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"loop\.step: unknown key; the nearest known one is loop\.steps"):
        CliRunner().invoke(app, ["pretrain", str(configuration(tmp_path)), "loop.step=3"], catch_exceptions=False)
