"""docs/performance.md, the page on speed, every figure from a stored file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from teo.evaluation.markdown import table
from teo_lab.reproduce.stored import read_json

_INTRO = """\
# Performance

`teo-lab pages` makes this page from the files in `lab/results`;
[benchmarks](../benchmarks/README.md) says how each was measured. Machines are noisy: the ratios within a run are worth
quoting, not the times."""
_RACE = """\
Every system reads as many tokens as the test rows have ({rows} rows, {rounds} interleaved rounds, medians). `fused`,
which `teo rewrite` runs, generates the operations and then the rewrite; `direct` generates the rewrite at once; `fast`
generates operations that carry their position. The BART-base-shaped model has random weights, in float32, and makes two
passes, as the paper's system does, over as many tokens as the gold operations and the references have. {machine}."""
_DRAFTS = """\
A rewrite is mostly the utterance and spans of the history. So the decoder does not generate it token by token: it
checks a draft taken from the source in one pass and keeps what it would have generated itself. Rewrites, scores and
confidence are the same to the last bit. "Before" is the version without drafts, run by turns with this one on the same
dialogues ({machine}, one thread)."""
_LENGTHS = """\
By the length of the dialogue, milliseconds for one rewrite. At 512 tokens nearly all of it is the encoder, which the
drafts do not touch: most of its time goes into the integer products of the linear layers and the float products of
attention."""

_GROWTH = "`fused` without drafts, on random tokens: the most that a dialogue of these sizes costs."
_PARTS = ("encoder", "decoder", "tokenizer", "python")
_ROBUST = """\
Differences that should not matter, and the share of the rewrites that are as they should be, in percent of those that
the model makes without the difference. Unrelated turns in front should change nothing; one turn, unlike two, gives the
utterance to the other speaker. A greeting is one of twelve that an assistant may begin with; about half of them are not
read. Polite words and typing errors should stand in the rewrite as the user typed them, and another name for a thing
there too. Everyday dialogues are those held out of training
([benchmarks/everyday](../benchmarks/everyday/README.md)), {everyday} of them; of the datasets, the first {rows} test
rows. In brackets: rewrites compared; fewer than {fewest} are not shown."""
_FEWEST = 20
_ROBUST_SETS = {
    "everyday-en": "everyday, English",
    "everyday-zh": "everyday, Chinese",
    "rewrite": "REWRITE",
    "res200k": "RES200K",
    "task": "TASK",
}

_KEPT = """\
A tiny BART and a tiny T5 learned a generated copy task in two stages ([smoke.toml](../configs/smoke.toml)) and were
exported. Rewrites are compared with those of torch in float32, on rows that the models were not trained on."""
_FAMILY_RACE = """\
A BART-base shape with random weights makes two passes over the lengths of {data}'s test rows ({rows} rows, {rounds}
interleaved rounds, medians), in transformers and exported. {machine}; other programs ran beside it."""


def make_performance(results: Path) -> str:
    """Return the page."""
    parts = [_INTRO, "## Against two passes of BART-base"]
    races = {name: read_json(results / "performance" / name / "bench.json") for name in ("rewrite", "task")}
    first = next(iter(races.values()))
    parts.append(_RACE.format(rows=first["rows"], rounds=first["rounds"], machine=first["facts"]["machine"]))
    for name, race in races.items():
        parts += [f"On {name.upper()}:", _race_table(race)]
    parts += ["## Drafts from the source", *_draft_parts(read_json(results / "performance" / "drafts.json"))]
    parts += ["## The paper's backbones, exported", *_family_parts(results / "performance" / "families")]
    parts += ["## Start, memory, size", _process_table(first, read_json(results / "performance" / "install.json"))]
    parts += ["## How cost grows", _GROWTH, "![cost by length and by batch size](images/growth.png)"]
    for what, points in first["growth"].items():
        parts.append(table((what, *(str(x) for x, _ in points)), [("ms per row", *(f"{y:.1f}" for _, y in points))]))
    load, kill = read_json(results / "load" / "load.json"), read_json(results / "load-kill" / "load.json")
    flood = read_json(results / "load-flood" / "load.json")
    parts += ["## Under load", _load_text(load), _load_table(load), _kill_text(kill), _flood_table(flood)]
    robust = {name: read_json(results / "robustness" / f"{name}.json") for name in _ROBUST_SETS}
    everyday = f"{robust['everyday-en']['rows']:,} English and the first {robust['everyday-zh']['rows']:,} Chinese"
    text = _ROBUST.format(everyday=everyday, rows=robust["rewrite"]["rows"], fewest=_FEWEST)
    parts += ["## What should not matter", text, _robust_table(robust)]
    return "\n\n".join(parts) + "\n"


def _draft_parts(drafts: dict[str, Any]) -> list[str]:
    """Return what drafts save: by dataset and pipeline, where the time goes, and by length."""
    speeds, passes = [], []
    for name, data in drafts["datasets"].items():
        pipelines = [row["pipeline"] for row in data["parts"] if row["system"] == "drafts"]
        times = {(row["pipeline"], row["system"]): row for row in data["speeds"]}
        for pipeline in pipelines:
            before, after = times[pipeline, "before"], times[pipeline, "drafts"]
            ms, rows = (f"{row['ms']:.1f}" for row in (before, after)), (before["rows_per_s"], after["rows_per_s"])
            gains = f"{before['ms'] / after['ms']:.2f}", f"{rows[1] / rows[0]:.2f}"
            speeds.append((name.upper(), pipeline, *ms, gains[0], *(f"{rate:.1f}" for rate in rows), gains[1]))
        for row in data["parts"]:
            shares = (f"{100 * row[part]:.0f}" for part in _PARTS)
            passes.append((name.upper(), row["pipeline"], row["system"], f"{row['passes']:.1f}", *shares))
    head = ("rows", "pipeline", "before, ms", "now, ms", "times faster", "before, rows/s", "now", "times more")
    where = ("rows", "pipeline", "", "passes a row", *(f"{part}, %" for part in _PARTS))
    return [
        _DRAFTS.format(machine=drafts["machine"]),
        table(head, speeds),
        "How often the decoder runs for a row, and where the time of a call goes:",
        table(where, passes),
        _LENGTHS,
        _length_table(drafts),
    ]


