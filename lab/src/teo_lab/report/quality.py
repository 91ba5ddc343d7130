"""Sections on quality: the paper's tables, what the stages do, the share of noise, the datasets, the errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from teo.data.stats import dataset_stats
from teo.errors import InputError
from teo.evaluation.markdown import percent, plain, table
from teo.metrics.breakdown import KINDS
from teo.metrics.flow import StageFlow
from teo_lab.report.figures import draw_errors, draw_prob_p, draw_stages
from teo_lab.report.section import (
    EMBEDDED,
    OWN_VARIANT,
    PAPER_DATASETS,
    SHIPPED,
    MissingPartError,
    ReportSource,
    Section,
)
from teo_lab.reproduce.comparison import compare, say_below
from teo_lab.reproduce.experiments import PAPER_PROB_P, PROB_PS, TEO, Run, sweep_run
from teo_lab.reproduce.seed_results import SeedResults
from teo_lab.reproduce.stored import read_json
from teo_lab.reproduce.tables import format_statistics

_CELLS = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")
_TWO_STAGES = ("teo", "fused", "fast")
"""Variants with operations, the one closest to the paper first."""


def summarise(source: ReportSource) -> Section:
    """Return what to know first: how often the embedded model is right, beside the best that was published."""
    rows = []
    for dataset, title in PAPER_DATASETS.items():
        printed = [row for row in source.published if row.dataset == dataset and row.metrics.get("em") is not None]
        fair = [row for row in printed if "Gold" not in row.system]
        best = max(fair, key=lambda row: row.metrics["em"] or 0.0, default=None)
        bare, careful = (source.tested(dataset, EMBEDDED, name) for name in (OWN_VARIANT, SHIPPED))
        if not bare:
            continue
        ours = [percent(bare[0].metrics.em), percent(careful[0].metrics.em) if careful else "-"]
        theirs = f"{best.metrics['em']:.1f} ({plain(best.system)})" if best else "-"
        rows.append([title, f"{bare[0].metrics.n:,}", *ours, theirs])
    if not rows:
        expected = f"{EMBEDDED}/DATASET-test-{OWN_VARIANT}.json"
        raise MissingPartError(f"no evaluation of the embedded model; expected {expected}")
    head = ["test set", "rows", f"{OWN_VARIANT}, no threshold", "`teo rewrite`", "best published"]
    text = (
        "EM of the embedded model in percent: the share of rewrites that equal the reference. `teo rewrite` writes "
        "operations, then the rewrite, and leaves an utterance unchanged if a rewrite is more likely wrong than right."
    )
    return Section("summary", "How good is it?", f"{table(head, rows, 'lrrrr')}\n\n{text}")


def show_tables(source: ReportSource) -> Section:
    """Return tables 2 to 4, every published row and ours."""
    parts = ["In percent. **Bold** rows are ours, all others as printed; a dash means not printed. Intervals are 95%."]
    for number, (dataset, title) in enumerate(PAPER_DATASETS.items(), start=2):
        theirs = [row for row in source.published if row.dataset == dataset]
        tested = source.tested(dataset)
        if theirs or tested:
            parts += [f"### Table {number}: {title}", compare(theirs, tested), *say_below(theirs, tested)]
    if len(parts) == 1:
        raise MissingPartError("neither published results nor evaluations of TASK, REWRITE or RES200K are stored")
    return Section("tables", "How does it compare with published systems?", "\n\n".join(parts))


def show_stages(source: ReportSource) -> Section:
    """Return what stage 2 makes of right and wrong operations, beside the paper's table 5."""
    rows: list[list[str]] = []
    flows: dict[str, StageFlow] = {}
    for dataset, title in PAPER_DATASETS.items():
        for row in source.published:
            if row.dataset == dataset and row.metrics.get("stage1_em") is not None:
                printed = [f"{row.metrics[name]:.1f}" for name in ("stage1_em", "e2c", "c2e", "em")]
                rows.append([title, f"paper, {plain(row.system)}", "", *printed])
        for name, flow in _flows(source, dataset).items():
            flows[f"{title}, {name}"] = flow
            rates = map(percent, (flow.stage1_em, flow.e2c, flow.c2e, flow.final_em))
            rows.append([title, f"**{plain(name)}**", f"{flow.n:,}", *rates])
    if not flows:
        raise MissingPartError("no evaluation with operations; run teo-lab reproduce table5")
    text = (
        "E2C: the share of wrong operations that still end in a right rewrite. C2E: the share of right operations that "
        "end in a wrong one. In percent."
    )
    drawn = source.draw("stages", "rows by whether operations and rewrite are right", partial(draw_stages, flows))
    head = ["dataset", "system", "rows", "stage-1 EM", "E2C", "C2E", "final EM"]
    body = f"{text}\n\n{drawn}\n\n{table(head, rows, 'llrrrrr')}"
    return Section("stages", "What does stage 2 make of stage 1?", body)


