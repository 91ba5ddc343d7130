"""lab/docs/results.md: published results and ours, every figure from a stored file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from teo.evaluation.markdown import percent, plain, table
from teo_lab.pages.two_stages import render_two_stages
from teo_lab.reproduce.comparison import compare, rank, say_below, set_apart
from teo_lab.reproduce.stored import DATASETS, OUR_METRICS, Flow, Stored, read_ours, read_published

_INTRO = """\
# Results

Published results and ours, on the test sets, in percent. `teo-lab pages` makes this page
from the files in `lab/results`; published figures are in `lab/results/published.json`, with precision and recall of
restoration if they were printed.

- **Bold** rows are ours; the others are as printed. A dash: not printed, or no such rows.
- Pretraining names the pretrained weights that a system downloaded; "not stated" if the source of the figures does not
  say. What ours were trained on is said at the end of the page.
- Ours are scored on units of teo, characters or words ([metrics.md](../../docs/metrics.md)); published figures rest on
  other tokenisers, on which EM depends least. F1 to F3 are restoration scores; published ones need not share one
  definition. Ours are RUN's, which is the wording of the paper's appendix (Pan's is in our files too). ROUGE-L of ours:
  by version 0.3.2 / 1.0.1 of the package rouge.
- Intervals are 95%. Complete and incomplete: EM on the utterances that need no rewriting, and on those that do.
- Rows named default are of the embedded model. Those named +threshold leave unchanged what it is not sure of, as
  `teo rewrite` does; the others change whatever it proposes. Rows named baselines are other published methods on our
  backbone ([studies.md](studies.md#baselines-on-our-backbone)). Models of two stages have a part of
  [their own](#the-two-stages-trained).
- REWRITE and TASK are published without a development set. The paper's development and test sets are the same rows
  ([paper.md](../../docs/paper.md#where-the-paper-contradicts-itself)); ours is carved from train
  ([data.md](../../docs/data.md#the-carved-development-set))."""

_BASE = """\
The base in weights/base was replaced since. These models start from the one before, which the
history has at e01fe46."""


def make_results(results: Path) -> str:
    """Return the page of all tables: one a dataset, our development figures, and where ours come from."""
    results = results.resolve()
    published = read_published(results / "published.json")
    ours = sorted(read_ours(results), key=rank)
    parts = [_INTRO]
    for dataset, title in DATASETS.items():
        theirs = [row for row in published if row.dataset == dataset]
        tested = [result for result in ours if result.settings.data == dataset and result.settings.split == "test"]
        if theirs or tested:
            parts += [f"## {title}", compare(theirs, tested), *say_below(theirs, tested)]
    parts += render_two_stages(results / "reproduce")
    others = [result for result in ours if result.settings.split != "test"]
    if others:
        parts += ["## Development sets", "Ours only, for choosing; never beside published figures.", _develop(others)]
    if ours:
        parts += ["## Where our figures come from", *_origins(ours)]
    return "\n\n".join(parts) + "\n"


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
                *set_apart(result),
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
    return ["\n".join(trained), _BASE, table(head, rows), "Signatures:\n\n" + signatures]
