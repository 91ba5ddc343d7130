"""evaluate_baseline(request): a baseline on one split, with the files and numbers of any other evaluation."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from teo.data.row import Row
from teo.errors import InputError
from teo.evaluation.evaluate import LIBRARIES, Request, hash_rows, load_request_rows
from teo.evaluation.measures import Evaluation, measure
from teo.evaluation.predict import PredictedRow, Settings, predict
from teo.evaluation.report import format_report
from teo.files import write_json, write_text
from teo.provenance import git_commit, versions
from teo_lab.baselines.baseline import Baseline
from teo_lab.baselines.storing import hash_baseline, load_baseline, read_baseline
from teo_lab.baselines.training import half_precision

_TIMED, _WARM = 100, 5
"""Dialogues that are timed one by one, and those before them that are not."""


def evaluate_baseline(request: Request, progress: TextIO | None = None) -> Evaluation:
    """Return the metrics of a baseline, with predictions.jsonl, metrics.json and report.md in the request's folder."""
    if request.model is None:
        raise InputError(
            "model: expected the folder of a baseline, found none; train one with teo-lab reproduce baselines"
        )
    stream = progress or sys.stderr
    record, baseline = read_baseline(request.model), load_baseline(request.model, request.device)
    if request.bf16 and baseline.device.type != "cuda":
        raise InputError(f"bfloat16: expected a CUDA device, found '{baseline.device}'; leave it out")
    rows = load_request_rows(request, stream)
    settings = Settings(
        data=request.data,
        split=request.split,
        options=dict(request.options),
        data_hash=hash_rows(rows),
        variant=baseline.name,
        model=request.model.name,
        model_hash=hash_baseline(request.model),
        seed=int(record["training"]["settings"]["seed"]),
        precision="bf16" if request.bf16 else "fp32",
    )

    def predict_rows(part: Sequence[Row]) -> list[PredictedRow]:
        with half_precision(baseline.device, wanted=request.bf16):
            predictions = baseline.predict([row.dialogue for row in part], request.batch_size)
        pairs = zip(part, predictions, strict=True)
        return [PredictedRow.of_prediction(row, prediction, "position") for row, prediction in pairs]

    wanted = rows[: request.limit]
    run: dict[str, Any] = {
        "device": str(baseline.device),
        "batch_size": request.batch_size,
        "limit": request.limit,
        "git_commit": git_commit(),
        "versions": versions(LIBRARIES),
        "training": record["training"],
    }
    predicted = predict(predict_rows, wanted, request.out, settings, chunk=1024, run=run, progress=stream)
    with half_precision(baseline.device, wanted=request.bf16):
        run["latency"] = measure_latency(baseline, wanted)
    described = f"{baseline.name}, after {baseline.after}, trained from {record['training']['base']}"
    evaluation = Evaluation(measure(predicted), settings, run, described)
    write_json(request.out / "metrics.json", evaluation.to_dict())
    write_text(request.out / "report.md", format_report(evaluation, predicted))
    return evaluation


def measure_latency(baseline: Baseline, rows: Sequence[Row]) -> dict[str, float]:
    """Return how long a single dialogue takes, in milliseconds: median and 95th percentile of the first rows."""
    seconds = []
    for row in (*rows[:_WARM], *rows[:_TIMED]):
        started = time.perf_counter()
        baseline.predict([row.dialogue], 1)  # its results are Python numbers, so the device has finished
        seconds.append(time.perf_counter() - started)
    timed = sorted(seconds[len(rows[:_WARM]) :])
    p95 = timed[min(len(timed) - 1, int(0.95 * len(timed)))]
    return {
        "rows": len(timed),
        "median_ms": round(1000 * statistics.median(timed), 2),
        "p95_ms": round(1000 * p95, 2),
    }