def _flows(source: ReportSource, dataset: str) -> dict[str, StageFlow]:
    """Return by name what is stored of two stages: the embedded model, then the paper's models trained here."""
    tested = {stored.settings.variant: stored for stored in source.tested(dataset, EMBEDDED)}
    found = {tested[name].name: dict(tested[name].metrics.stage_flow or {}) for name in _TWO_STAGES if name in tested}
    for base in sorted((source.results / "reproduce").glob("*")):
        file = base / Run(dataset, TEO.kind).name / f"{dataset}-test-{TEO.variant}.json"
        if file.is_file():
            found[f"{base.name}, separate stages"] = read_json(file).get("stage_flow") or {}
    return {
        name: StageFlow(*(int(cells[cell]) for cell in _CELLS))
        for name, cells in found.items()
        if all(cell in cells for cell in _CELLS)
    }


def show_noise(source: ReportSource) -> Section:
    """Return EM against prob_p, if `teo-lab reproduce figure3` was run."""
    found = {value: _sweep_files(source, value) for value in PROB_PS}
    points = {value: SeedResults.read(files) for value, files in found.items() if files}
    if len(points) < 2:
        raise MissingPartError("EM against prob_p was not measured; run teo-lab reproduce figure3")
    ems = {value: (measured.mean("em") or 0.0, measured.interval) for value, measured in points.items()}
    drawn = source.draw("prob_p", "EM on REWRITE against prob_p", partial(draw_prob_p, ems, PAPER_PROB_P))
    rows = []
    for value, (em, around) in ems.items():
        interval = "-" if around is None else f"{percent(around.low)} to {percent(around.high)}"
        rows.append([f"{value:g}", percent(em), interval, str(len(points[value].ems))])
    text = (
        "prob_p is the share of rows whose operations are disturbed while stage 2 is trained (Algorithm 1). EM on "
        "REWRITE's test set, in percent."
    )
    body = f"{text}\n\n{drawn}\n\n{table(['prob_p', 'EM', '95% interval', 'seeds'], rows, 'lrlr')}"
    return Section("noise", "How much noise should stage 2 be trained with?", body)


def _sweep_files(source: ReportSource, value: float) -> list[Path]:
    """Return the stored evaluations of a prob_p, those of the first base that has any."""
    run = sweep_run(value, "rewrite", 0)
    for base in sorted((source.results / "reproduce").glob("*")):
        name = run.name.removesuffix("0")
        if files := sorted(base.glob(f"{name}*/rewrite-test-{TEO.variant}.json")):
            return files
    return []


def show_datasets(source: ReportSource) -> Section:
    """Return table 9, counted in the datasets that the user has."""
    if source.data is None:
        raise MissingPartError("dataset statistics need the datasets; give --data DIR")
    read = {}
    for name in PAPER_DATASETS:
        try:
            read[name] = dataset_stats(name, source.data / name)
        except InputError:
            continue
    if not read:
        raise MissingPartError(f"no dataset in {source.data}; expected folders task, rewrite or res200k")
    return Section("datasets", "What is in the datasets?", "\n\n".join(format_statistics(read)))


def show_errors(source: ReportSource) -> Section:
    """Return what is wrong with the wrong rewrites of the embedded model."""
    faults: dict[str, Mapping[str, int]] = {}
    rows = []
    for dataset, title in PAPER_DATASETS.items():
        for stored in source.tested(dataset, EMBEDDED, OWN_VARIANT):
            errors = getattr(stored.metrics, "errors", None)
            if not errors or not errors["rows"]:
                continue
            faults[f"{title} ({errors['rows']:,} wrong)"] = errors["faults"]
            operations = errors["operations"]
            needed = [str(errors["needed"][kind]) for kind in KINDS]
            shares = [str(operations["insertion"]), str(operations["replacement"]), percent(errors["insertion_share"])]
            rows.append([title, f"{errors['rows']:,}", *shares, *needed])
    if not faults:
        expected = f"{EMBEDDED}/DATASET-test-{OWN_VARIANT}.json"
        raise MissingPartError(f"no errors are stored; expected {expected} of teo evaluate")
    drawn = source.draw("errors", "wrong rewrites by what is wrong with them", partial(draw_errors, faults))
    head = ["dataset", "wrong rows", "insertion at fault", "replacement at fault", "insertions, %"]
    head += [f"needed: {kind}" for kind in ("nothing", "insertion", "replacement", "both")]
    text = (
        f"The wrong rewrites of the embedded model ({OWN_VARIANT}, without a threshold), by what is wrong with the "
        "words, and by the kind of operation at fault. A row may have both kinds at fault."
    )
    body = f"{text}\n\n{drawn}\n\n{table(head, rows, 'l' + 'r' * 8)}"
    return Section("errors", "What goes wrong?", body)
