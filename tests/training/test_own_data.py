"""The way of docs/own-data.md: one's own rows, training, export, calibration and a rewrite, with a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting a model needs onnx")

from teo.cli.app import app
from teo.training.synthetic import generate_rows

RECIPE = Path(__file__).parents[2] / "configs" / "own.toml"
TINY = (
    "model.base=random",
    "model.random.family=teo",
    "model.random.width=16",
    "model.random.layers=1",
    "model.random.heads=2",
    "augmentation.everyday_en=10",
    "augmentation.reactions=5",
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


def test_from_rows_to_a_rewrite(folder: Path) -> None:
    mine, trained, exported = folder / "mine.jsonl", folder / "own", folder / "own-int8"
    answer = json.loads(run("train", RECIPE, f"data.path={mine}", f"output={trained}", *TINY))
    assert answer["model"] == str(trained)
    assert set(answer["dev_em"]) == {"fast"}
    log = (trained / "training" / "weights" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(log) >= 2, "a run of minutes says how far it is"

    assert "form int8" in run("export", trained, exported)
    for split in ("dev", "test"):
        run("data", "convert", "jsonl", mine, folder / f"{split}.jsonl", "--split", split)
    run("calibrate", exported, f"{folder / 'dev.jsonl'}:0.05", f"{folder / 'test.jsonl'}:0.05")
    described = json.loads((exported / "teo.json").read_text(encoding="utf-8"))
    assert described["variant"] == "fast"
    assert "fast" in described["extra"]["calibration"]

    record = json.loads(run("rewrite", "--json", "--model", exported, "Ben is here", "is he there"))
    assert record["reason"] in (None, "complete", "unsure")
    assert record["confidence"] is not None


def test_the_recipe_adds_utterances_to_keep_and_needs_no_other_data() -> None:
    from teo.training.config import read_config

    config = read_config(RECIPE, ["data.path=mine.jsonl"])
    added = config.augmentation
    assert added.identity > 0
    assert added.foreign > 0
    assert added.reactions > 0
    assert added.everyday_en > 0
    assert (added.requests, added.answers, added.labels) == ("", "", "")
    assert config.model.base == "teo-base"
