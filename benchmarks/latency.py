"""How fast the model is on the true lengths of datasets' rows, alone or against transformers.

    python benchmarks/latency.py task=data/task rewrite=data/rewrite --baselines --processes --growth --out OUT

Of each dataset a folder is written under --out: bench.json and bench.md; and growth.png beside them with --growth.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from race import Contestant, Ours, Report, make_work, measure_growth, measure_start, race, weights_of
from teo.data import load_rows
from teo.errors import InputError, MissingExtraError, TeoError
from teo.files import write_json, write_text, write_whole
from teo.loading import locate


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them where --out says."""
    options = _read_options(arguments)
    model = locate(options.model)
    datasets = dict(named(text) for text in options.datasets)
    ours = [Ours(model, threads, variant) for variant in options.variants for threads in options.threads]
    systems: list[Contestant] = [*ours, *_baselines(options)]
    processes = _processes(options, model)
    growth = measure_growth(ours[-1]) if options.growth else {}
    for name, path in datasets.items():
        rows = load_rows(name, path, options.split).rows[: options.rows]
        work = make_work(ours[0].generator, rows)
        report = race(systems, work, rounds=options.rounds, batch_size=options.batch_size, say=_say)
        report.facts |= {"data": name, "split": options.split, "model": model.name, "model_mb": _megabytes(model)}
        report.processes, report.growth = processes, growth
        if options.out is not None:
            _write(report, options.out / name)
        print(json.dumps(report.to_dict()) if options.json else f"## {name}\n\n{report.to_markdown()}")
    if growth and options.out is not None:
        plot_growth(growth, options.out / "growth.png")


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="NAME=PATH", help="a dataset and its folder or file")
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", help="an exported model folder; the embedded model without it")
    parser.add_argument("--variants", nargs="+", default=["direct"], choices=["direct", "fast", "fused"])
    parser.add_argument("--trained", type=Path, help="the same model as training wrote it: run in torch too")
    parser.add_argument("--baselines", action="store_true", help="run a two-pass BART-base shape in transformers too")
    parser.add_argument("--processes", action="store_true", help="measure cold start and memory too")
    parser.add_argument("--growth", action="store_true", help="measure cost by length and by batch size too")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7, help="the systems take turns in each")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, help="folder for the tables")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each dataset, instead of tables")
    return parser.parse_args(arguments)


def named(text: str) -> tuple[str, Path]:
    """Return a dataset and its path of NAME=PATH."""
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise InputError(f"dataset: expected NAME=PATH such as task=data/task, found '{text}'")
    return name, Path(path)


def _baselines(options: argparse.Namespace) -> list[Contestant]:
    systems: list[Contestant] = []
    if options.baselines:
        from baselines import TwoPassBart

        systems += [TwoPassBart(threads) for threads in options.threads]
    if options.trained is not None:
        from baselines import OursInTorch

        systems += [OursInTorch(weights_of(options.trained), threads) for threads in options.threads]
    return systems


def _processes(options: argparse.Namespace, model: Path) -> list[dict[str, Any]]:
    if not options.processes:
        return []
    starts = [measure_start(model)]
    if options.baselines:
        from baselines import measure_bart_start

        starts.append(measure_bart_start())
    return starts


def _write(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "bench.json", report.to_dict())
    write_text(folder / "bench.md", report.to_markdown())


def plot_growth(growth: Mapping[str, Sequence[tuple[int, float]]], file: Path) -> None:
    """Write the plot of cost by length and by batch size."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise MissingExtraError("drawing how cost grows", "matplotlib", "plots") from missing

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(growth), figsize=(5 * len(growth), 3.5), squeeze=False)
    for axis, (what, points) in zip(axes[0], growth.items(), strict=True):
        axis.plot([x for x, _ in points], [y for _, y in points], marker="o")
        axis.set(xlabel=what, ylabel="ms per row", ylim=(0, None))
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    write_whole(file, lambda beside: figure.savefig(beside, dpi=150, format="png"))


def _megabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except TeoError as error:
        sys.exit(str(error))
