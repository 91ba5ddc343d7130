"""teo-lab report: what it says of stored results, what it leaves out, that the page is safe and complete in itself."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judged_files import make_lines, write_lines
from teo.errors import InputError
from teo_lab.cli.report import report
from teo_lab.judging.items import draw_study
from teo_lab.judging.report import report_study
from teo_lab.judging.votes import Vote, VoteStore
from teo_lab.paths import RESULTS
from teo_lab.report.make import SECTIONS, ReportRequest, write_report
from teo_lab.report.predictions import ShownRow, read_predictions, split_changes
from verbs import app_of

NASTY = "</script><script>document.title='bad'</script><img src=x onerror=alert(1)>"


def predicted(number: int, **changed: Any) -> dict[str, Any]:
    line = {"id": f"row-{number}", "history": ["Ben is here."], "current": "is he", "reference": "is Ben"}
    line |= {"prediction": "is Ben", "operations": "[D] he [R] Ben", "gold_operations": "[D] he [R] Ben"}
    line |= {"well_formed": True, "scores": {"stage1": -0.5}, "truncated": {"turns": 0, "characters": 0}}
    return line | changed


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """Four rows: right, wrong operations, a complete one, and one whose text is markup."""
    lines = [
        predicted(0),
        predicted(1, prediction="is Tom", operations="[D] he [R] Tom", scores={"stage1": -3.0}),
        predicted(2, current="good morning to you", reference="good morning to you", prediction="good morning to you"),
        predicted(3, history=[NASTY], current=f"{NASTY} he", reference="x", prediction=f"{NASTY} Ben", scores={}),
    ]
    file = write_lines(tmp_path / "run" / "predictions.jsonl", lines)
    settings = {"model": "tiny", "variant": "fast", "data": "task"}
    (file.parent / "settings.json").write_text(json.dumps({"settings": settings, "run": {}}))
    return file


@pytest.mark.parametrize(
    ("utterance", "prediction", "runs", "reason"),
    [
        ("is he", "is Ben", [("keep", "is "), ("gone", "he"), ("new", "Ben")], "a replacement"),
        ("他是谁", "刘德华是谁", [("gone", "他"), ("new", "刘德华"), ("keep", "是谁")], "in Chinese too"),
        ("why", "why Ben", [("keep", "why"), ("new", " Ben")], "an insertion takes its space along"),
        ("why", "why", [("keep", "why")], "nothing changed"),
        ("", "", [], "nothing at all"),
    ],
)
def test_a_rewrite_is_split_into_runs(utterance: str, prediction: str, runs: list[Any], reason: str) -> None:
    assert split_changes(utterance, prediction) == runs, reason


def test_predicted_rows_know_both_stages(predictions: Path) -> None:
    (system,) = read_predictions([predictions])
    assert (system.name, system.dataset) == ("tiny, fast on task", "task")
    right, wrong, complete, markup = system.rows
    assert (right.right, right.stage1_right, right.kind, right.length) == (True, True, "replacement_only", 2)
    assert right.confidence == pytest.approx(0.6065)
    assert (wrong.right, wrong.stage1_right) == (False, False)
    assert (complete.kind, complete.right, complete.length) == ("complete", True, 4)
    assert markup.confidence is None, "no scores, no confidence"


def test_what_is_not_known_of_a_row_is_left_out() -> None:
    assert ShownRow("a", False).to_dict() == {"id": "a", "right": False}


def test_the_stored_results_make_a_page_without_text_of_datasets(tmp_path: Path) -> None:
    made = write_report(ReportRequest(RESULTS, tmp_path))
    markdown, page = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))
    assert {"dataset statistics", "case studies"} <= made.missing.keys() < SECTIONS.keys()
    for name in ("tables", "stages", "errors", "confidence", "latency", "retrieval", "explorer", "missing"):
        assert f'<section id="{name}">' in page, name
    assert all(reason in markdown for reason in made.missing.values())
    assert "| TEO-RFIS | BART-base | 77.7 |" in markdown, "published rows"
    assert "<strong>default, direct</strong>" in page, "ours"
    assert page.count("data:image/svg+xml;base64,") == len(re.findall(r"!\[.+\]\(figures/.+\.svg\)", markdown)) >= 6
    rows = json.loads(re.findall(r'id="predictions">(.*?)</script>', page, re.DOTALL)[0])
    assert len(rows) == 3
    assert {key for system in rows for row in system["rows"] for key in row} == {"id", "right", "confidence"}


def test_the_page_names_no_host_and_forbids_requests(tmp_path: Path, predictions: Path) -> None:
    write_report(ReportRequest(RESULTS, tmp_path / "out", (predictions,)))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    loaded = re.findall(r'(?:src|href|action)="(.*?)"', page.replace(NASTY, ""))
    assert {link for link in loaded if not link.startswith(("data:", "#"))} == set()
    assert NASTY not in page, "text of rows is never markup"
    assert page.count("<script") == 2


def test_cases_show_each_outcome_with_its_edits(tmp_path: Path, predictions: Path) -> None:
    write_report(ReportRequest(RESULTS, tmp_path / "out", (predictions,)))
    markdown, page = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))
    assert "<dd>is <del>he</del><ins>Ben</ins></dd>" in page
    assert "is \\[-he-\\]\\{+Ben+\\}" in markdown
    assert "<h4>Operations and rewrite wrong</h4>" in page
    assert "<h4>Operations wrong, rewrite right</h4>" not in page, "no such row"


def write_sweep(results: Path) -> None:
    for kind, right in (("prob_p=0.2", "10"), ("teo", "11")):
        folder = results / "reproduce" / "base" / f"rewrite-{kind}-seed0"
        folder.mkdir(parents=True)
        lines = "".join(json.dumps({"id": str(k), "right": mark == "1"}) + "\n" for k, mark in enumerate(right * 20))
        (folder / "rewrite-test-teo.rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        stored = {"em": right.count("1") / 2, "settings": {"data_hash": "d"}}
        (folder / "rewrite-test-teo.json").write_text(json.dumps(stored))


def write_judging(results: Path, tmp_path: Path) -> None:
    files = [write_lines(tmp_path / name / "predictions.jsonl", make_lines(name)) for name in ("up", "down")]
    store = VoteStore.create(results / "judging" / "first", draw_study(*files, sample=20, raters=1, seed=1))
    store.seat("Ann")
    for item in range(20):
        store.vote(Vote(1, item, "a"))
    report_study(store, results / "judging" / "first")


def test_studies_that_were_made_are_shown(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_sweep(results)
    write_judging(results, tmp_path)
    ours = {"em": 0.5, "rougeL_rouge_1_0_1": 0.75, "run_f1": 0.25, "median_seconds": 0.5, "p95_seconds": 1.0}
    systems = {"default": ours, "small, langchain": {**ours, "median_seconds": 1.5, "p95_seconds": 2.0}}
    compared = {"models": {"small": "1 weight"}, "body": {}, "machine": "a machine", "systems": systems}
    (results / "llm").mkdir()
    (results / "llm" / "task.json").write_text(json.dumps(compared))
    made = write_report(ReportRequest(results, tmp_path / "out"))
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert SECTIONS.keys() - made.missing.keys() == {"EM against prob_p", "judging", "language model"}
    assert re.search(r"\| 0\.2 \| 50\.0 \| .+ \| 1 \|\n\| 0\.6 \| 100\.0 \|", markdown), "teo is prob_p 0.6"
    assert "### up against down" in markdown
    assert "| small, langchain | 50.0 | 75.0 | 25.0 | - | - | 1.50 | 2.00 | 3 |" in markdown
    assert "small: 1 weight" in markdown


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda at: ReportRequest(at / "none", at), "expected a folder of stored results, found none"),
        (lambda at: ReportRequest(RESULTS, at, data=at / "none"), "expected a folder that holds task, rewrite or"),
        (
            lambda at: write_report(ReportRequest(at, at / "out")),
            "expected results such as default/",
        ),
        (lambda at: read_predictions([at / "none.jsonl"]), "expected the predictions.jsonl of teo evaluate"),
        (lambda at: read_predictions([write_lines(at / "x", [{"id": "a"}])]), "x:1: expected a line of teo evaluate"),
        (lambda at: read_predictions([write_lines(at / "x", [])]), "expected predicted rows, found none"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(tmp_path)


def test_the_command_prints_the_page_and_names_what_is_left_out(tmp_path: Path, predictions: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app_of(report), ["report", str(RESULTS), "--out", str(out), "--predictions", str(predictions)]
    )
    assert done.exit_code == 0
    assert done.stdout == f"{out / 'report.html'}\n"
    assert "left out: dataset statistics: dataset statistics need the datasets; give --data DIR" in done.stderr
