"""The figures of docs/scale.md, every one from a stored file.

`benchmarks/batch.py --out lab/results/scale` and `benchmarks/gpu_batch.py --out lab/results/scale` store them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from teo.evaluation.markdown import percent, table
from teo_lab.reproduce.stored import read_json

PLANNED = 100_000_000
CORES = (16, 96, 480)

_PLAN = """\
### A plan for 100 million rows

At {rate:.0f} rows a second for each core, {rows:,} rows take {hours:,.0f} core hours. With *c* as the price of a
core hour they cost {hours:,.0f} × *c*."""
_ASSUMPTIONS = """\
Assumptions:

- The rows are as long as those measured, and the cores as fast. Processes are idle {idle} of the time, as measured.
- All workers reach input and output. The rows are some {gigabytes:.0f} GB of JSONL; a core reads {per_core:.0f} MB of
  them an hour, so storage does not hold the job up.
- Repeated dialogues would cost nothing; none are counted on.
- A machine that is taken away costs at most the part it was at: {seconds:.0f} s of a core."""
_NO_GPU = """\
### On a GPU

Not measured yet. `python benchmarks/gpu_batch.py MODEL --out lab/results/scale` measures it for a trained folder, and
`teo-lab pages` puts the figures here."""
_BUSY = 0.5
"""Load of other work from which on a run's rates are not to be trusted."""
_ROW_BYTES = 200
_PART_ROWS = 2048


def make_scale(results: Path) -> str:
    """Return the figures of the page."""
    batch = read_json(results / "batch.json")
    gpu_file = results / "gpu.json"
    gpu = read_json(gpu_file) if gpu_file.is_file() else None
    long_file = results / "long" / "batch.json"
    long = [_long(read_json(long_file))] if long_file.is_file() else []
    parts = [*_engines(batch), *long, *_growth(batch), _kills(batch), *(_gpu(gpu) if gpu else [_NO_GPU])]
    return "\n\n".join([*parts, *_plan(batch, gpu)])


def _engines(batch: dict[str, Any]) -> list[str]:
    head = (
        "engine",
        "rows/s",
        "for each process",
        "for each CPU second",
        "idle, %",
        "seconds in all",
        "of them starting",
    )
    rows = [
        (
            name,
            f"{run['rows_per_second']:.1f}",
            f"{run['rows_per_second_and_process']:.1f}",
            f"{run['rows_per_cpu_second']:.1f}" if run["rows_per_cpu_second"] else "-",
            percent(run["idle"]),
            f"{run['seconds']:.1f}",
            f"{run['seconds'] - run['rewriting_seconds']:.1f}",
        )
        for name, run in batch["engines"].items()
    ]
    local, ray = batch["engines"]["local"], batch["engines"]["ray"]
    same = _same(batch)
    words = (
        f"{batch['rows']:,} rows of REWRITE and RES200K, repeated with other names, on {batch['cores']} cores"
        f"{_processor(batch)} with the embedded model. The outputs of both engines are {same}. "
    )
    if max(batch["load_of_others"]) < _BUSY:
        more = ray["seconds"] - local["seconds"]
        words += f"Ray takes {more:.0f} s more in all, {100 * more / local['seconds']:.0f}%."
    else:
        load = " to ".join(map(str, batch["load_of_others"]))
        words += (
            f"Other work ran on the machine (load {load}), so the rates are too low and not to be compared; rows for "
            "each second of processor time hold."
        )
    return ["### Both engines", words, table(head, rows, "lrrrrrr")]


def _long(batch: dict[str, Any]) -> str:
    """Return what a longer run on another machine says: that the outputs are the same, and what it took."""
    local, ray = batch["engines"]["local"], batch["engines"]["ray"]
    return (
        f"A longer run on another machine, {batch['rows']:,} rows on {batch['cores']} cores{_processor(batch)}: the "
        f"outputs are {_same(batch)}, {local['errors'] + ray['errors']} rows are bad. It took {_took(local)} with the "
        f"local engine and {_took(ray)} with Ray. {batch['note']}"
    )


