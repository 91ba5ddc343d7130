"""The figures of the page on scale: made from what is stored, with a place for what is not measured yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from teo_lab.pages.scale import make_scale

RUN = {
    "seconds": 120.0,
    "rewriting_seconds": 110.0,
    "rows_per_second": 150.0,
    "rows_per_second_and_process": 75.0,
    "rows_per_cpu_second": 80.0,
    "idle": 0.1,
}
BATCH: dict[str, Any] = {
    "cores": 2,
    "load_of_others": [0.1, 0.2],
    "rows": 200_000,
    "engines": {"local": RUN, "ray": RUN | {"seconds": 132.0, "rows_per_cpu_second": None}},
    "engines_agree": True,
    "growth": {"rows": 1000, "processes": {"1": RUN, "2": RUN | {"rows_per_second": 285.0}}},
    "kills": {"rows": 500, "parts": 40, "kills": 10, "same": True},
}
GPU = {
    "device": "NVIDIA H200",
    "torch": "2.11",
    "rows": 16_384,
    "same_rewrites": 0.991,
    "runs": [
        {"dtype": dtype, "batch_size": size, "rows_per_second": 5000.0 + size}
        for dtype in ("float32", "bfloat16")
        for size in (64, 512)
    ],
}


def make_page(folder: Path, batch: dict[str, Any], gpu: dict[str, Any] | None = None) -> str:
    (folder / "batch.json").write_text(json.dumps(batch))
    if gpu:
        (folder / "gpu.json").write_text(json.dumps(gpu))
    return make_scale(folder)


def test_the_figures_are_those_that_are_stored(tmp_path: Path) -> None:
    page = make_page(tmp_path, BATCH)
    assert "| local | 150.0 | 75.0 | 80.0 | 10.0 | 120.0 | 10.0 |" in page
    assert "Ray takes 12 s more in all, 10%." in page
    assert "| 2 | 285.0 | 1.90 | 80.0 |" in page
    assert "the same, byte for byte" in page
    assert "Not measured yet." in page
    assert "At 72 rows a second for each core, 100,000,000 rows take 386 core hours." in page
    assert "| 96 cores | 4.0 | 386 × *c* |" in page


def test_a_gpu_gets_a_table_and_a_line_of_the_plan(tmp_path: Path) -> None:
    page = make_page(tmp_path, BATCH, GPU)
    assert "| bfloat16 | 5,064 | 5,512 |" in page
    assert "the same rewrite for 99.1% of the rows" in page
    assert "| 1 × NVIDIA H200 | 5.0 | 5.0 × *g* |" in page
    assert "Not measured yet." not in page


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"engines_agree": False}, "NOT the same"),
        ({"load_of_others": [0.1, 7.5]}, "Other work ran on the machine (load 0.1 to 7.5)"),
        ({"kills": BATCH["kills"] | {"same": False}}, "OTHER files than"),
    ],
)
def test_a_failure_is_not_passed_over(tmp_path: Path, change: dict[str, Any], wording: str) -> None:
    assert wording in make_page(tmp_path, BATCH | change)


def test_a_precision_that_was_not_measured_has_a_dash(tmp_path: Path) -> None:
    runs = [run for run in GPU["runs"] if (run["dtype"], run["batch_size"]) != ("bfloat16", 64)]
    page = make_page(tmp_path, BATCH | {"processor": "Some CPU"}, {**GPU, "runs": runs, "note": "Beside a training."})
    assert "| bfloat16 | - | 5,512 |" in page
    assert "16,384 rows. Beside a training." in page
    assert "on 2 cores (Some CPU) with the embedded model" in page


def test_a_longer_run_is_told_beside_the_quiet_one(tmp_path: Path) -> None:
    engines = {name: {**RUN, "errors": 0} for name in ("local", "ray")}
    stored = {**BATCH, "rows": 100_000, "engines": engines, "note": "A GPU trained beside it."}
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "batch.json").write_text(json.dumps(stored))
    page = make_page(tmp_path, BATCH)
    assert "A longer run on another machine, 100,000 rows on 2 cores: the outputs are the same" in page
    assert "It took 2.0 minutes (75.0 rows/s for each process) with the local engine and 2.0 minutes" in page
    assert "with Ray. A GPU trained beside it." in page
