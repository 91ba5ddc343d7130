"""What drafts from the source save, in one run: time by pipeline, batch and length, passes a row, and where time goes.

    python benchmarks/drafts.py rewrite=data/rewrite task=data/task --baselines --before ../older --out drafts.json

`--before` runs the model of an older checkout by turns with ours, in a process of its own. Dialogues are fitted,
tokenized, generated and turned into edits by all of ours; the two-pass BART only generates (`race.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from latency import named
from race import Contestant, Work, machine, make_work
from teo.data import load_rows
from teo.dialogue import Dialogue
from teo.errors import TeoError
from teo.evaluation.markdown import table
from teo.files import write_json
from teo.loading import Model, open_model
from teo.pipelines import PIPELINES, predict
from teo.runtime.onnx_generator import OnnxGenerator
from teo.stages import fit_dialogue

LENGTHS = (16, 32, 64, 128, 256, 512)
_OLDER = """
import json, sys, time
from teo.dialogue import Dialogue
from teo.loading import Model, open_model
from teo.pipelines import PIPELINES, predict
model = open_model(None, threads=1)
stages = model.load(list(model.folder.roles))
for line in sys.stdin:
    variant, size, rows = json.loads(line)
    stages["direct"].generator.batch_size = size
    dialogues = [Dialogue(tuple(history), utterance) for history, utterance in rows]
    started = time.perf_counter()
    found = predict(PIPELINES[variant], stages, dialogues)
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, [prediction.rewrite for prediction in found]]), flush=True)
"""


class Ours:
    """The embedded model's pipelines, with drafts or without."""

    def __init__(self, model: Model, *, drafts: bool) -> None:
        self.name, self.drafts = "drafts" if drafts else "no drafts", drafts
        self.stages = model.load(list(model.folder.roles))
        self.generator: OnnxGenerator = self.stages["direct"].generator  # type: ignore[assignment]

    def __call__(self, variant: str, size: int, dialogues: Sequence[Dialogue]) -> tuple[float, list[str]]:
        """Return how long a pipeline takes for these dialogues, and its rewrites."""
        self.generator.drafts, self.generator.batch_size = self.drafts, size
        started = time.perf_counter()
        found = predict(PIPELINES[variant], self.stages, dialogues)
        return time.perf_counter() - started, [prediction.rewrite for prediction in found]