def _took(run: dict[str, Any]) -> str:
    return f"{run['seconds'] / 60:.1f} minutes ({run['rows_per_second_and_process']:.1f} rows/s for each process)"


def _same(batch: dict[str, Any]) -> str:
    return "the same, byte for byte" if batch["engines_agree"] else "NOT the same"


def _processor(batch: dict[str, Any]) -> str:
    return f" ({batch['processor']})" if batch.get("processor") else ""


def _growth(batch: dict[str, Any]) -> list[str]:
    growth = batch["growth"]
    one = growth["processes"]["1"]["rows_per_second"]
    rows = [
        (
            count,
            f"{run['rows_per_second']:.1f}",
            f"{run['rows_per_second'] / one:.2f}",
            f"{run['rows_per_cpu_second']:.1f}",
        )
        for count, run in growth["processes"].items()
    ]
    head = ("processes", "rows/s", "times one process", "rows for each CPU second")
    words = (
        f"{growth['rows']:,} rows, the local engine. The last column is what a core does for itself, whatever else the "
        "machine was doing: as long as it stays, more cores give as much more."
    )
    return ["### From one core to several", words, table(head, rows, "rrrr")]


def _kills(batch: dict[str, Any]) -> str:
    kills = batch["kills"]
    same = "the same files as" if kills["same"] else "OTHER files than"
    return (
        "### Killed and started again\n\n"
        f"A job of {kills['rows']:,} rows in {kills['parts']} parts was killed {kills['kills']} times at random "
        f"moments and started again each time. It gave {same} a job that nobody disturbed."
    )


def _gpu(gpu: dict[str, Any]) -> list[str]:
    sizes = sorted({run["batch_size"] for run in gpu["runs"]})
    dtypes = list(dict.fromkeys(run["dtype"] for run in gpu["runs"]))
    found = {(run["dtype"], run["batch_size"]): run["rows_per_second"] for run in gpu["runs"]}
    rows = [
        (dtype, *(f"{found[dtype, size]:,.0f}" if (dtype, size) in found else "-" for size in sizes))
        for dtype in dtypes
    ]
    words = f"Rows a second by batch size, one process, {gpu['device']}, torch {gpu['torch']}, {gpu['rows']:,} rows."
    if note := gpu.get("note"):
        words += f" {note}"
    if "same_rewrites" in gpu:
        words += f" Both precisions give the same rewrite for {percent(gpu['same_rewrites'])}% of the rows."
    return ["### On a GPU", words, table(("precision", *map(str, sizes)), rows, "l" + "r" * len(sizes))]


def _plan(batch: dict[str, Any], gpu: dict[str, Any] | None) -> list[str]:
    local = batch["engines"]["local"]
    rate = local["rows_per_cpu_second"] * (1 - local["idle"])
    hours = PLANNED / rate / 3600
    rows = [(f"{cores} cores", f"{hours / cores:,.1f}", f"{hours:,.0f} × *c*") for cores in CORES]
    if gpu:
        best = max(run["rows_per_second"] for run in gpu["runs"])
        rows.append((f"1 × {gpu['device']}", f"{PLANNED / best / 3600:,.1f}", f"{PLANNED / best / 3600:,.1f} × *g*"))
    last = "\n- *g* is the price of a GPU hour." if gpu else ""
    return [
        _PLAN.format(rate=rate, rows=PLANNED, hours=hours),
        table(("machines", "hours", "cost"), rows, "lrr"),
        _ASSUMPTIONS.format(
            idle=f"{100 * local['idle']:.0f}%",
            gigabytes=PLANNED * _ROW_BYTES / 1e9,
            per_core=rate * 3600 * _ROW_BYTES / 1e6,
            seconds=_PART_ROWS / rate,
        )
        + last,
    ]
