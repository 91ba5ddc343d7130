"""The report: its numbers against votes counted by hand, its Markdown, its picture, and the command that makes it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.errors import InputError
from teo_lab.cli.judge import judge
from teo_lab.judging.items import Choice, Item, JudgingStudy
from teo_lab.judging.report import format_judgement, judge_votes, report_study
from teo_lab.judging.votes import Vote, VoteStore

VOTED: tuple[tuple[Choice, ...], ...] = (
    ("a", "a", "a"),
    ("a", "a", "tie"),
    ("a", "tie", "b"),
    ("b", "b", "b"),
    ("tie", "tie", "b"),
)
"""Votes of three raters for five items: items 2, 1 and 4 are disagreements, and 2 is the one with both systems."""


def run(*arguments: object) -> Any:
    app = typer.Typer()
    app.command()(judge)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path, study: JudgingStudy) -> VoteStore:
    three = replace(study, plan=replace(study.plan, raters=3))
    store = VoteStore.create(tmp_path / "judging", three)
    for name in ("Ann", "Bo", "Cy"):
        store.seat(name)
    for item, choices in enumerate(VOTED):
        for seat, choice in enumerate(choices, 1):
            store.vote(Vote(seat, item, choice))
    return store


def test_the_numbers_are_those_counted_by_hand(store: VoteStore) -> None:
    numbers = judge_votes(store).to_dict()
    assert [numbers["votes"][name]["count"] for name in ("win", "tie", "loss")] == [6, 4, 5]
    assert [numbers["votes"][name]["share"] for name in ("win", "tie", "loss")] == pytest.approx([0.4, 4 / 15, 1 / 3])
    assert [numbers["items"][name]["count"] for name in ("win", "tie", "loss")] == [2, 2, 1]
    assert numbers["sign_test"] == {"wins": 2, "losses": 1, "p": 1.0}
    assert [numbers["raters"]["1"][name]["count"] for name in ("win", "tie", "loss")] == [3, 1, 1]
    # Agreement 1, 1/3, 0, 1, 1/3 is 8/15 on average; shares 6, 4, 5 of 15 make chance 77/225.
    assert numbers["kappa"]["value"] == pytest.approx((8 / 15 - 77 / 225) / (1 - 77 / 225))
    assert (numbers["kappa"]["items"], numbers["kappa"]["raters"]) == (5, 3)
    ids = [item.id for item in store.study.items]
    assert [found["id"] for found in numbers["disagreements"]] == [ids[2], ids[1], ids[4]], "opposed ones first"
    assert numbers["disagreements"][0]["votes"] == {"1": "a", "2": "tie", "3": "b"}


def test_votes_for_what_was_shown_first(store: VoteStore) -> None:
    sides = [{place.item: place.a_first for place in store.study.order(seat)} for seat in (1, 2, 3)]
    expected = sum(
        (choice == "a") == sides[rater][item]
        for item, choices in enumerate(VOTED)
        for rater, choice in enumerate(choices)
        if choice != "tie"
    )
    assert judge_votes(store).to_dict()["shown_first"] == {"chosen": expected, "of": 11}


def test_the_report_reads_well(store: VoteStore, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'teo[plots]'")
    report_study(store, tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# sys-alpha against sys-beta, judged by people\n")
    assert "sys-alpha wins 2, ties 2 and loses 1 of 5 judged items against sys-beta." in text
    assert "Sign test on 3 items without ties: p = 1.0000. Fleiss' kappa: 0.291 (5 items, 3 raters)." in text
    assert "| items by majority | 5 | 2: 40.0 (11.8 to 76.9) | 2: 40.0 (11.8 to 76.9) | 1: 20.0 (3.6 to 62.4) |" in text
    assert "20 rows whose rewrites differ; on 4 of 24 shared rows the systems agree" in text
    assert "15 of 60 votes are in (3 raters)" in text
    assert "3 items; on 1 both systems were preferred." in text
    assert r"\<b\>Which\</b\> one?" in text, "text is shown as it is"
    assert "1: sys-alpha, 2: tie, 3: sys-beta" in text
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    assert "![Wins, ties and losses](bars.png)" in text
    numbers = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert numbers == json.loads(json.dumps(judge_votes(store).to_dict()))
    both = text + json.dumps(numbers)
    assert not any(name in both for name in ("Ann", "Bo", "Cy")), "raters are numbers"


def test_without_matplotlib_there_is_a_report(
    store: VoteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report_study(store, tmp_path)
    assert "bars.png is not drawn: drawing the bars needs the library 'matplotlib'" in capsys.readouterr().err
    assert "bars.png" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_no_votes_yet(tmp_path: Path, study: JudgingStudy) -> None:
    text = format_judgement(judge_votes(VoteStore.create(tmp_path, study)))
    assert "wins 0, ties 0 and loses 0 of 0 judged items" in text
    assert "Fleiss' kappa: not defined: fewer than two raters have judged the same item." in text
    assert "| votes | 0 | 0 | 0 | 0 |" in text


def test_half_a_surrogate_pair_is_reported(tmp_path: Path, study: JudgingStudy) -> None:
    odd = replace(study, items=(Item("1", ("\ud83d",), "u", "a\ud83d", "b"),))
    store = VoteStore.create(tmp_path / "odd", odd)
    for name, choice in (("Ann", "a"), ("Bo", "b")):
        store.vote(Vote(store.seat(name), 0, choice))  # type: ignore[arg-type]
    report_study(store, tmp_path)
    assert "a\\ud83d" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["disagreements"][0]["a"] == "a\ud83d"


# ---- the command ----


def test_the_command_reports(store: VoteStore) -> None:
    folder = store.file.parent
    result = run("--report", "--out", folder)
    assert result.exit_code == 0, result.output
    assert "sys-alpha wins 2, ties 2 and loses 1 of 5 judged items" in result.stdout
    assert (folder / "report.md").is_file()
    result = run("--report", "--out", folder, "--json")
    assert json.loads(result.stdout)["items"]["win"]["count"] == 2


def test_the_command_joins_a_dataset(files: tuple[Path, Path], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    lines = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    with rows.open("w", encoding="utf-8") as stream:
        for line in lines:
            row = {"id": line["id"], "history": line["history"], "utterance": line["current"], "rewrite": "r"}
            stream.write(json.dumps(row) + "\n")
    for file in files:
        stored = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        bare = [{"id": line["id"], "prediction": line["prediction"]} for line in stored]
        file.write_text("".join(json.dumps(line) + "\n" for line in bare), encoding="utf-8")
    options = ("--out", tmp_path / "j", "--sample", 5, "--report")
    missing = run(*files, *options)
    assert "name its dataset with --data, --path and --split" in str(missing.exception)
    joined = run(*files, *options, "--data", "jsonl", "--path", rows, "--split", "all")
    assert joined.exit_code == 0, joined.output
    items = VoteStore.open(tmp_path / "j").study.items
    assert len(items) == 5
    assert all(item.history[1] == "<b>Which</b> one?" for item in items)


@pytest.mark.parametrize(
    ("arguments", "message", "why"),
    [
        (["A"], "expected two files of predictions, A and B; found 1", "one system"),
        (["A", "B", "--data", "jsonl"], "expected --data and --path together", "half of a dataset"),
        (["--out", "none"], "expected votes.sqlite of a study, found none", "nothing to resume"),
        (["--out", "STUDY", "--seed", "9"], "holds another study (seed: 7 there, 9 asked for)", "another seed"),
        (["--out", "STUDY", "--host", "0.0.0.0"], "can be reached from other machines", "everybody could vote"),
    ],
)
def test_mistakes_are_explained(
    files: tuple[Path, Path], study: JudgingStudy, tmp_path: Path, arguments: list[str], message: str, why: str
) -> None:
    VoteStore.create(tmp_path / "study", study)
    known = {"A": files[0], "B": files[1], "STUDY": tmp_path / "study", "none": tmp_path / "none"}
    result = run(*(known.get(argument, argument) for argument in arguments))
    assert isinstance(result.exception, InputError), why
    assert message in str(result.exception)
