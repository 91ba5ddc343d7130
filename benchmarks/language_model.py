"""`python benchmarks/language_model.py DATA OUT --model NAME --base-url URL`: a language model and ours on equal rows.

Both read the first rows of the test sets of REWRITE and TASK, one at a time, in one run on one machine; ours does what
`teo rewrite` does. Stored without the datasets' text: OUT/NAME and OUT/default have the evaluations, and
OUT/comparison.json has EM, latency and tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.evaluation.evaluate import Request, evaluate
from teo.evaluation.measures import Evaluation
from teo.evaluation.storing import store
from teo.files import write_json
from teo.rewriter import Rewriter
from teo_lab.llm.client import Endpoint
from teo_lab.llm.evaluate import LlmRequest, evaluate_llm

DATASETS = ("rewrite", "task")
OURS = "default"
SHOTS = 5
"""Demonstrations in the prompt, as many as the paper gives GPT-4."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate both, store what may be kept, and print where."""
    parser = argparse.ArgumentParser(description="Compare a language model with the embedded one on equal rows.")
    parser.add_argument("data", type=Path, help="the folder that holds rewrite and task")
    parser.add_argument("out", type=Path, help="the folder of stored results, such as lab/results/llm")
    parser.add_argument("--model", required=True, help="the name that the endpoint knows")
    parser.add_argument("--base-url", required=True, help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--body", type=json.loads, default={}, help="fields of a request to add or replace, as JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/llm"), help="the folder of predictions, with text")
    options = parser.parse_args(arguments)
    compared = {name: _compare(name, options) for name in DATASETS}
    settings = {"model": options.model, "shots": SHOTS, "body": options.body, "machine": _machine()}
    write_json(options.out / "comparison.json", {**settings, "datasets": compared})
    print(options.out / "comparison.json")


def _compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    path, runs = options.data / name, options.runs
    rewriter = Rewriter.from_pretrained()
    before = _time(rewriter, name, path, options.rows)
    asked = evaluate_llm(
        LlmRequest(
            Endpoint(options.base_url, options.model, timeout=600),
            **{"data": name, "path": path, "out": runs / f"{name}-llm", "limit": options.rows},
            **{"concurrency": 1, "body": options.body, "shots": SHOTS},
        )
    )
    after = _time(rewriter, name, path, options.rows)  # before and after: a busy machine slows all alike
    ours = evaluate(Request(data=name, path=path, out=runs / f"{name}-ours", limit=options.rows))
    store(options.out / options.model, runs / f"{name}-llm")
    store(options.out / OURS, runs / f"{name}-ours")
    usage = asked.run["usage"]
    tokens = {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "refused")}
    latency = {key: usage[key] for key in ("median_seconds", "p95_seconds")}
    return {options.model: _figures(asked, {**latency, **tokens}), OURS: _figures(ours, _spread([*before, *after]))}


def _time(rewriter: Rewriter, name: str, path: Path, count: int) -> list[float]:
    """Return the seconds that each row took."""
    seconds = []
    for row in load_rows(name, path, "test").rows[:count]:
        started = time.perf_counter()
        rewriter.rewrite(history=row.dialogue.history, utterance=row.dialogue.utterance)
        seconds.append(time.perf_counter() - started)
    return seconds


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {"median_seconds": round(statistics.median(ordered), 4), "p95_seconds": round(p95, 4)}


def _figures(evaluation: Evaluation, spent: Mapping[str, Any]) -> dict[str, Any]:
    scores = evaluation.measures.scores
    return {"rows": scores.n, "em": scores["em"], "interval": list(scores.intervals["em"]), **spent}


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
