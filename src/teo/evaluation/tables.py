"""python -m teo.evaluation.tables results docs/results.md: published results and ours, every figure from a file."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from teo.errors import exit_status
from teo.evaluation.ablations import VARIANTS
from teo.evaluation.predict import THRESHOLD_SUFFIX
from teo.evaluation.report import percent
from teo.evaluation.stored import DATASETS, OUR_METRICS, Published, Stored, read_ours, read_published
from teo.files import write_text

_INTRO = """\
# Results

Published results and ours, on the test sets, in percent. This page is made from the files in `results` by
`python -m teo.evaluation.tables results docs/results.md`; published figures are in `results/published.json`, with
precision and recall of restoration where they were printed.

- **Bold** rows are ours; the others are as printed. A dash: not printed, or no such rows.
- Pretraining names the pretrained weights that a system downloaded; "not stated" where the source of the figures does
  not say. What ours were trained on is said at the end of the page.
- Ours are scored on units of teo, characters or words ([metrics.md](metrics.md)); published figures rest on other
  tokenisers, on which EM depends least. F1 to F3 are restoration scores; published ones need not share one definition.
  Ours are RUN's, which is the wording of the paper's appendix (Pan's is in our files too). ROUGE-L of ours: by version
  0.3.2 / 1.0.1 of the package rouge.
- Intervals are 95%. Complete and incomplete: EM on the utterances that need no rewriting, and on those that do.
- Rows named gold are given the reference's operations. Rows named +threshold keep what the model is not sure of, as
  `teo rewrite` does; the other rows of ours change whatever the model proposes.
- REWRITE and TASK are published without a development set. The paper's development and test sets are the same rows
  ([paper.md](paper.md#where-the-paper-contradicts-itself)); ours is carved from train
  ([data.md](data.md#the-carved-development-set))."""
_MARKUP = re.compile(r"([\\`*_\[\]<>|])")


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
        tested = [one for one in ours if one.settings["data"] == dataset and one.settings["split"] == "test"]
        if theirs or tested:
            parts += [f"## {title}", _compare(theirs, tested), *_below(theirs, tested)]
    others = [one for one in ours if one.settings["split"] != "test"]
    if others:
        parts += ["## Development sets", "Ours only, for choosing; never beside published figures.", _develop(others)]
    if ours:
        parts += ["## Where our figures come from", *_origins(ours)]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0, 2 for the user's mistake, 1 for ours; the error is one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m teo.evaluation.tables", description="Write the tables of results.")
    parser.add_argument("results", type=Path, help="the folder with published.json and MODEL/DATASET-SPLIT.json files")
    parser.add_argument("out", type=Path, help="the Markdown file to write")
    given = parser.parse_args(arguments)
    return exit_status(lambda: write_text(given.out, render(given.results)))


def _rank(one: Stored) -> tuple[int, str, int, str, str]:
    """Return the place of a row of ours: by dataset, model, variant as `teo evaluate` lists them, name and file."""
    variants = list(VARIANTS)
    variant = one.settings["variant"]
    bare = variant.removesuffix(THRESHOLD_SUFFIX)
    place = 2 * variants.index(bare) + (variant != bare) if bare in variants else 2 * len(variants)
    return list(DATASETS).index(one.settings["data"]), one.model, place, one.name, one.file


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
            _plain(row.system),
            _plain(row.pretraining),
            *(_printed(row.metrics.get(column.published)) for column in columns),
            "-",
            _printed(row.metrics.get("em_complete")),
            "-",
        ]
        for row in theirs
    ]
    for one in tested:
        figures = (" / ".join(percent(one.metrics[key]) for key in column.ours) for column in columns)
        rows.append([_bold(_plain(one.name)), _plain(one.pretraining), *map(_bold, figures), *map(_bold, _apart(one))])
    # Only our rows fill the last columns: without them they would be dashes all the way down.
    kept = [place for place in range(len(head)) if any(row[place] != "-" for row in rows)]
    return _table([head[place] for place in kept], ([row[place] for place in kept] for row in rows))


def _below(theirs: Sequence[Published], tested: Sequence[Stored]) -> list[str]:
    """Return what a table needs said: where its figures were printed, and that ours are missing where they are."""
    sources: dict[str, list[str]] = {}
    for row in theirs:
        cited = f" (`{row.cites}`)" if row.cites else ""
        sources.setdefault(row.source, []).append(f"{_plain(row.system)}{cited}")
    lines = [f"- {_plain(source)}: {', '.join(systems)}." for source, systems in sources.items()]
    lines += [f"- {_plain(row.system)}: {_plain(row.note)}" for row in theirs if row.note]
    said = ["Sources and notes:\n\n" + "\n".join(lines)] if lines else []
    return said if tested else [*said, "No test results of ours are stored."]


def _develop(others: Iterable[Stored]) -> str:
    head = ("dataset", "split", "system", "rows", "EM", "EM, interval", "complete", "incomplete", "BLEU-4", "F1")
    rows = []
    for one in others:
        flow = one.metrics["stage_flow"] or {}
        part = ", the first" if one.metrics["run"]["limit"] is not None else ""
        rows.append(
            [
                DATASETS[one.settings["data"]],
                one.settings["split"],
                _plain(one.name),
                f"{one.metrics['n']:,}{part}",
                percent(one.metrics["em"]),
                *_apart(one),
                percent(one.metrics["bleu4"]),
                percent(one.metrics["run_f1"]),
                *(percent(flow.get(key)) for key in ("stage1_em", "e2c", "c2e")),
            ]
        )
    return _table((*head, "stage-1 EM", "E2C", "C2E"), rows)


def _origins(ours: Sequence[Stored]) -> list[str]:
    """Return what each row of ours was trained on, the file and circumstances of it, and the recipes."""
    models = {one.model: one for one in ours}
    trained = [
        f"- {_plain(name)}: pretraining: {_plain(one.pretraining)}; trained on {_plain(one.trained_on)}."
        for name, one in models.items()
    ]
    rows = [
        [
            f"`{one.file}`",
            str(one.settings["variant"]),
            f"{one.metrics['n']:,}",
            str(one.settings["seed"]),
            str(one.settings["precision"]),
            f"`{one.settings['model_hash'][:12]}`",
            f"`{one.settings['data_hash'][:12]}`",
            f"`{one.metrics['run']['git_commit'][:12]}`" if one.metrics["run"]["git_commit"] else "-",
        ]
        for one in ours
    ]
    head = ("file", "variant", "rows", "seed", "precision", "model hash", "data hash", "commit")
    names = (*OUR_METRICS, "em_complete", "intervals")
    recipes = dict.fromkeys(one.metrics["signatures"][name] for one in ours for name in names)
    signatures = "\n".join(f"- `{recipe}`" for recipe in recipes)
    return ["\n".join(trained), _table(head, rows), "Signatures:\n\n" + signatures]


def _apart(one: Stored) -> list[str]:
    low, high = one.metrics["intervals"]["em"]
    groups = (one.metrics["breakdown"][name] for name in ("complete", "incomplete"))
    return [f"{percent(low)} to {percent(high)}", *(percent(group["em"] if group["n"] else None) for group in groups)]


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _bold(cell: str) -> str:
    return cell if cell == "-" else f"**{cell}**"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    sys.exit(main())
