"""The tables on a stage 2 that listens: made from stored cells and rows, which agree with each other."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from teo.errors import InputError
from teo.metrics.flow import stage_flow
from teo_lab.pages.listening import make_listening
from teo_lab.paths import RESULTS

KINDS = {"predicted": "em", "gold": "gold_em", "operations": "stage1_em"}
"""What the rights are of, and the figure that they make."""


def read(file: Path) -> dict[str, dict[str, Any]]:
    return {line["cell"]: line for line in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def truths(bits: str) -> list[bool]:
    return [bit == "1" for bit in bits]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a copy of the stored results that the tables need."""
    for name in ("listening", "reproduce"):
        shutil.copytree(RESULTS / name, tmp_path / name)
    shutil.copyfile(RESULTS / "published.json", tmp_path / "published.json")
    return tmp_path


def change(results: Path, file: str, cell: str, **values: Any) -> None:
    path = results / "listening" / file
    lines = read(path)
    lines[cell] |= values
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()), encoding="utf-8")


@pytest.mark.parametrize("dataset", ["rewrite", "res200k"])
def test_the_stored_figures_are_those_of_the_stored_rows(dataset: str) -> None:
    lines, rights = (read(RESULTS / "listening" / f"{dataset}{end}.jsonl") for end in ("", "-rights"))
    assert rights.keys() == {cell for cell, line in lines.items() if line["status"] == "done"}
    for cell, right in rights.items():
        line = lines[cell]
        for kind in right.keys() & KINDS.keys():
            assert len(right[kind]) == line["n"]
            assert line[KINDS[kind]] == round(100 * sum(truths(right[kind])) / line["n"], 2), (cell, kind)
        if line["role"] == "stage2":
            flow = stage_flow(truths(right["operations"]), truths(right["predicted"]))
            assert line["flow"] == [flow.right_right, flow.right_wrong, flow.wrong_right, flow.wrong_wrong]
            assert (flow.e2c, flow.c2e) == pytest.approx((line["e2c"] / 100, line["c2e"] / 100), abs=1e-4)


def test_figures_differences_and_intervals_are_those_of_the_rows(results: Path) -> None:
    cell = "rewrite-stage2-from-base-p0-e2"
    direct = read(results / "listening" / "rewrite-rights.jsonl")["rewrite-direct-from-base-e2"]["predicted"]
    change(results, "rewrite.jsonl", cell, em=12.3, gold_em=45.6, flow=[3, 1, 1, 9], followed_wrong=78.9)
    change(results, "rewrite-rights.jsonl", cell, predicted=direct)
    tables = make_listening(results)
    assert "| base | 0 | 2 | 12.3 | +0.0 (0.0 to 0.0) | 45.6 | 10.0 | 25.0 | 78.9 |" in tables["listening"]
    change(results, "rewrite-rights.jsonl", cell, predicted="1" * 1000, gold="0" * 1000)
    change(results, "rewrite-rights.jsonl", "rewrite-stage2-from-stage1-p0-e2", predicted="01" * 500, gold="1" * 1000)
    pairs = make_listening(results)["listening-pairs"].splitlines()
    _, em, gold = next(line for line in pairs if "stage 1, prob\\_p 0 |" in line).strip("| ").split(" | ")
    assert gold == "-100.0 (-100.0 to -100.0)"
    found = re.fullmatch(r"\+50\.0 \((.+) to (.+)\)", em)
    assert found
    low, high = map(float, found.groups())
    assert (low, high) == pytest.approx((46.9, 53.1), abs=0.7), "two standard errors of 1,000 rows are 3.1 points"


def test_a_cell_that_was_skipped_has_no_row(results: Path) -> None:
    count = make_listening(results)["listening"].count("\n")
    change(results, "rewrite.jsonl", "rewrite-stage2-from-base-p0.2-e2", status="skipped")
    table = make_listening(results)["listening"]
    assert table.count("\n") == count - 1
    assert "| base | 0.2 | 2 |" not in table


def test_what_cannot_be_compared_is_refused(results: Path) -> None:
    change(results, "rewrite-rights.jsonl", "rewrite-stage2-from-base-p0-e2", predicted="10")
    with pytest.raises(InputError, match="paired rows: expected as many of both cells, found 2 and 1000"):
        make_listening(results)
    (results / "listening" / "rewrite.jsonl").unlink()
    with pytest.raises(InputError, match=r"rewrite\.jsonl: expected the lines that benchmarks/listening\.py stored"):
        make_listening(results)
