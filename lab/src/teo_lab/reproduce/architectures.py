"""The architectures on a page: separate, shared and fused stages beside rewriting at once, with paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from teo.evaluation.markdown import percent, plain, table
from teo.metrics.significance import Difference
from teo_lab.reproduce.experiments import (
    ARCHITECTURES,
    DATASETS,
    DIRECT,
    SEPARATE,
    Run,
    System,
    Table,
    architectures_of,
)
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.table_cells import (
    TableSource,
    counted,
    difference_cells,
    interval_cell,
    left_out,
    metric_label,
    run_table,
    seed_cell,
)

_FLOW = ("stage1_em", "e2c", "c2e")


def format_architectures(spec: Table, source: TableSource, datasets: Sequence[str]) -> Iterable[str]:
    """Yield the parts of the page: what each architecture is, the paper's claim, a table for each dataset, the runs."""
    ours = {dataset: source.measure_all(dataset, architectures_of(dataset)) for dataset in datasets}
    yield (
        f"In percent on the test sets, means over {counted(source.seeds, 'seed')}; intervals are over rows, not over "
        "seeds. Stage-1 EM: rows whose operations are right; E2C: wrong operations whose rewrite is right; C2E: right "
        "operations whose rewrite is wrong."
    )
    yield "\n".join(f"- **{plain(system.name)}**: {what}." for system, what in ARCHITECTURES.items())
    yield "## Do two stages beat one?"
    yield _claim(source, ours)
    for dataset in datasets:
        yield f"## {DATASETS[dataset]}"
        yield from _dataset(spec, architectures_of(dataset), ours[dataset])
    yield "## Runs"
    yield run_table(
        source, dict.fromkeys(Run(dataset, system.kind) for dataset in ours for system in architectures_of(dataset))
    )


def verdict(difference: Difference | None) -> str:
    """Return what a paired test says of the claim that the first system is better."""
    if difference is None or not difference.is_significant:
        return "undecided"
    return "holds" if difference.value > 0 else "reversed"


def _claim(source: TableSource, ours: Mapping[str, Mapping[System, SeedResults]]) -> str:
    """Return separate minus direct for each dataset, beside the paper's difference, with a verdict."""
    rows = []
    for dataset, measured in ours.items():
        papers = [source.published_em(dataset, system.published) for system in (SEPARATE, DIRECT)]
        printed = "-" if papers[0] is None or papers[1] is None else f"{papers[0] - papers[1]:+.1f}"
        if SEPARATE not in measured or DIRECT not in measured:
            rows.append([DATASETS[dataset], printed, "-", "-", "-", "not measured"])
            continue
        difference = measured[SEPARATE].minus(measured[DIRECT])
        rows.append([DATASETS[dataset], printed, *difference_cells(difference), verdict(difference)])
    note = (
        "The paper's claim: two stages give more exact matches than the same model that rewrites at once. EM of "
        "separate minus EM of direct, in points; undecided: p is 0.05 or more."
    )
    return note + "\n\n" + table(["dataset", "paper", "ours", "95% interval", "p", "the claim"], rows, "lrrlrl")


def _dataset(spec: Table, systems: Sequence[System], ours: Mapping[System, SeedResults]) -> Iterable[str]:
    yield from left_out(systems, ours)
    if not ours:
        return
    rows = []
    for system, measured in ours.items():
        values = [percent(measured.mean(name)) for name in spec.metrics]
        flow = [percent(measured.flow(name)) for name in _FLOW]
        em = [percent(measured.mean("em")), interval_cell(measured.interval), seed_cell(measured)]
        rows.append([plain(system.name), *em, *values, *flow])
    header = ["architecture", "EM", "95% interval", "EM by seed", *(metric_label(name) for name in spec.metrics)]
    yield f"{next(iter(ours.values())).n:,} rows."
    yield table([*header, "stage-1 EM", "E2C", "C2E"], rows, "lrll" + "r" * (len(spec.metrics) + len(_FLOW)))
    tests = []
    for system, measured in ours.items():
        against = [
            difference_cells(measured.minus(ours[other])) if other in ours and other != system else ["", "", ""]
            for other in (DIRECT, SEPARATE)
        ]
        tests.append([plain(system.name), *against[0], *against[1]])
    yield "Differences of EM in points, by the paired bootstrap and approximate randomisation:"
    yield table(
        ["architecture", "minus direct", "95% interval", "p", "minus separate", "95% interval", "p"], tests, "lrlrrlr"
    )
