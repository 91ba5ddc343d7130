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
from teo.loading import DEFAULT_MODEL, ModelFolder
from teo.metrics.meaning import grade
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
    assert set(answer["dev_em"]) == {"fused"}
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
    assert json.loads((exported / "teo.json").read_text(encoding="utf-8"))["variant"] == "fused"

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
    embedded = ModelFolder.load(DEFAULT_MODEL)
    assert config.model.base == "teo-default"
    assert config.model.source_limit == embedded.source_limit, "its own window"
    assert config.roles == (embedded.variant,), "and its own pipeline"
    rows = read_rows([everyday], Path()).train
    assert len(rows) == 300
    assert 120 <= sum(holds_cjk(row.rewrite) for row in rows) <= 180, "both languages"
    assert 80 <= sum(row.is_complete for row in rows) <= 120, "about a third is complete"


def test_the_calibration_of_the_start_serves_until_the_models_own(tmp_path: Path) -> None:
    from teo.training.run_folder import inherited_calibration

    functions = ModelFolder.load(DEFAULT_MODEL).extra["calibration"]
    assert inherited_calibration("teo-default", ["fused", "stage1"]) == {"calibration": {"fused": functions["fused"]}}
    assert inherited_calibration(str(DEFAULT_MODEL), ["stage1"]) == {}
    assert inherited_calibration("teo-base", ["fused"]) == {}
    assert inherited_calibration(str(tmp_path), ["fused"]) == {}


@pytest.mark.parametrize(("name", "chinese"), [("provider-en", False), ("insurance-zh", True)])
def test_the_example_data_is_sound(name: str, chinese: bool) -> None:
    folder = CHECKOUT / "examples" / "own-data" / name
    parts = {part: load_rows("jsonl", folder / f"{part}.jsonl", part).rows for part in ("train", "test")}
    parts["train"] += load_rows("jsonl", folder / "train.jsonl", "dev").rows
    dialogues = {part: {row.id.rpartition("-")[0] for row in rows} for part, rows in parts.items()}
    assert len(parts["train"]) > 440 and len(parts["test"]) == 120
    assert not dialogues["train"] & dialogues["test"], "no dialogue is in both"
    for row in parts["test"]:
        assert holds_cjk(row.rewrite) == chinese
        if row.is_complete:
            continue
        assert row.keys is not None, row.id
        assert grade(row, row.dialogue.utterance) == "missed", row.id
        for text in (row.rewrite, *row.references):
            assert row.keys.need and grade(row, text) == "right", f"{row.id}: {text}"


def test_the_everyday_rows_are_few_and_small() -> None:
    file = CHECKOUT / "configs" / "everyday.jsonl"
    rows = load_rows("jsonl", file, "all").rows
    assert len(rows) == len({row.dialogue.history for row in rows}) == 800
    assert file.stat().st_size < 300_000
