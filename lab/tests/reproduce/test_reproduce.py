"""`teo-lab reproduce` on a tiny model and generated rows: what is trained, what is kept, what the tables say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from teo.errors import ConfigError, InputError
from teo_lab.cli.reproduce import reproduce
from teo_lab.paths import CONFIGS, RESULTS
from teo_lab.reproduce.experiments import Run, architectures_of, find_tables, list_measurements, systems_of
from teo_lab.reproduce.reproduce import Part, choose, describe_plan
from teo_lab.reproduce.runs import Workspace
from verbs import run_verb

TINY = (
    *("device=cpu", "optimisation.epochs=1", "optimisation.learning_rate=2e-3", "evaluation.batch_size=128"),
    *("model.random.width=16", "model.random.layers=1", "model.random.heads=2", "model.target_limit=32"),
    *("writing.plots=false", "writing.checkpoint_epochs=0", "data.dev_rows=8"),
)
Teo = Callable[..., tuple[int, str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder with rows of the copy task as TASK, in its own form, and as REWRITE, in JSON lines."""
    from teo.training.synthetic import generate_rows, write_rows

    folder = tmp_path / "data"
    write_rows(folder / "rewrite", rows={"train": 64, "dev": 8, "test": 16})
    dialogues = []
    for number, row in enumerate(generate_rows(80, seed=1)):
        first, second = row.dialogue.history
        incomplete = "" if row.is_complete else row.dialogue.utterance
        turns = [_turn(first, "", second), _turn(row.rewrite, incomplete, "ok")]
        dialogues.append({"dialogue_id": 500 + number, "dial": turns})
    (folder / "task").mkdir()
    (folder / "task" / "CamRest676_annotated.json").write_text(json.dumps(dialogues))
    return folder


def _turn(complete: str, ellipsis: str, answer: str) -> dict[str, object]:
    user = {
        "transcript_complete": complete,
        "transcript_with_ellipsis": ellipsis,
        "transcript_with_coreference": "",
    }
    return {"usr": user, "sys": {"sent": answer}}


@pytest.fixture
def teo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> Teo:
    """Return a function that runs `teo-lab reproduce` with the tiny settings and gives its status and output."""

    def run(*words: str) -> tuple[int, str]:
        places = ["--data", str(data), "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
        status = run_verb(monkeypatch, reproduce, *words, "--base", "random", *places, *TINY)
        return status, capsys.readouterr().out

    return run


def workspace(data: Path, tmp_path: Path, *overrides: str, t5: str = "") -> Workspace:
    recipes = CONFIGS / "paper"
    return Workspace("random", data, tmp_path / "runs", tmp_path / "out", recipes, t5=t5, overrides=overrides)


@pytest.mark.slow
def test_table_2_is_trained_stored_and_printed_once(teo: Teo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    status, page = teo("table2")
    assert status == 0
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in page.splitlines() if "|" in line}
    assert rows["TEO"][1] == "78.1", "the paper's own figure stands beside ours"
    for name in ("copy", "direct", "TEO-Stage1", "TEO-RFIS", "TEO", "TEO-Gold"):
        assert 0 <= float(rows[f"**{name}**"][1]) <= 100
        assert name == "TEO" or rows[f"TEO - {name}"][3], "a paired test"
    assert rows["TEO - direct"][4] == "+8.0 |", "the paper's difference"
    assert rows["task-teo-seed0"][1:5] == ["task.toml", "random", "74", "cpu"], "80 rows, 6 of them for dev"
    assert (tmp_path / "out" / "table2.md").read_text(encoding="utf-8") == page
    kept = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"run.json", "task-test-teo.json", "task-test-copy.rows.jsonl.gz"} <= kept
    assert str(tmp_path) not in "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json")), "no places"

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("finished work is not done again")

    monkeypatch.setattr("teo.training.finetune.train", refuse)
    monkeypatch.setattr("teo.evaluation.evaluate.evaluate", refuse)
    assert teo("table2") == (0, page)
    assert teo("table5")[0] == 1, "REWRITE is there too and not trained"
    status, plan = teo("table2", "--dry-run")
    assert "to train" not in plan
    assert "to evaluate" not in plan
    assert "task-rfis-seed0: trained, 0." in plan
    status, _ = teo("table2", "optimisation.batch_size=8")
    assert status == 2, "other settings are refused"


