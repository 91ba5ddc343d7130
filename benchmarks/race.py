"""Systems that do the same work by turns, in one run: medians, and ratios within that run.

The work is a dataset's: every system encodes as many tokens as the dialogue has. Ours generates what it makes of it,
the others as many tokens as its operations and its rewrite have, whatever their weights are. Machines are noisy: rounds
of all systems alternate, and only ratios within one run are worth quoting.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.errors import InputError, TeoError
from teo.evaluation.markdown import table
from teo.layouts import Marker, Pieces, dialogue_source, operation_pieces
from teo.loading import ModelFolder
from teo.placement import placed_pieces
from teo.runtime.onnx_generator import OnnxGenerator
from teo.runtime.search import search_greedily
from teo.stages import fit_dialogue

NEVER = -1
"""No token's id: generation goes on to its limit."""


@dataclass(frozen=True, slots=True)
class Work:
    """One row's work, in tokens."""

    source: tuple[int, ...]
    operations: int
    rewrite: int
    placed: int
    """Operations that carry their place: all that the pipeline fast generates."""
    pieces: Pieces = ()
    """The source as our own model takes it; without it, ours generates as many tokens as the others, without drafts."""


class Contestant(Protocol):
    """A system that can do the work."""

    @property
    def name(self) -> str:
        """What the tables call it."""

    def do(self, rows: Sequence[Work]) -> None:
        """Encode and generate these rows as one batch."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a system is."""

    name: str
    latency_ms: float
    """Median time of one row by itself."""
    rows_per_s: float
    """Rows a second in batches, by the median batch."""
    batch_size: int


@dataclass(slots=True)
class Report:
    """What one run found."""

    rows: int
    rounds: int
    speeds: list[Speed]
    facts: dict[str, Any] = field(default_factory=dict)
    processes: list[dict[str, Any]] = field(default_factory=list)
    growth: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {**asdict(self), "ratios": self.ratios()}

    def ratios(self) -> dict[str, dict[str, float]]:
        """Return, for each system, how much slower than the fastest it is: latency and rows a second."""
        least = min(speed.latency_ms for speed in self.speeds)
        most = max(speed.rows_per_s for speed in self.speeds)
        return {
            speed.name: {
                "latency": round(speed.latency_ms / least, 2),
                "throughput": round(most / speed.rows_per_s, 2),
            }
            for speed in self.speeds
        }

    def to_markdown(self) -> str:
        """Return the tables."""
        ratios, size = self.ratios(), self.speeds[0].batch_size
        parts = [f"{self.rows} rows, {self.rounds} interleaved rounds, medians; {self.facts.get('machine', '')}"]
        head = ("system", "ms, one row", "times the fastest", f"rows/s, batch {size}", "times slower")
        rows = [
            (
                speed.name,
                f"{speed.latency_ms:.1f}",
                f"{ratios[speed.name]['latency']:.1f}",
                f"{speed.rows_per_s:.1f}",
                f"{ratios[speed.name]['throughput']:.1f}",
            )
            for speed in self.speeds
        ]
        parts.append(table(head, rows, align="lrrrr"))
        if self.processes:
            starts = [(start["name"], f"{start['seconds']:.2f}", f"{start['peak_mb']:.0f}") for start in self.processes]
            parts.append(table(("process", "start to first rewrite, s", "peak memory, MB"), starts, align="lrr"))
        for what, points in self.growth.items():
            parts.append(table((what, "ms per row"), [(x, f"{y:.1f}") for x, y in points], align="rr"))
        return "\n\n".join(parts) + "\n"


_MARKERS = {"fast": Marker.WRITE_PLACED, "direct": Marker.WRITE_REWRITE, "fused": Marker.WRITE_OPERATIONS}


class Ours:
    """The exported model, the dialogue encoded once: placed operations (fast), the rewrite (direct), or both (fused).

    What `fused` writes first are operations without places.
    """

    def __init__(
        self, model: Path, threads: int, variant: str = "fused", generator: OnnxGenerator | None = None
    ) -> None:
        limit = ModelFolder.load(model).source_limit
        self.generator = generator or OnnxGenerator(weights_of(model), threads=threads, source_limit=limit)
        self.variant = variant
        form, count = self.generator.description.form, f"{threads} thread{'s' if threads > 1 else ''}"
        self.name = f"teo {variant}, {form}, {count}"

    def do(self, rows: Sequence[Work]) -> None:
        """Encode and generate these rows as one batch."""
        marker = _MARKERS[self.variant]
        if all(row.pieces for row in rows):
            self.generator.generate([row.pieces for row in rows], prompts=[(marker,)] * len(rows))
            return
        start = self.generator.codec.decoder_start((marker,))
        steps = self.generator.read([row.source for row in rows])
        limits = [self._length(row) for row in rows]
        search_greedily(steps, [start] * len(rows), limits, NEVER)

    def _length(self, row: Work) -> int:
        if self.variant == "fused":
            return row.operations + row.rewrite
        return row.placed if self.variant == "fast" else row.rewrite


