"""The tables of results: published rows and ours, from small files made by hand and from those of the repository."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from checkout import TEST_DATA, needs_data
from teo.errors import InputError
from teo_lab.pages.results import make_results
from teo_lab.paths import RESULTS
from teo_lab.reproduce.stored import read_paper, read_published

PAPER = TEST_DATA / "paper" / "teo.tex"
FRACTIONS = (
    *("em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1"),
    *("run_f1", "run_f2", "run_f3"),
)


def published(system: str, dataset: str = "task", **metrics: float | None) -> dict[str, Any]:
    row = {"dataset": dataset, "system": system, "pretraining": "BERT", "source": "a table", "cites": f"key-{system}"}
    return {**row, "metrics": {"em": 50.0, **metrics}}


def evaluation(data: str = "task", split: str = "test", variant: str = "teo", **changed: Any) -> dict[str, Any]:
    groups = {"complete": {"n": 6, "em": 0.9}, "incomplete": {"n": 4, "em": 0.25}}
    result: dict[str, Any] = dict.fromkeys(FRACTIONS, 0.5)
    result |= {"n": 10, "em": 0.64, "bleu4": 0.875, "run_f1": 0.7004, "rougeL_rouge_1_0_1": 0.511}
    result |= {"breakdown": groups, "intervals": {"em": [0.5, 0.75]}, "stage_flow": None}
    result["signatures"] = {name: f"{name}|made by hand" for name in (*FRACTIONS, "em_complete", "intervals")}
    result["settings"] = {"data": data, "split": split, "options": {}, "variant": variant, "model": "m", "seed": 3}
    result["settings"] |= {"data_hash": "d" * 32, "model_hash": "f" * 32, "precision": "fp32"}
    result["run"] = {"limit": None, "git_commit": "c" * 40}
    return result | changed


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write(folder / "published.json", {"rows": [published("ZED", bleu4=80.25, f1=None), published("ABE", em=None)]})
    return folder


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def store(results: Path, model: str, name: str, value: object) -> Path:
    write(results / model / "model.json", {"pretraining": "own", "trained_on": f"rows of {model}"})
    return write(results / model / name, value)


def section(page: str, title: str) -> list[list[str]]:
    """Return the cells of the first table under a heading."""
    text = page.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if "---" not in line]


def test_published_rows_keep_their_order_and_what_was_not_printed_is_a_dash(results: Path) -> None:
    page = make_results(results)
    assert section(page, "TASK") == [
        ["system", "pretraining", "EM", "BLEU-4"],
        ["ZED", "BERT", "50.0", "80.2"],
        ["ABE", "BERT", "-", "-"],
    ]
    assert "- a table: ZED (`key-ZED`), ABE (`key-ABE`)." in page
    assert "No test results of ours are stored." in page
    assert "## REWRITE" not in page
    assert "## Development sets" not in page
    assert "## Where our figures come from" not in page


def test_ours_stand_at_the_end_in_bold_with_interval_and_both_kinds_of_utterances(results: Path) -> None:
    store(results, "big", "task-test.json", evaluation())
    page = make_results(results)
    table = section(page, "TASK")
    assert table[0] == ["system", "pretraining", "EM", "BLEU-4", "EM, interval", "complete", "incomplete"]
    assert table[1] == ["ZED", "BERT", "50.0", "80.2", "-", "-", "-"]
    ours = ["**64.0**", "**87.5**", "**50.0 to 75.0**", "**90.0**", "**25.0**"]
    assert table[3:] == [["**big, teo**", "own", *ours]]
    assert "No test results" not in page
    assert section(page, "Where our figures come from")[1] == [
        *("`results/big/task-test.json`", "teo", "10", "3", "fp32"),
        *("`ffffffffffff`", "`dddddddddddd`", "`cccccccccccc`"),
    ]
    assert "- `run_f1|made by hand`" in page


def test_ours_are_sorted_by_model_then_by_variant_then_by_name(results: Path) -> None:
    other = evaluation()
    other["settings"]["model_hash"] = "e" * 32
    store(results, "b", "task-test.json", other)
    for variant in ("unheard-of", "gold", "direct", "teo"):
        store(results, "a", f"task-test-{variant}.json", evaluation(variant=variant))
    last_two = evaluation()
    last_two["settings"]["options"] = {"history": "last-two"}
    store(results, "a", "task-test-teo-last-two.json", last_two)
    names = [row[0].strip("*") for row in section(make_results(results), "TASK")[1:]]
    ours = ["a, teo", "a, teo (history=last-two)", "a, direct", "a, gold", "a, unheard-of", "b, teo"]
    assert names == ["ZED", "ABE", *ours]


def test_a_dataset_without_published_rows_shows_all_our_columns(results: Path) -> None:
    whole = evaluation("followup", breakdown={"complete": {"n": 0, "em": None}, "incomplete": {"n": 10, "em": 0.64}})
    store(results, "big", "followup-test.json", whole)
    head, row = section(make_results(results), "FollowUp")
    assert row[head.index("ROUGE-L")] == "**50.0 / 51.1**"
    assert row[head.index("F1")] == "**70.0**"
    assert row[head.index("incomplete")] == "**64.0**"
    assert "complete" not in head


def test_development_figures_have_a_table_of_their_own(results: Path) -> None:
    flow = {"stage1_em": 0.6, "e2c": None, "c2e": 0.1}
    first = evaluation(split="dev", variant="fused", stage_flow=flow, run={"limit": 10, "git_commit": None})
    store(results, "big", "task-dev.json", first)
    page = make_results(results)
    assert [row[0] for row in section(page, "TASK")] == ["system", "ZED", "ABE"]
    assert section(page, "Development sets")[1] == [
        *("TASK", "dev", "big, fused", "10, the first", "64.0", "50.0 to 75.0", "90.0", "25.0", "87.5", "70.0"),
        *("60.0", "-", "10.0"),
    ]
    assert section(page, "Where our figures come from")[1][-1] == "-"


def test_other_files_are_skipped(results: Path) -> None:
    before = make_results(results)
    write(results / "speed.json", "[]")
    write(results / "big" / "variants.json", "not JSON")
    assert make_results(results) == before


def test_signs_of_markdown_are_shown_as_they_are(results: Path) -> None:
    store(results, "a_b|c", "task-test.json", evaluation())
    assert r"| **a\_b\|c, teo** |" in make_results(results)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in evaluation().items() if key != name}


LIMITED = evaluation(run={"limit": 10, "git_commit": None})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("task-test.json", "{", r"task-test\.json: expected JSON: "),
        ("task-test.json", '{"em": NaN}', r"expected JSON: NaN is no number"),
        ("task-test.json", "[]", r"expected a JSON object, found \[\]"),
        ("task-test.json", without("em"), "em: missing"),
        ("task-test.json", evaluation(em=64.0), "em: expected less than or equal to 1, found 64.0"),
        ("task-test.json", evaluation(em=None), "em: expected a number, found null"),
        ("task-test.json", evaluation(em=True), "em: expected a number, found true"),
        ("task-test.json", evaluation(intervals={}), "intervals: em: missing"),
        ("task-test.json", evaluation(intervals={"em": [0.5]}), "intervals: em: 1: missing"),
        ("task-test.json", evaluation(breakdown={}), "breakdown: complete: missing"),
        ("task-test.json", evaluation(signatures={}), "signatures: expected one for each metric, em too"),
        ("task-test.json", evaluation(settings=[]), r"settings: expected an object, found \[\]"),
        ("task-test.json", LIMITED, "expected all rows of the test set, found the first 10; evaluate without --limit"),
        ("task-test.json", evaluation(split="dev"), r"expected task \(test\), found task \(dev\)"),
        ("rewrite-test.json", evaluation(), r"expected rewrite \(test\), found task \(test\)"),
        ("task-tset.json", evaluation(), "DATASET-SPLIT.json with a split of test, dev, valid"),
    ],
)
def test_a_bad_evaluation_is_named(results: Path, name: str, value: object, message: str) -> None:
    path = store(results, "big", name, value)
    with pytest.raises(InputError, match=message) as caught:
        make_results(results)
    assert str(caught.value).startswith(str(path))


def test_the_same_evaluation_twice_is_an_error(results: Path) -> None:
    store(results, "big", "task-test.json", evaluation())
    store(results, "copy", "task-test.json", evaluation())
    with pytest.raises(InputError, match=r"found that of results/big/task-test\.json again; remove one"):
        make_results(results)


def test_a_model_must_say_what_it_was_trained_on(results: Path) -> None:
    card = store(results, "big", "task-test.json", evaluation()).with_name("model.json")
    write(card, {"pretraining": "own", "trained_on": " "})
    with pytest.raises(InputError, match=r"model\.json: trained_on: expected some text, found \" \""):
        make_results(results)
    write(card, {"pretraining": "own", "trained_on": "x", "trained": "y"})
    with pytest.raises(InputError, match=r"model\.json: trained: expected only pretraining, trained_on; remove"):
        make_results(results)
    card.unlink()
    with pytest.raises(InputError, match=r"model\.json: no such file; say what task-test\.json's model was trained on"):
        make_results(results)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("row", 'row 1: expected an object, found "row"'),
        ({"dataset": "task"}, "row 1: system: missing"),
        (published("A", "tasks"), "row 1: dataset: expected 'rewrite', 'task', .*, found \"tasks\""),
        (published("A", bleu5=1.0), "row 1: metrics: expected only em, bleu1, .*; remove 'bleu5'"),
        (published("A", em=101.0), "row 1: metrics: em: expected less than or equal to 100, found 101.0"),
        ({**published("A"), "metrics": {}}, "row 1: metrics: expected a number for em, or null if none was printed"),
        ({**published("A"), "pretraining": ""}, "row 1: pretraining: expected some text, found"),
        (
            {**published("A"), "pretrained": "BERT"},
            "row 1: pretrained: expected only dataset, system, .*; remove this key",
        ),
    ],
)
def test_a_bad_published_row_is_named(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_published(write(tmp_path / "published.json", {"rows": [row]}))


def test_a_system_is_published_once_for_a_dataset(tmp_path: Path) -> None:
    rows = [published("A"), published("A", "rewrite"), published("A")]
    with pytest.raises(InputError, match="row 3: expected each system once for a dataset, found A again"):
        read_published(write(tmp_path / "published.json", {"rows": rows}))


def test_the_papers_rows_are_those_of_its_tables_2_to_5() -> None:
    rows = read_paper(RESULTS / "published.json")
    assert {row.dataset for row in rows} == {"task", "rewrite", "res200k"}
    assert "GPT-4" not in {row.system for row in rows}, "it stands in table 7"
    assert len([row for row in rows if row.system == "TEO"]) == 3


def test_the_published_rows_are_well_formed() -> None:
    rows = json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        assert all(row[name] for name in ("dataset", "system", "source", "pretraining")), row
        assert row["metrics"]["em"] is None or isinstance(row["metrics"]["em"], float), row
    systems = {dataset: {row["system"] for row in rows if row["dataset"] == dataset} for dataset in ("task", "rewrite")}
    assert all({"BART-base", "TEO", "TEO-T5", "TEO-Gold"} <= names for names in systems.values())


@needs_data("paper", "teo.tex")
@pytest.mark.parametrize(
    ("dataset", "label", "columns"),
    [
        ("task", "tab:task", "em bleu4 f1"),
        ("rewrite", "tab:rewrite", "f1 f2 f3 bleu1 bleu2 rouge1 rouge2 rougeL em"),
        ("res200k", "tab:restoration", "p1 r1 f1 p2 r2 f2 p3 r3 f3 bleu1 bleu2 rouge1 rouge2 em"),
        ("rewrite", "tab:gpt-comp", "f1 f2 bleu1 bleu2 rouge1 rouge2 rougeL em"),
    ],
)
def test_the_published_figures_are_those_of_the_paper(dataset: str, label: str, columns: str) -> None:
    rows = {row.system: row for row in read_published(RESULTS / "published.json") if row.dataset == dataset}
    table = PAPER.read_text(encoding="utf-8").split(f"\\label{{{label}}}")[0].rpartition("\\begin{tabular}")[2]
    lines = [line for line in table.splitlines() if "&" in line and not line.startswith("Model")]
    assert len(lines) >= 2
    for line in lines:
        name, *figures = (cell.strip() for cell in line.rpartition("\\\\")[0].split("&"))
        cited = re.search(r"\\citep\{(.+)\}", name)
        system = name.replace("$_{\\operatorname{base}}$", "-base").split(" \\citep")[0]
        row = rows[{"TEO (Ours)": "TEO", "Ours": "TEO"}.get(system, system)]
        assert row.cites == (cited[1] if cited else None)
        assert label in row.source
        printed = [re.sub(r"\\textbf\{(.+)\}", r"\1", figure) for figure in figures]
        found = [row.metrics.get(column) for column in columns.split()]
        assert found == [None if figure == "NA" else float(figure) for figure in printed], system