@pytest.mark.slow
def test_figure_3_trains_stage_1_once(teo: Teo, tmp_path: Path) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    status, page = teo("figure3", "data.name=jsonl")
    assert status == 0
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith(("| 0 |", "| 0.", "| 1 |"))]
    assert [cells[0] for cells in lines] == ["| 0", "| 0.2", "| 0.4", "| 0.6", "| 0.8", "| 1"]
    assert lines[3][5:] == ["", "", " |"], "the paper's value is not compared with itself"
    trained = sorted(path.parent.parent.name for path in (tmp_path / "runs").glob("*/training/stage1"))
    assert trained == ["rewrite-teo-seed0"]


@pytest.mark.slow
def test_the_architectures_are_trained_and_a_missing_one_is_named(teo: Teo, tmp_path: Path) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    settings = ("evaluation.every=0", "optimisation.steps=2", "model.random.family=teo")
    status, page = teo("architectures", *settings, "--dataset", "task", "--only", "teo", "--only", "direct")
    assert status == 0
    assert "Left out, since no evaluation is stored: shared, fused." in page
    status, page = teo("all", *settings, "--dataset", "task")
    assert status == 0
    compared = (tmp_path / "out" / "architectures.md").read_text(encoding="utf-8")
    assert "Left out" not in compared
    rows = [line.split(" | ") for line in compared.splitlines() if line.startswith("| ")]
    first = {cells[0].removeprefix("| "): cells for cells in reversed(rows)}
    assert first["TASK"][1] == "+8.0", "the paper's difference"
    assert first["TASK"][5] in ("holds |", "undecided |", "reversed |")
    for name in ("separate", "shared", "fused", "stage 1 alone", "rerank"):
        assert float(first[name][6]) >= 0, "stage-1 EM"
    assert first["direct"][6] == "-", "no operations, no stage 1"
    assert sorted(json.loads((tmp_path / "out/task-fused-seed0/cases.json").read_text())) == ["Table 1", "Table 6"]
    assert teo("all", *settings, "--dataset", "task", "--stored") == (0, page), "from what is stored alone"


def test_a_table_of_which_nothing_is_stored_is_not_written(teo: Teo, tmp_path: Path) -> None:
    status, page = teo("all", "--stored", "--dataset", "task")
    assert status == 0
    assert page.startswith("# Table 9"), "it needs no model"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["table9.md"]
    assert teo("table2", "--stored")[0] == 2


