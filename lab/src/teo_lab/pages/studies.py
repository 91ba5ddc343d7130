"""The tables of lab/docs/studies.md: search, a language model, baselines beside `direct`, a stage 2 that listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from teo.evaluation.markdown import percent, plain, table
from teo_lab.llm.table import show_comparison
from teo_lab.pages.listening import make_listening
from teo_lab.reproduce.experiments import DATASETS, DIRECT
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.stored import read_json

_DATASETS = ("rewrite", "task")
_BASELINES = ("matrix", "locate-fill")
_BASE = "teo-base"
"""The backbone that the baselines and `direct` start from."""


def make_studies(results: Path) -> dict[str, str]:
    """Return the tables by the names of their blocks."""
    return {
        "search": _search(results / "retrieval"),
        "language-model-everyday": show_comparison(read_json(results / "llm" / "everyday.json")),
        "language-model-canard": show_comparison(read_json(results / "llm" / "canard.json")),
        "expressible": _expressible(results / "baselines"),
        "baselines": _baselines(results),
        **make_listening(results),
    }


def _search(folder: Path) -> str:
    dev, test = (read_json(folder / name / "retrieval.json")["systems"] for name in ("canard-dev", "canard-test"))
    rows = []
    for name, found in test.items():
        effect = found["effect"] or {}
        shares = (percent(effect.get(key)) for key in ("better", "worse"))
        rows.append(
            [plain(name), f"{dev[name]['mrr']:.3f}", f"{found['mrr']:.3f}", f"{found['recall@10']:.3f}", *shares]
        )
    head = ("query", "MRR, dev", "MRR, test", "recall@10, test", "better %, test", "worse %, test")
    return table(head, rows, "lrrrrr")


def _expressible(folder: Path) -> str:
    shares = read_json(folder / "baselines.json")["expressible"]
    rows = []
    for dataset in _DATASETS:
        stored = read_json(folder / f"{dataset}-test-matrix.json")
        trained = stored["run"]["training"]
        sizes = {
            "train": trained["train_rows"] + trained["not_expressed"],
            "dev": trained["dev_rows"],
            "test": stored["n"],
        }
        counts = []
        for split, size in sizes.items():
            share = shares[dataset][split]["matrix"]
            counts.append(f"{round(share * size):,} of {size:,} ({percent(share)}%)")
        rows.append([f"`matrix`, {DATASETS[dataset]}", *counts])
    rows.append(["`locate-fill`, both", "all", "all", "all"])
    return table(("rows that can be expressed", "train", "dev", "test"), rows, "lrrr")


def _baselines(results: Path) -> str:
    """Return EM, F1, F2 and time of each baseline beside `direct`, which is the mean of its seeds."""
    times = read_json(results / "baselines" / "latency.json")["median_ms"]
    rows: list[list[str]] = [[f"`{name}`"] for name in (*_BASELINES, "direct", "fast")]
    rows[-2][0] += ", trained alone"
    rows[-1][0] += ", time only"
    for dataset in _DATASETS:
        for row, name in zip(rows, (*_BASELINES, "direct", "fast"), strict=True):
            ratio = times[dataset][name] / times[dataset]["direct"]
            row += [*_quality(results, dataset, name), "1" if name == "direct" else f"{ratio:.1f}"]
    head = ["", *(cell for name in _DATASETS for cell in (f"{DATASETS[name]}: EM", "F1", "F2", "times direct"))]
    return table(head, rows, "l" + "r" * 8)


def _quality(results: Path, dataset: str, name: str) -> list[str]:
    if name == "fast":
        return ["-"] * 3
    if name == "direct":
        runs = (results / "reproduce" / _BASE).glob(
            f"{dataset}-{DIRECT.kind}-seed*/{dataset}-test-{DIRECT.variant}.json"
        )
        measured = SeedResults.read(sorted(runs))
        return [percent(measured.mean(metric)) for metric in ("em", "f1", "f2")]
    stored: dict[str, Any] = read_json(results / "baselines" / f"{dataset}-test-{name}.json")
    return [percent(stored[metric]) for metric in ("em", "run_f1", "run_f2")]