class Older:
    """The embedded model of another checkout, in a process of its own."""

    name = "before"

    def __init__(self, checkout: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __call__(self, variant: str, size: int, dialogues: Sequence[Dialogue]) -> tuple[float, list[str]]:
        """Return how long a pipeline takes for these dialogues, by its own clock, and its rewrites."""
        if self.process.stdin is None or self.process.stdout is None:
            raise TeoError("drafts: the older checkout's process has no pipes")
        rows = [(dialogue.history, dialogue.utterance) for dialogue in dialogues]
        self.process.stdin.write(json.dumps([variant, size, rows]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise TeoError("drafts: the older checkout's process ended; see what it printed above")
        seconds, texts = json.loads(answer)
        return seconds, texts


System = Ours | Older


@dataclass
class Tally:
    """Time by part, and what the decoder did."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)


@contextmanager
def tallied(generator: OnnxGenerator) -> Any:
    """Count time in encoder, decoder and tokenizer, and the decoder's passes and tokens, while it lasts."""
    tally = Tally()
    real = generator._encoder, generator._decoder, generator.codec

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named_ones: Any) -> Any:
            started = time.perf_counter()
            try:
                return work(*given, **named_ones)
            finally:
                tally.seconds[part] += time.perf_counter() - started
                tally.counts[part] += 1
                if part == "decoder":
                    tally.counts["tokens"] += len(given[1]["embedded"])
                    tally.counts["rows"] += len(given[1]["slots"])

        return call

    class Watched:
        def __init__(self, watched: Any, part: str, names: Sequence[str]) -> None:
            self._watched, self._own = watched, {name: timed(part, getattr(watched, name)) for name in names}

        def __getattr__(self, name: str) -> Any:
            return self._own.get(name) or getattr(self._watched, name)

        def __len__(self) -> int:
            return len(self._watched)

    generator._encoder, generator._decoder = Watched(real[0], "encoder", ["run"]), Watched(real[1], "decoder", ["run"])
    names = ["encode", "decode", "measure", "encode_text", "encode_target", "decoder_start"]
    generator.codec = Watched(real[2], "tokenizer", names)  # type: ignore[assignment]
    try:
        yield tally
    finally:
        generator._encoder, generator._decoder, generator.codec = real


def race_pipelines(
    systems: Sequence[System],
    baselines: Sequence[Contestant],
    data: tuple[Sequence[Dialogue], Sequence[Work]],
    options: Any,
) -> list[dict[str, Any]]:
    """Return, by pipeline and system, the median time of a row alone and the rows a second in batches."""
    dialogues, work = data
    size, starts = options.batch_size, range(0, len(dialogues), options.batch_size)
    alone: dict[tuple[str, str], list[float]] = {}
    batched: dict[tuple[str, str], list[float]] = {}
    for number in range(options.rounds):
        row = number % len(dialogues)
        first = starts[number % len(starts)]
        for variant in options.variants:
            for system in systems:
                key = variant, system.name
                alone.setdefault(key, []).append(system(variant, 1, dialogues[row : row + 1])[0])
                part = dialogues[first : first + size]
                batched.setdefault(key, []).append(system(variant, size, part)[0] / len(part))
        for peer in baselines:
            key = "two passes", peer.name
            alone.setdefault(key, []).append(_timed(partial(peer.do, work[row : row + 1])))
            rows = work[first : first + size]
            batched.setdefault(key, []).append(_timed(partial(peer.do, rows)) / len(rows))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return [
        {
            "pipeline": key[0],
            "system": key[1],
            "ms": 1000 * statistics.median(alone[key]),
            "rows_per_s": 1 / statistics.median(batched[key]),
        }
        for key in alone
    ]


def measure_parts(ours: Sequence[Ours], dialogues: Sequence[Dialogue], variants: Sequence[str]) -> list[dict[str, Any]]:
    """Return passes a row and the share of each part of a call, one row at a time, with drafts and without."""
    found = []
    for variant in variants:
        for system in ours:
            with tallied(system.generator) as tally:
                whole = sum(system(variant, 1, [dialogue])[0] for dialogue in dialogues)
            shares = {part: tally.seconds[part] / whole for part in ("encoder", "decoder", "tokenizer")}
            found.append(
                {
                    "pipeline": variant,
                    "system": system.name,
                    "passes": tally.counts["decoder"] / len(dialogues),
                    "tokens": tally.counts["tokens"] / len(dialogues),
                    **shares,
                    "python": 1 - sum(shares.values()),
                }
            )
    return found


def measure_lengths(
    systems: Sequence[System], rows: Sequence[Dialogue], variants: Sequence[str], rounds: int
) -> list[dict[str, Any]]:
    """Return the median time of pipelines by the tokens of a source: histories joined, and cut to the length."""
    generator = next(system for system in systems if isinstance(system, Ours)).generator
    turns = tuple(turn for row in rows for turn in (*row.history, row.utterance))
    limit, found = generator.source_limit, []
    for length in LENGTHS:
        generator.source_limit = length
        dialogues = [fit_dialogue(generator, Dialogue(turns[: 60 + k], rows[k].utterance))[0] for k in range(rounds)]
        generator.source_limit = limit
        runs = [(variant, system) for variant in variants for system in systems]
        times: list[list[float]] = [[] for _ in runs]
        for dialogue in dialogues:
            for taken, (variant, system) in zip(times, runs, strict=True):
                taken.append(1000 * system(variant, 1, [dialogue])[0])
        medians = {f"{v}, {system.name}": statistics.median(t) for (v, system), t in zip(runs, times, strict=True)}
        found.append({"tokens": length, **medians})
    return found


def check_texts(systems: Sequence[System], dialogues: Sequence[Dialogue], variants: Sequence[str], size: int) -> None:
    """Raise if two systems differ in a rewrite, alone or in batches."""
    for variant in variants:
        texts = {
            (system.name, batch): [
                text
                for first in range(0, len(dialogues), batch)
                for text in system(variant, batch, dialogues[first : first + batch])[1]
            ]
            for system in systems
            for batch in (1, size)
        }
        first, *others = texts
        for other in others:
            differ = sum(a != b for a, b in zip(texts[first], texts[other], strict=True))
            print(f"{variant}: {first} and {other} differ in {differ} of {len(dialogues)} rewrites", file=sys.stderr)
            if differ and other[0] != "before" and first[0] != "before":
                raise TeoError(f"drafts: {variant} gives other rewrites in {other} than in {first}")


def to_markdown(found: dict[str, Any]) -> str:
    """Return the tables of all datasets."""
    parts = [found["machine"]]
    for name, data in found["datasets"].items():
        baselines = [row for row in data["speeds"] if row["pipeline"] == "two passes"]
        head = [
            "pipeline",
            "",
            "ms, one row",
            "rows/s",
            *(["times BART, one row", "times BART, rows/s"] if baselines else []),
        ]
        rows = []
        for row in data["speeds"]:
            cells = [row["pipeline"], row["system"], f"{row['ms']:.1f}", f"{row['rows_per_s']:.1f}"]
            for peer in baselines:
                cells += [f"{peer['ms'] / row['ms']:.1f}", f"{row['rows_per_s'] / peer['rows_per_s']:.1f}"]
            rows.append(tuple(cells))
        parts += [f"## {name}", table(tuple(head), rows, align="ll" + "r" * (len(head) - 2))]
        kinds = ("encoder", "decoder", "tokenizer", "python")
        rows = [
            (
                *(row["pipeline"], row["system"], f"{row['passes']:.2f}", f"{row['tokens']:.1f}"),
                *(f"{row[kind]:.0%}" for kind in kinds),
            )
            for row in data["parts"]
        ]
        parts.append(table(("pipeline", "", "passes a row", "tokens a row", *kinds), rows, align="llrrrrrr"))
    if found["lengths"]:
        names = [name for name in found["lengths"][0] if name != "tokens"]
        rows = [(str(row["tokens"]), *(f"{row[name]:.1f}" for name in names)) for row in found["lengths"]]
        parts.append(
            table(("tokens of the source", *(f"{name}, ms" for name in names)), rows, align="r" * (1 + len(names)))
        )
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write the figures where --out says."""
    options = _read_options(arguments)
    model = open_model(None, threads=1)
    ours = [Ours(model, drafts=False), Ours(model, drafts=True)]
    systems: list[System] = [*([Older(options.before)] if options.before else []), *ours]
    baselines: list[Contestant] = []
    if options.baselines:
        from baselines import TwoPassBart

        baselines = [TwoPassBart(1)]
    found: dict[str, Any] = {"machine": machine(), "batch_size": options.batch_size, "datasets": {}, "lengths": []}
    longest: list[Dialogue] = []
    for text in options.datasets:
        name, path = named(text)
        rows = load_rows(name, path, options.split).rows
        rows = rows[:: max(1, len(rows) // options.rows)][: options.rows]
        dialogues = [row.dialogue for row in rows]
        check_texts(systems, dialogues, options.variants, options.batch_size)
        data = dialogues, make_work(ours[0].generator, rows)
        speeds = race_pipelines(systems, baselines, data, options)
        found["datasets"][name] = {"speeds": speeds, "parts": measure_parts(ours, dialogues, options.variants)}
        longest = max(longest, dialogues, key=lambda some: sum(len(turn) for one in some for turn in one.history))
    if options.lengths:
        found["lengths"] = measure_lengths(systems, longest, options.variants[:2], min(options.rounds, len(longest)))
    if options.out is not None:
        write_json(options.out, found)
    print(to_markdown(found))


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="NAME=PATH", help="a dataset and its folder or file")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--variants", nargs="+", default=["direct", "fused", "fast", "teo"], choices=list(PIPELINES))
    parser.add_argument("--before", type=Path, help="a checkout of an older version, run by turns with this one")
    parser.add_argument("--baselines", action="store_true", help="run a two-pass BART-base shape in transformers too")
    parser.add_argument("--lengths", action="store_true", help="measure by the length of the source too")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=21, help="the systems take turns in each")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--out", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    try:
        main()
    except TeoError as error:
        sys.exit(str(error))