def test_stored_tables_need_neither_data_nor_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "teo-base"
    shutil.copytree(RESULTS / "reproduce" / "teo-base", out, ignore=shutil.ignore_patterns("*.md", "*.png"))
    status = run_verb(monkeypatch, reproduce, "all", "--stored", "--out", str(out))
    page = capsys.readouterr().out
    assert status == 0
    before, after = ((folder / "table2.md").read_text() for folder in (RESULTS / "reproduce" / "teo-base", out))
    assert before.split("Made by")[0] == after.split("Made by")[0], "both seeds, and the settings of the runs"
    made = page[page.index("Made by") :].splitlines()[0]
    assert "evaluation.batch_size=256" in made
    assert made.endswith("--base teo-base --data data --seeds 2`.")
    assert not (out / "table9.md").exists(), "it counts the datasets"
    assert not (out / "errors.md").exists(), "it counts the datasets"
    status = run_verb(monkeypatch, reproduce, "all", "evaluation.batch_size=8", "--stored", "--out", str(out))
    assert (status, "were made with 256, found 8" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("all",), "data: expected --data with the folder that holds task, rewrite and res200k, found none"),
        (("baselines",), "data: expected --data with the folder that holds task, rewrite and res200k, found none"),
        (("all", "--stored"), "stored: expected results of task in "),
        (("table9", "--stored"), "data: expected --data with the folder that holds task or rewrite or res200k"),
    ],
)
def test_what_lacks_is_said_and_nothing_written(
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_verb(monkeypatch, reproduce, *words, "--out", str(tmp_path / "recipes")) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_table_9_needs_no_model(teo: Teo, data: Path) -> None:
    (data / "rewrite").rename(data / "elsewhere")
    status, page = teo("table9")
    assert status == 0
    assert "| TASK | paper | 2.2K / 0.5K / 0.5K | 52.6 | 9.4 | 11.3 | 1,572 | 223 |" in page
    assert "| **TASK** | ours | 7" in page
    assert "REWRITE" not in page


PLANS = [
    ("table2", 1, False, "teo direct rfis", "TASK has no row of predicted operations"),
    ("table2", 2, True, "teo direct t5 teo direct t5 rfis rfis", "a run that lends its stage 1 comes first"),
    ("table3", 1, False, "teo direct rfis predicted-ops", "section 4.4 is about REWRITE"),
    ("table5", 1, False, "teo teo", "the datasets that are there"),
    ("table9", 1, False, "", "statistics need no model"),
    (
        "architectures",
        1,
        False,
        "teo shared fused direct teo shared fused direct insertions-first",
        "equation 2 on REWRITE",
    ),
    ("cases", 2, False, "teo shared fused direct teo shared fused direct", "examples need one seed"),
    ("figure3", 1, False, "teo prob_p=0 prob_p=0.2 prob_p=0.4 prob_p=0.8 prob_p=1", "0.6 is TEO itself"),
]


@pytest.mark.parametrize(("name", "seeds", "t5", "runs", "reason"), PLANS, ids=[plan[4] for plan in PLANS])
def test_the_runs_of_a_table(name: str, seeds: int, t5: bool, runs: str, reason: str) -> None:
    listed = list_measurements(find_tables(name), ("task", "rewrite"), seeds=seeds, t5=t5)
    assert len(listed) == len(set(listed))
    assert " ".join(run.kind for run in dict.fromkeys(item.run for item in listed)) == runs, reason


def test_all_measures_nothing_twice() -> None:
    listed = list_measurements(find_tables("all"), ("task", "rewrite", "res200k"), seeds=1)
    assert len(listed) == len(set(listed)) == (6 + 7 + 6) + 5 + (3 + 4 + 3) + 2 * 4


def test_a_run_is_its_recipe_and_what_makes_it_this_run(data: Path, tmp_path: Path) -> None:
    config = workspace(data, tmp_path, "optimisation.epochs=2").config(Run("rewrite", "prob_p=0.2", 3))
    assert (config.perturbation.prob_p, config.seed, config.optimisation.epochs) == (0.2, 3, 2)
    assert config.model.stage1 == str(tmp_path / "runs" / "rewrite-teo-seed3")
    assert config.data[0].path == str(data / "rewrite")
    assert workspace(data, tmp_path, t5="tiny-t5").config(Run("task", "t5")).model.base == "tiny-t5"


@pytest.mark.parametrize("dataset", ["task", "rewrite", "res200k"])
def test_every_system_has_a_recipe_and_the_paper_a_row(dataset: str, data: Path, tmp_path: Path) -> None:
    published = {
        (row["dataset"], row["system"])
        for row in json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))["rows"]
    }
    for system in (*systems_of(dataset, t5=True), *architectures_of(dataset)):
        assert workspace(data, tmp_path, t5="tiny").config(Run(dataset, system.kind)).data[0].name == dataset
        assert not system.published or (dataset, system.published) in published


def test_a_plan_names_what_is_missing_and_what_to_do(data: Path, tmp_path: Path) -> None:
    plan = describe_plan(workspace(data, tmp_path), "table2").splitlines()
    assert plan[0] == "table2: 3 runs, 6 evaluations"
    assert plan[1] == "task-teo-seed0: to train (task.toml from random)"
    assert (
        'task-rfis-seed0: to train (task.toml roles=["stage1", "rfis"] from random, stage 1 of task-teo-seed0)' in plan
    )
    with pytest.raises(InputError, match=r"expected .*res200k, found no such folder; see teo data download"):
        choose(workspace(data, tmp_path), "table4", 1)
    with pytest.raises(InputError, match="seeds: expected a number from 1 on, found 0"):
        choose(workspace(data, tmp_path), "table2", 0)
    with pytest.raises(InputError, match=r"expected one of table2, .* all; found 'table1'"):
        choose(workspace(data, tmp_path), "table1", 1)
    with pytest.raises(InputError, match="data: expected a folder that holds task"):
        workspace(tmp_path / "nothing", tmp_path)
    assert describe_plan(workspace(data, tmp_path), "table2", part=Part(kinds=("direct",))).splitlines()[1:] == [
        'task-direct-seed0: to train (task.toml roles=["direct"] from random)',
        "  direct: to evaluate",
    ]
    with pytest.raises(InputError, match="only: expected teo, direct, rfis; found 'shared'"):
        describe_plan(workspace(data, tmp_path), "table2", part=Part(kinds=("shared",)))
    with pytest.raises(InputError, match="dataset: expected task, rewrite, res200k, found 'canard'"):
        Part(("canard",))
    with pytest.raises(InputError, match="dataset: expected one of task for table2, found rewrite"):
        choose(workspace(data, tmp_path), "table2", 1, Part(("rewrite",)))
    with pytest.raises(ConfigError, match="figure 3 sets its values"):
        describe_plan(workspace(data, tmp_path, "perturbation.prob_p=0.3"), "figure3")