def weights_of(model: Path) -> Path:
    """Return the weights of a model's decoder that generates operations and rewrite, or of its first role."""
    roles = ModelFolder.load(model).roles
    chosen = roles.get("fused") or next(iter(roles.values()))
    return model / chosen.folder


def make_work(generator: OnnxGenerator, rows: Sequence[Row]) -> list[Work]:
    """Return the rows' true lengths: their sources, and what a perfect model would generate."""
    work = []
    for row in rows:
        pieces = dialogue_source(fit_dialogue(generator, row.dialogue)[0])
        source = tuple(generator.codec.encode(pieces))
        script = derive_edits(row.dialogue.utterance, row.rewrite)
        operations = len(generator.codec.encode((*operation_pieces(script.operations), Marker.SEP)))
        placed = len(generator.codec.encode_target(placed_pieces(script, row.dialogue.utterance)))
        work.append(Work(source, operations, len(generator.codec.encode_target((row.rewrite,))), placed, pieces))
    return work


def race(
    contestants: Sequence[Contestant],
    work: Sequence[Work],
    *,
    rounds: int = 5,
    batch_size: int = 32,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Return the speeds of systems that take turns, round by round."""
    if not contestants or not work or rounds < 1 or batch_size < 1:
        raise InputError("race: expected at least one system, one row and one round; found none")
    batches = [work[start : start + batch_size] for start in range(0, len(work), batch_size)]
    single: dict[str, list[float]] = {system.name: [] for system in contestants}
    batched: dict[str, list[float]] = {system.name: [] for system in contestants}
    for system in contestants:
        system.do(work[:1])  # what only the first call pays
    for number in range(rounds):
        row, batch = work[number % len(work)], batches[number % len(batches)]
        for system in contestants:
            single[system.name].append(_timed(partial(system.do, [row])))
            batched[system.name].append(_timed(partial(system.do, batch)) / len(batch))
        say(f"round {number + 1} of {rounds}")
    speeds = [
        Speed(
            system.name,
            statistics.median(single[system.name]) * 1000,
            1 / statistics.median(batched[system.name]),
            min(batch_size, len(work)),
        )
        for system in contestants
    ]
    return Report(len(work), rounds, speeds, {"machine": machine()})


def measure_growth(ours: Ours, *, rounds: int = 3) -> dict[str, list[tuple[int, float]]]:
    """Return how the cost of a row grows with the tokens of its dialogue, and falls with the size of its batch."""
    rng = np.random.default_rng(0)
    last = len(ours.generator.embedding)

    def row(length: int) -> Work:
        return Work(tuple(int(k) for k in rng.integers(last // 2, last, length)), 8, 12, 10)

    def cost(rows: list[Work]) -> float:
        return statistics.median(_timed(lambda: ours.do(rows)) for _ in range(rounds)) * 1000 / len(rows)

    limit = ours.generator.source_limit
    lengths = [length for length in (16, 32, 64, 128, 256, 512) if length <= limit]
    sizes = (1, 2, 4, 8, 16, 32, 64)
    return {
        "tokens of the dialogue": [(length, cost([row(length)])) for length in lengths],
        "rows of a batch (48 tokens each)": [(size, cost([row(48)] * size)) for size in sizes],
    }


_FIRST_REWRITE = """
import sys
from teo.rewriter import Rewriter
rewriter = Rewriter.from_pretrained(sys.argv[1] or None, threads=int(sys.argv[2]))
rewriter.rewrite(["I think Batman is very handsome."], "Who acted in it?")
"""
_PEAK = """
import json, resource
from pathlib import Path
status = Path("/proc/self/status")
if status.is_file():  # what getrusage says counts the memory of the process that started this one
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"peak_mb": peak / 1024}))
"""


def measure_process(name: str, code: str, *arguments: str) -> dict[str, Any]:
    """Return how long a fresh process takes to its first output, and the most memory it had."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code + _PEAK, *arguments], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise TeoError(f"race: the process '{name}' failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    return {"name": name, "seconds": seconds, **json.loads(done.stdout.splitlines()[-1])}


def measure_start(model: Path, threads: int = 1) -> dict[str, Any]:
    """Return the cold start and the memory of our own runtime."""
    return measure_process("teo", _FIRST_REWRITE, str(model), str(threads))


def machine() -> str:
    """Return what the numbers were measured on, in a phrase."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
