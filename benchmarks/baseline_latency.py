"""How long a single dialogue takes the baselines and ours: same backbone, torch, float32, one thread, by turns.

    python benchmarks/baseline_latency.py rewrite=data/rewrite task=data/task --out lab/results/baselines

Every system does the work of a perfect one, whatever its weights are. `matrix` encodes the dialogue once and reads its
matrix. `locate-fill` encodes it, then once more with the blanks of the reference, and generates what they hold.
`direct` and `fast` encode it and generate the reference, or the placed operations. Machines are noisy: quote ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from race import NEVER
from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.files import write_json
from teo.layouts import Marker, dialogue_source
from teo.placement import placed_pieces
from teo.provenance import git_commit, versions
from teo.runtime.search import search_greedily
from teo.runtime.torch_steps import TorchSteps
from teo.training.backbones import load_base
from teo_lab.baselines.locate_fill import LocateFillBaseline
from teo_lab.baselines.matrix import MatrixBaseline

System = Callable[[], Any]


def systems(row: Row, matrix: MatrixBaseline, filler: LocateFillBaseline) -> dict[str, System]:
    """Return the work of each system on a row."""
    model, codec = filler.backbone, filler.codec
    source = codec.encode(dialogue_source(row.dialogue))
    placed = placed_pieces(derive_edits(row.dialogue.utterance, row.rewrite), row.dialogue.utterance)
    example = filler.prepare(row)

    def locate_and_fill() -> None:
        with torch.no_grad():
            filler.head(filler.encode([example.dialogue]).utterance)
        if example.fills:
            generate(model, example.blanked, len(example.fills), codec.decoder_start())

    def write(target: Any, marker: Marker) -> System:
        length = len(codec.encode_target(target))
        return partial(generate, model, source, length, codec.decoder_start((marker,)))

    return {
        "matrix": partial(matrix.predict, [row.dialogue], 1),
        "locate-fill": locate_and_fill,
        "direct": write((row.rewrite,), Marker.WRITE_REWRITE),
        "fast": write(placed, Marker.WRITE_PLACED),
    }


def generate(model: Any, source: Sequence[int], length: int, start: Sequence[int]) -> None:
    """Encode a source by our own backbone and generate `length` tokens."""
    ids = torch.tensor([list(source)])
    mask = torch.ones_like(ids)
    with torch.no_grad():
        search_greedily(TorchSteps(model, model.encoder(ids, mask), mask), [start], [length], NEVER)


def measure(rows: Sequence[Row], matrix: MatrixBaseline, filler: LocateFillBaseline, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each system; the systems take turns on every row."""
    seconds: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for row in rows:
            for name, do in systems(row, matrix, filler).items():
                started = time.perf_counter()
                do()
                if number:  # the first round warms up
                    seconds.setdefault(name, []).append(time.perf_counter() - started)
    return {name: round(1000 * statistics.median(found), 2) for name, found in seconds.items()}


def main() -> None:
    """Print and store the times of both datasets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", metavar="NAME=PATH", help="datasets, such as task=data/task")
    parser.add_argument("--base", default="teo-base", help="the backbone of all systems")
    parser.add_argument("--rows", type=int, default=30, help="first rows of each test set")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for latency.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    matrix, filler = MatrixBaseline(*load_base(given.base)).eval(), LocateFillBaseline(*load_base(given.base)).eval()
    result: dict[str, Any] = {"rows": given.rows, "rounds": given.rounds, "threads": 1, "median_ms": {}}
    for name, _, path in (text.partition("=") for text in given.data):
        rows = load_rows(name, path, "test", strict=False).rows[: given.rows]
        result["median_ms"][name] = measure(rows, matrix, filler, given.rounds)
        print(name, result["median_ms"][name], flush=True)
    if given.out:
        write_json(
            given.out / "latency.json",
            {**result, "versions": versions(["torch", "transformers"]), "commit": git_commit()},
        )


if __name__ == "__main__":
    main()
