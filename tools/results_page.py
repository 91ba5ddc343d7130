"""`python tools/results_page.py`: docs/results.md, published results and ours, every figure from a file of results/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from result_files import DATASETS, OUR_METRICS, Flow, Published, Stored, read_ours, read_published
from studies_part import render_studies
from teo.errors import TeoError
from teo.evaluation.markdown import percent, plain, table
from teo.files import write_text

ROOT = Path(__file__).resolve().parents[1]
VARIANTS = ("teo", "direct", "gold", "stage1", "rfis", "fast", "fused", "rerank", "copy")
"""The order of a model's rows; one with thresholds (`fast+threshold`) follows the one without."""
_INTRO = """\
# Results

Published results and ours, on the test sets, in percent. This page is made from the files in `results` by
`python tools/results_page.py`; published figures are in `results/published.json`, with
precision and recall of restoration where they were printed.

- **Bold** rows are ours; the others are as printed. A dash: not printed, or no such rows.
- Pretraining names the pretrained weights that a system downloaded; "not stated" where the source of the figures does
  not say. What ours were trained on is said at the end of the page.
- Ours are scored on units of teo, characters or words ([metrics.md](metrics.md)); published figures rest on other
  tokenisers, on which EM depends least. F1 to F3 are restoration scores; published ones need not share one definition.
  Ours are RUN's, which is the wording of the paper's appendix (Pan's is in our files too). ROUGE-L of ours: by version
  0.3.2 / 1.0.1 of the package rouge.
- Intervals are 95%. Complete and incomplete: EM on the utterances that need no rewriting, and on those that do.
- Rows named fused, gold and stage1 are of one decoder that writes operations and then the rewrite, not of two stages
  trained apart; those have a part of [their own](#the-two-stages-trained). Gold is given the reference's operations.
- Rows named +threshold keep what the model is not sure of, as `teo rewrite` does; the other rows of ours change
  whatever the model proposes.
- REWRITE and TASK are published without a development set. The paper's development and test sets are the same rows
  ([paper.md](paper.md#where-the-paper-contradicts-itself)); ours is carved from train
  ([data.md](data.md#the-carved-development-set))."""


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    published: str
    ours: tuple[str, ...]


_COLUMNS = (
    *(_Column(f"BLEU-{n}", f"bleu{n}", (f"bleu{n}",)) for n in (1, 2, 3, 4)),
    *(_Column(f"ROUGE-{n}", f"rouge{n}", (f"rouge{n}",)) for n in (1, 2)),
    _Column("ROUGE-L", "rougeL", ("rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1")),
    *(_Column(f"F{n}", f"f{n}", (f"run_f{n}",)) for n in (1, 2, 3)),
)
_EM = _Column("EM", "em", ("em",))


def render(results: Path) -> str:
    """Return the page of all tables: one a dataset, our development figures, and where ours come from."""
    results = results.resolve()
    published = read_published(results / "published.json")
    ours = sorted(read_ours(results), key=_rank)
    parts = [_INTRO]
    for dataset, title in DATASETS.items():
        theirs = [row for row in published if row.dataset == dataset]
        tested = [result for result in ours if result.settings.data == dataset and result.settings.split == "test"]
        if theirs or tested:
            parts += [f"## {title}", _compare(theirs, tested), *_below(theirs, tested)]
    parts += render_studies(results / "reproduce")
    others = [result for result in ours if result.settings.split != "test"]
    if others:
        parts += ["## Development sets", "Ours only, for choosing; never beside published figures.", _develop(others)]
    if ours:
        parts += ["## Where our figures come from", *_origins(ours)]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the tables of results.")
    parser.add_argument(
        "results", type=Path, nargs="?", default=ROOT / "results", help="published.json and MODEL/DATASET-SPLIT.json"
    )
    parser.add_argument(
        "out", type=Path, nargs="?", default=ROOT / "docs" / "results.md", help="the Markdown file to write"
    )
    options = parser.parse_args(arguments)
    write_text(options.out, render(options.results))


def _rank(ours: Stored) -> tuple[int, str, int, bool, str, str]:
    """Return the place of a row of ours: by dataset, model, variant, with thresholds or without, name and file."""
    bare, plus, _ = ours.settings.variant.partition("+")
    place = VARIANTS.index(bare) if bare in VARIANTS else len(VARIANTS)
    return list(DATASETS).index(ours.settings.data), ours.model, place, bool(plus), ours.name, ours.file