def _length_table(drafts: dict[str, Any]) -> str:
    """Return the milliseconds of a rewrite by the length of its dialogue, before and now."""
    lengths = drafts["lengths"]
    kinds = [kind for kind in lengths[0] if kind.endswith((", before", ", drafts"))]
    rows = [(kind.replace("drafts", "now"), *(f"{row[kind]:.0f}" for row in lengths)) for kind in kinds]
    return table(("tokens of the dialogue", *(str(row["tokens"]) for row in lengths)), rows)


def _race_table(race: dict[str, Any], base: str = "BART") -> str:
    size = race["speeds"][0]["batch_size"]
    bart = {_threads(speed["name"]): speed for speed in race["speeds"] if "BART-base, transformers" in speed["name"]}
    head = ("system", "ms, one row", f"{base}'s latency / its", f"rows/s, batch {size}", f"its rows/s / {base}'s")
    rows = []
    for speed in race["speeds"]:
        other = bart[_threads(speed["name"])]
        rows.append(
            (
                speed["name"],
                f"{speed['latency_ms']:.1f}",
                f"{other['latency_ms'] / speed['latency_ms']:.1f}",
                f"{speed['rows_per_s']:.1f}",
                f"{speed['rows_per_s'] / other['rows_per_s']:.1f}",
            )
        )
    return table(head, rows)


def _threads(name: str) -> str:
    return name.rpartition(", ")[2]


def _family_parts(folder: Path) -> list[str]:
    kept, race = read_json(folder / "kept.json"), read_json(folder / "race.json")
    facts = {"rows": race["rows"], "rounds": race["rounds"], "data": race["facts"]["data"].upper()}
    text = _FAMILY_RACE.format(**facts, machine=race["facts"]["machine"])
    return [_KEPT, _kept_table(kept), text, _race_table(race, base="transformers")]


def _kept_table(kept: dict[str, Any]) -> str:
    head = ("backbone", "exported as", "rows", "same rewrite, %", "EM in torch, %", "EM exported, %")
    rows = []
    for family, forms in kept.items():
        for form, loss in forms.items():
            shares = (f"{100 * loss[key]:.1f}" for key in ("same", "em_before", "em_after"))
            rows.append((family.upper(), form, str(loss["rows"]), *shares))
    return table(head, rows)


def _process_table(race: dict[str, Any], install: dict[str, Any]) -> str:
    rows = [(start["name"], f"{start['seconds']:.2f}", f"{start['peak_mb']:.0f}") for start in race["processes"]]
    shown = table(("process", "start to first rewrite, s", "peak memory, MB"), rows)
    return (
        f"{shown}\n\n`pip install .` into an empty environment takes {install['installed_mb']:.0f} MB in all, the "
        f"model's {install['model_mb']:.0f} MB included, without torch. `teo rewrite` from process start to its "
        f"output: {install['rewrite_s']:.2f} s (median of {install['runs']})."
    )


def _load_text(load: dict[str, Any]) -> str:
    memory = ", ".join(f"{megabytes:.0f}" for megabytes in load["memory_mb"])
    return (
        f"{load['clients']} clients on loopback for {load['seconds']:.0f} s each against `teo serve` with its batches "
        f"and against the same server with batches of one, by turns. Batching answers {load['gain']} times as many "
        f"requests a second. Memory of the batching server after each turn: {memory} MB."
    )


def _load_table(load: dict[str, Any]) -> str:
    names = {"batching": "batches", "one_at_a_time": "one at a time"}
    head = ("server", "requests", "failed", "requests/s", "p50, ms", "p90", "p95", "p99", "most")
    keys = ("requests", "failed", "requests_per_second", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms")
    return table(head, [(title, *(str(load[name][key]) for key in keys)) for name, title in names.items()])


def _kill_text(kill: dict[str, Any]) -> str:
    return (
        f"Killed workers: two workers and {kill['clients']} clients that try once more after a reset connection, as "
        f"`RemoteRewriter` does. One worker was killed at a time, {kill['kills']} times in {kill['seconds']:.0f} s, as "
        f"soon as both served again: {kill['requests']} requests, {kill['resets']} resets, {kill['failed']} failed, "
        f"{kill['workers_after']} workers at the end."
    )


def _flood_table(flood: dict[str, Any]) -> str:
    rows = [
        (name, *(str(figures[key]) for key in ("before_mb", "most_mb", "after_mb")))
        for name, figures in flood.items()
        if isinstance(figures, dict)
    ]
    return table(("flood, to one worker", "memory before, MB", "most", "after"), rows)


def _robust_table(measured: dict[str, Any]) -> str:
    """Return the share of rewrites that are as they should be, by kind of difference and by dataset."""
    rows = [
        (kind, *(_share(each["kinds"][kind]) for each in measured.values()))
        for kind in next(iter(measured.values()))["kinds"]
    ]
    return table(("difference", *(_ROBUST_SETS[name] for name in measured)), rows)


def _share(counts: dict[str, int]) -> str:
    if counts["rows"] < _FEWEST:
        return "-"
    return f"{100 * counts['as_it_should_be'] / counts['rows']:.1f} ({counts['rows']})"
