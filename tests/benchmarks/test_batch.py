"""The batch benchmark: its rows differ from one another, and a small run measures what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from batch_rows import make_rows, name_of, rename
from teo.data.row import Row
from teo.dialogue import Dialogue

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    Row("a", Dialogue(("Did you see Batman Returns?", "Yes."), "was it good"), "was Batman Returns good"),
    Row("b", Dialogue(("你喜欢周杰伦吗", "喜欢"), "他哪年出生"), "周杰伦哪年出生"),
    Row("c", Dialogue(("hello",), "fine"), "fine"),
]


def test_rows_are_repeated_with_other_names() -> None:
    rows = list(make_rows(ROWS, 600))
    assert len({row["id"] for row in rows}) == 600
    assert len({(*row["history"], row["utterance"]) for row in rows}) == 600
    assert rows[0] == {"id": "a-0", "history": ["Did you see Batman Returns?", "Yes."], "utterance": "was it good"}


@pytest.mark.parametrize(
    ("row", "history", "reason"),
    [
        (ROWS[0], ("Did you see Ben Abbott?", "Yes."), "what the rewrite restores has another name"),
        (ROWS[1], ("你喜欢王明丽吗", "喜欢"), "in Chinese too"),
        (ROWS[2], ("Ben Abbott, hello",), "nothing is restored: a name is called"),
    ],
)
def test_a_name_is_put_where_it_matters(row: Row, history: tuple[str, ...], reason: str) -> None:
    assert rename(row, 1).history == history, reason


def test_thousands_of_names() -> None:
    for chinese in (True, False):
        assert len({name_of(number, chinese=chinese) for number in range(30_000)}) == 30_000


@pytest.mark.ray
@pytest.mark.slow
def test_a_small_run(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    sizes = ["--rows", "0", "--growth-rows", "80", "--kill-rows", "60", "--kills", "2", "--cuts", "2"]
    command = [sys.executable, str(ROOT / "benchmarks" / "batch.py"), str(shared_data), *sizes]
    (tmp_path / "batch.json").write_text('{"rows": 5000, "engines_agree": true}')
    done = subprocess.run([*command, "--work", str(tmp_path / "work"), "--out", str(tmp_path)], check=False)
    assert done.returncode == 0
    stored = json.loads((tmp_path / "batch.json").read_text())
    assert stored["kills"]["same"] is stored["cuts"]["same"] is True
    assert stored["growth"]["processes"]["1"]["rows_per_cpu_second"] > 0
    assert (stored["rows"], stored["engines_agree"]) == (5000, True), "what is not measured again stays"


def test_the_rows_of_the_gpu_benchmark_are_the_everyday_ones() -> None:
    pytest.importorskip("torch")
    from gpu_batch import part_rows, read_rows

    rows = read_rows(None)
    assert len(rows) == 398
    assert any(not row.is_complete for row in rows)
    assert (part_rows(64), part_rows(2048)) == (2048, 8192)