def _compare(theirs: Sequence[Published], tested: Sequence[Stored]) -> str:
    """Return a dataset's table: the columns that were published (all where nothing was), published rows first."""
    shown = [
        column
        for column in _COLUMNS
        if not theirs or any(row.metrics.get(column.published) is not None for row in theirs)
    ]
    columns = [_EM, *shown]
    head = ["system", "pretraining", *(column.title for column in columns), "EM, interval", "complete", "incomplete"]
    rows = [
        [
            plain(row.system),
            plain(row.pretraining),
            *(_printed(row.metrics.get(column.published)) for column in columns),
            "-",
            _printed(row.metrics.get("em_complete")),
            "-",
        ]
        for row in theirs
    ]
    for result in tested:
        figures = (" / ".join(percent(getattr(result.metrics, key)) for key in column.ours) for column in columns)
        rows.append(
            [
                _bold(plain(result.name)),
                plain(result.card.pretraining),
                *map(_bold, figures),
                *map(_bold, _apart(result)),
            ]
        )
    # Only our rows fill the last columns: without them they would be dashes all the way down.
    kept = [place for place in range(len(head)) if any(row[place] != "-" for row in rows)]
    return table([head[place] for place in kept], ([row[place] for place in kept] for row in rows))


def _below(theirs: Sequence[Published], tested: Sequence[Stored]) -> list[str]:
    """Return what a table needs said: where its figures were printed, and that ours are missing where they are."""
    sources: dict[str, list[str]] = {}
    for row in theirs:
        cited = f" (`{row.cites}`)" if row.cites else ""
        sources.setdefault(row.source, []).append(f"{plain(row.system)}{cited}")
    lines = [f"- {plain(source)}: {', '.join(systems)}." for source, systems in sources.items()]
    lines += [f"- {plain(row.system)}: {plain(row.note)}" for row in theirs if row.note]
    notes = ["Sources and notes:\n\n" + "\n".join(lines)] if lines else []
    return notes if tested else [*notes, "No test results of ours are stored."]


def _develop(others: Iterable[Stored]) -> str:
    head = ("dataset", "split", "system", "rows", "EM", "EM, interval", "complete", "incomplete", "BLEU-4", "F1")
    rows = []
    for result in others:
        flow = result.metrics.stage_flow or Flow()
        part = ", the first" if result.metrics.run.limit is not None else ""
        rows.append(
            [
                DATASETS[result.settings.data],
                result.settings.split,
                plain(result.name),
                f"{result.metrics.n:,}{part}",
                percent(result.metrics.em),
                *_apart(result),
                percent(result.metrics.bleu4),
                percent(result.metrics.run_f1),
                *map(percent, (flow.stage1_em, flow.e2c, flow.c2e)),
            ]
        )
    return table((*head, "stage-1 EM", "E2C", "C2E"), rows)


def _origins(ours: Sequence[Stored]) -> list[str]:
    """Return what each row of ours was trained on, the file and circumstances of it, and the recipes."""
    models = {result.model: result for result in ours}
    trained = [
        f"- {plain(name)}: pretraining: {plain(result.card.pretraining)}; trained on {plain(result.card.trained_on)}."
        for name, result in models.items()
    ]
    rows = [
        [
            f"`{result.file}`",
            result.settings.variant,
            f"{result.metrics.n:,}",
            str(result.settings.seed),
            result.settings.precision,
            f"`{result.settings.model_hash[:12]}`",
            f"`{result.settings.data_hash[:12]}`",
            f"`{result.metrics.run.git_commit[:12]}`" if result.metrics.run.git_commit else "-",
        ]
        for result in ours
    ]
    head = ("file", "variant", "rows", "seed", "precision", "model hash", "data hash", "commit")
    names = (*OUR_METRICS, "em_complete", "intervals")
    recipes = dict.fromkeys(result.metrics.signatures[name] for result in ours for name in names)
    signatures = "\n".join(f"- `{recipe}`" for recipe in recipes)
    return ["\n".join(trained), table(head, rows), "Signatures:\n\n" + signatures]


def _apart(result: Stored) -> list[str]:
    low, high = result.metrics.intervals.em
    groups = (result.metrics.breakdown.complete, result.metrics.breakdown.incomplete)
    return [f"{percent(low)} to {percent(high)}", *(percent(group.em if group.n else None) for group in groups)]


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _bold(cell: str) -> str:
    return cell if cell == "-" else f"**{cell}**"


if __name__ == "__main__":
    try:
        main()
    except TeoError as error:
        sys.exit(str(error))
