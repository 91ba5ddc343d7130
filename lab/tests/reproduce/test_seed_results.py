"""What tables say of stored evaluations: means over seeds, intervals of EM, paired tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from teo.errors import InputError
from teo_lab.reproduce.seed_results import SeedResults


def write(folder: Path, right: str, *, rows: str = "same") -> Path:
    """Store an evaluation whose rows are right (1) or wrong (0)."""
    folder.mkdir()
    lines = "".join(json.dumps({"id": f"{rows}-{k}", "right": mark == "1"}) + "\n" for k, mark in enumerate(right))
    (folder / "task-test-teo.rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    em = right.count("1") / len(right)
    flow = {"stage1_em": em, "e2c": None, "c2e": 0.0}
    metrics = {"em": em, "run_f1": em / 2, "stage_flow": flow, "settings": {"data_hash": rows}}
    file = folder / "task-test-teo.json"
    file.write_text(json.dumps(metrics))
    return file


def test_seeds_are_averaged_row_by_row(tmp_path: Path) -> None:
    measured = SeedResults.read([write(tmp_path / "a", "1100" * 25), write(tmp_path / "b", "1111" * 25)])
    assert measured.n == 100
    assert measured.ems == [0.5, 1.0]
    assert measured.mean("em") == 0.75
    assert measured.mean("f1") == 0.375, "the published name of RUN's restoration score"
    assert measured.flow("stage1_em") == 0.75
    assert measured.flow("e2c") is None, "undefined where nothing was wrong"
    assert measured.interval is not None
    assert measured.interval.low < 0.75 < measured.interval.high


def test_the_difference_is_this_minus_the_other(tmp_path: Path) -> None:
    better, worse = (
        SeedResults.read([write(tmp_path / "a", "1110" * 25)]),
        SeedResults.read([write(tmp_path / "b", "10" * 50)]),
    )
    difference = better.minus(worse)
    assert difference is not None
    assert difference.value == pytest.approx(0.25)
    assert difference.p < 0.001
    same = better.minus(better)
    assert same is not None
    assert (same.value, same.p) == (0, 1)


def test_other_rows_are_refused(tmp_path: Path) -> None:
    first, other = write(tmp_path / "a", "10"), write(tmp_path / "b", "10", rows="other")
    with pytest.raises(InputError, match="expected the rows of"):
        SeedResults.read([first, other])
    with pytest.raises(InputError, match="two of different rows"):
        SeedResults.read([first]).minus(SeedResults.read([other]))
