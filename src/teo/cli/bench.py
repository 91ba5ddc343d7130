"""`teo bench`: how fast the model is on a dataset's true lengths, alone or against transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from teo.runtime.bench import Contestant


def bench(
    *,
    data: Annotated[str, typer.Option(help="Dataset: rewrite, res200k, task, canard, followup or jsonl.")] = "jsonl",
    path: Annotated[Path, typer.Option(help="The dataset's folder or its file.")],
    split: Annotated[str, typer.Option(help="The dataset's split.")] = "all",
    model: Annotated[
        str | None, typer.Option(help="An exported model folder; the embedded model without it.", metavar="MODEL")
    ] = None,
    trained: Annotated[
        Path | None, typer.Option(help="The same model as training wrote it: run in transformers.")
    ] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Run a two-pass BART-base shape in transformers too.")] = False,
    processes: Annotated[bool, typer.Option("--processes", help="Measure cold start and memory too.")] = False,
    growth: Annotated[bool, typer.Option("--growth", help="Measure cost by length and by batch size too.")] = False,
    rows: Annotated[int, typer.Option(help="Rows of the dataset to use.", metavar="N", min=1)] = 64,
    rounds: Annotated[int, typer.Option(help="Rounds; the systems take turns in each.", metavar="N", min=1)] = 7,
    batch_size: Annotated[int, typer.Option(help="Rows of a batch.", metavar="N", min=1)] = 32,
    threads: Annotated[list[int] | None, typer.Option(help="Threads to measure with; may be given again.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and bench.md.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure latency of one row and rows a second in batches; all systems in one run, by turns."""
    from teo.data import load_rows
    from teo.loading import ModelFolder, locate
    from teo.runtime.bench import Ours, make_work, measure_growth, measure_start, race

    folder = locate(model)
    chosen = load_rows(data, path, split).rows[:rows]
    counts = threads or [1, 2]
    variant = ModelFolder.load(folder).variant
    ours = [Ours(folder, count, variant) for count in counts]
    contestants: list[Contestant] = [*ours, *_peers(peers, trained, counts)]
    report = race(
        contestants,
        make_work(ours[0].generator, chosen),
        rounds=rounds,
        batch_size=batch_size,
        say=lambda text: typer.echo(text, err=True),
    )
    report.facts |= {"data": data, "split": split, "model": folder.name, "model_mb": _megabytes(folder)}
    if processes:
        report.processes = [measure_start(folder), *_peer_processes(peers)]
    if growth:
        report.growth = measure_growth(ours[-1])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench.json").write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
        (out / "bench.md").write_text(report.to_markdown(), encoding="utf-8")
    typer.echo(json.dumps(report.to_dict()) if as_json else report.to_markdown())


def _peers(peers: bool, trained: Path | None, counts: list[int]) -> list[Contestant]:
    found: list[Contestant] = []
    if trained is not None:
        from teo.runtime.bench import weights_of
        from teo.runtime.bench_peers import OursInTorch

        found += [OursInTorch(weights_of(trained), count) for count in counts]
    if peers:
        from teo.runtime.bench_peers import TwoPassBart

        found += [TwoPassBart(count) for count in counts]
    return found


def _peer_processes(peers: bool) -> list[dict[str, Any]]:
    if not peers:
        return []
    from teo.runtime.bench_peers import measure_bart_start

    return [measure_bart_start()]


def _megabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)
