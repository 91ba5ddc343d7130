"""benchmarks/listening.py: what is counted of a stage 2 that obeys, of one that is deaf, and of tiny trained models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="training a cell needs torch")
pytest.importorskip("transformers", reason="training a cell needs transformers")

import listening
from checkout import ROOT
from given_operations import Operations, measure_direct, measure_stage2
from listening import PLAN, Cell, main
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.placement import placements
from teo.training.backbones import build_random
from teo.training.config import RandomModel
from teo.training.losses import loss_model
from teo.training.saving import save_weights

STORED = ROOT / "lab" / "results" / "listening"
ROWS = [
    Row("1", Dialogue(("Ann met Ben",), "is he here"), "is Ben here"),
    Row("2", Dialogue(("Ann met Ben",), "why did she"), "why did Ann"),
    Row("3", Dialogue(("Ann met Ben",), "does she know him"), "does Ann know him"),
    Row("4", Dialogue(("Ann met Ben",), "where is he"), "where is Ben"),
]
PROPOSED = [(Operation(old, new),) for old, new in (("he", "Ben"), ("she", "Ben"), ("she", "Ann"), ("he", "Ann"))]
"""Right, wrong, right, wrong."""


def obey(rows: Sequence[Row], given: Sequence[Operations]) -> list[str]:
    """Make exactly the given operations."""
    scripts = [placements(operations, row.dialogue.utterance)[0] for row, operations in zip(rows, given, strict=True)]
    return [script.apply(row.dialogue.utterance) for row, script in zip(rows, scripts, strict=True)]


def ignore(rows: Sequence[Row], given: Sequence[Operations]) -> list[str]:
    """Rewrite the first two rows right whatever the operations, and leave the others."""
    return [row.rewrite if row.id in "12" else row.dialogue.utterance for row in rows]


def test_a_stage_2_that_obeys_is_as_good_as_its_operations() -> None:
    figures, rights = measure_stage2(ROWS, PROPOSED, obey)
    assert (figures["stage1_em"], figures["em"], figures["gold_em"]) == (50.0, 50.0, 100.0)
    assert (figures["e2c"], figures["c2e"], figures["flow"]) == (0.0, 0.0, [2, 0, 0, 2])
    assert (figures["followed_wrong"], figures["followed_gold"]) == (100.0, 100.0)
    assert (figures["gold_minus_em"], figures["gold_em_where_operations_wrong"]) == (50.0, 100.0)
    assert rights == {"predicted": "1010", "gold": "1111", "operations": "1010"}


def test_a_stage_2_that_is_deaf_gains_nothing_from_gold_operations() -> None:
    figures, rights = measure_stage2(ROWS, PROPOSED, ignore)
    assert (figures["em"], figures["gold_em"], figures["gold_minus_em"]) == (50.0, 50.0, 0.0)
    assert (figures["e2c"], figures["c2e"], figures["flow"]) == (50.0, 50.0, [1, 1, 1, 1])
    assert (figures["followed_wrong"], figures["followed_gold"]) == (0.0, 50.0)
    assert (rights["predicted"], rights["gold"]) == ("1100", "1100")


def test_only_operations_that_differ_are_rewritten_again() -> None:
    asked: list[list[str]] = []

    def note(rows: Sequence[Row], given: Sequence[Operations]) -> list[str]:
        asked.append([row.id for row in rows])
        return obey(rows, given)

    measure_stage2(ROWS, PROPOSED, note)
    assert asked == [["1", "2", "3", "4"], ["2", "4"]]


def test_direct_is_counted_where_operations_are_wrong() -> None:
    figures, rights = measure_direct(ROWS, PROPOSED, ignore)
    assert figures == {"n": 4, "em": 50.0, "em_where_operations_wrong": 50.0}
    assert rights == {"predicted": "1100"}


@pytest.mark.parametrize("dataset", ["rewrite", "res200k"])
def test_the_stored_lines_are_the_cells_of_the_plan(dataset: str) -> None:
    lines = [json.loads(line) for line in (STORED / f"{dataset}.jsonl").read_text(encoding="utf-8").splitlines()]
    cells = [cell.facts(seed=0) for cell in PLAN if cell.dataset == dataset]
    assert [{key: line[key] for key in cells[0]} for line in lines] == cells


@pytest.mark.train
def test_cells_are_trained_measured_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"安娜{k}来了\t\t她在哪\t\t她好吗\t\t安娜{k}好吗" for k in range(200)]
    (tmp_path / "rewrite").mkdir()
    (tmp_path / "rewrite" / "corpus.txt").write_text("\n".join(lines), encoding="utf-8")
    model, codec = build_random(RandomModel(family="teo", width=16, layers=1, heads=2), lines)
    save_weights(model, codec, tmp_path / "base")
    plan = [Cell(role="stage1", epochs=1), Cell(start="stage1", epochs=1), Cell(prob_p=None, epochs=1)]
    monkeypatch.setattr(listening, "PLAN", [*plan, Cell(role="direct", epochs=1)])
    monkeypatch.setattr(listening, "SETTINGS", ["writing.checkpoint_epochs=0"])
    starts: list[float] = []

    def note_start(model: Any) -> Any:
        starts.append(sum(float(weight.detach().abs().sum()) for weight in model.parameters()))
        return loss_model(model)

    monkeypatch.setattr(listening, "loss_model", note_start)
    where = ["--data", str(tmp_path), "--base", str(tmp_path / "base"), "--out", str(tmp_path / "out")]
    main([*where, "--rows", "20", "--dev-rows", "3", "--device", "cpu"])
    base, of_stage1, *others = starts
    assert of_stage1 != base
    assert others == [base] * 4, "two folds, the stage 2 that learns from them, and direct"
    stored, rights = (
        [json.loads(line) for line in (tmp_path / "out" / f"rewrite{end}.jsonl").read_text().splitlines()]
        for end in ("", "-rights")
    )
    assert [line["status"] for line in stored] == ["done"] * 4
    assert [line["train_rows"] for line in stored] == [20] * 4
    assert "folds_em" in stored[2]
    assert [sorted(right) for right in rights[1:3]] == [["cell", "gold", "operations", "predicted"]] * 2
    assert {len(right["operations"]) for right in rights[:3]} == {3}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["seed"] == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == stored
    main([*where, "--minutes", "1e-9", "--device", "cpu"])
    skipped = [json.loads(line) for line in (tmp_path / "out" / "rewrite.jsonl").read_text().splitlines()]
    assert {line["status"] for line in skipped} == {"skipped"}
