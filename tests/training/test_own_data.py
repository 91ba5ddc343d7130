"""The way of docs/own-data.md: one's own rows, training, export, calibration and a rewrite, with a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting a model needs onnx")

from teo.cli.app import app
from teo.data import load_rows
from teo.training.synthetic import generate_rows
from teo.units import holds_cjk

CHECKOUT = Path(__file__).parents[2]
RECIPE = CHECKOUT / "configs" / "own.toml"
TINY = (
    "model.base=random",
    "model.random.family=teo",
    "model.random.width=16",
    "model.random.layers=1",
    "model.random.heads=2",
    "unchanged.reactions=5",
    "optimisation.epochs=1",
    "optimisation.batch_size=32",
    "writing.log_every=2",
)


def run(*words: object) -> str:
    """Return what a command printed; it must end well."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, f"{words}: {done.output}{done.exception!r}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 260 rows of one's own in mine.jsonl."""
    path = tmp_path_factory.mktemp("own")
    lines = [json.dumps(row.to_dict()) for row in generate_rows(260)]
    (path / "mine.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.train
def test_from_rows_to_a_rewrite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    mine, trained, exported = folder / "mine.jsonl", folder / "own", folder / "own-int8"
    answer = json.loads(run("train", RECIPE, f"data.path={mine}", f"output={trained}", *TINY))
    assert answer["model"] == str(trained)
    assert set(answer["dev_em"]) == {"fast"}
    log = (trained / "training" / "weights" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(log) >= 2, "a run of minutes says how far it is"

    assert "form int8" in run("export", trained, exported)
    for split in ("dev", "test"):
        run("data", "convert", "jsonl", mine, folder / f"{split}.jsonl", "--split", split)
    files = [str(folder / f"{split}.jsonl") for split in ("dev", "test")]
    calibrated = CliRunner().invoke(app, ["calibrate", str(exported), *files])
    assert "expected at least 40 rewrites that were judged, found" in str(calibrated.exception), (
        "a model of one epoch changes nothing, and nothing can be fitted to that"
    )
    assert json.loads((exported / "teo.json").read_text(encoding="utf-8"))["variant"] == "fast"

    record = json.loads(run("rewrite", "--json", "--model", exported, "Ben is here", "is he there"))
    assert record["reason"] in (None, "complete", "unsure")
    assert record["confidence"] is not None


def test_the_recipe_adds_complete_utterances_and_needs_no_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    from teo.training.config import read_config
    from teo.training.rows import read_rows

    monkeypatch.chdir(CHECKOUT)
    config = read_config(RECIPE, ["data.path=mine.jsonl"])
    own, everyday = config.data
    assert own.path == "mine.jsonl", "the override changes the first table"
    assert config.unchanged.identity > 0
    assert config.unchanged.foreign > 0
    assert config.unchanged.reactions > 0
    assert config.model.base == "teo-base"
    rows = read_rows([everyday], Path()).train
    assert len(rows) == 200
    assert 80 <= sum(holds_cjk(row.rewrite) for row in rows) <= 120, "both languages"
    assert 50 <= sum(row.is_complete for row in rows) <= 85, "about a third is complete"


def test_the_everyday_rows_are_few_and_small() -> None:
    file = CHECKOUT / "configs" / "everyday.jsonl"
    rows = load_rows("jsonl", file, "all").rows
    assert len(rows) == len({row.dialogue.history for row in rows}) == 800
    assert file.stat().st_size < 300_000
