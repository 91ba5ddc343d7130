"""Foreign truth: what the peers' own scorers gave for real model outputs."""

import json

import pytest

from checkout import TEST_DATA, needs_data
from teo.metrics import read_rows, score_rows

ORACLES = TEST_DATA / "oracles"

pytestmark = needs_data("oracles")


@pytest.mark.parametrize("name", ["task_gecor1", "rewrite_a"])
def test_every_number_equals_the_peers_scorer(name):
    expected = json.loads((ORACLES / f"{name}.scores.json").read_text(encoding="utf-8"))
    found = score_rows(read_rows(ORACLES / f"{name}.jsonl"), pretokenized=True).to_dict()
    assert len(expected) == 28
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-6)


def test_the_truth_covers_empty_predictions():
    assert sum(not row.prediction for row in read_rows(ORACLES / "rewrite_a.jsonl")) == 3


def test_groups_add_up_to_the_whole():
    report = score_rows(read_rows(ORACLES / "task_gecor1.jsonl"), pretokenized=True)
    groups = report.groups
    assert groups["complete"] + groups["incomplete"] == report.n == 539
    assert groups["insertion_only"] + groups["replacement_only"] + groups["both"] == groups["incomplete"]
    right = sum(groups[name] * report[f"em_{name}"] for name in ("complete", "incomplete"))
    assert right / report.n == pytest.approx(report["em"])
