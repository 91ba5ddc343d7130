"""Benchmarks on several datasets: a folder of tables for each, and a plot of how cost grows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.runtime.bench import Ours, make_work, measure_growth, measure_start, race, weights_of


def main() -> None:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="an exported model folder")
    parser.add_argument("--trained", type=Path, help="the same model as training wrote it")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the datasets")
    parser.add_argument("--names", nargs="+", default=["rewrite", "task"])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    from teo.runtime.bench_peers import OursInTorch, TwoPassBart, measure_bart_start

    loaded = [Ours(options.model, count) for count in options.threads]
    ours = [
        *(
            Ours(options.model, count, "fast", one.generator)
            for count, one in zip(options.threads, loaded, strict=True)
        ),
        *loaded,
    ]
    peers: list[Any] = [TwoPassBart(count) for count in options.threads]
    if options.trained:
        peers += [OursInTorch(weights_of(options.trained), count) for count in options.threads]
    processes = [measure_start(options.model), measure_bart_start()]
    growth = measure_growth(ours[1])
    for name in options.names:
        rows = load_rows(name, options.data / name, "test").rows[: options.rows]
        report = race([*ours, *peers], make_work(ours[0].generator, rows), rounds=options.rounds, say=print)
        report.facts |= {"data": name, "model": options.model.name}
        report.processes, report.growth = processes, growth
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bench.json").write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
        (folder / "bench.md").write_text(report.to_markdown(), encoding="utf-8")
        print(f"## {name}\n\n{report.to_markdown()}")
    plot_growth(growth, options.out / "growth.png")


def plot_growth(growth: dict[str, list[tuple[int, float]]], file: Path) -> None:
    """Write the plot of cost by length and by batch size."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(growth), figsize=(5 * len(growth), 3.5), squeeze=False)
    for axis, (what, points) in zip(axes[0], growth.items(), strict=True):
        axis.plot([x for x, _ in points], [y for _, y in points], marker="o")
        axis.set(xlabel=what, ylabel="ms per row", ylim=(0, None))
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
