"""A dataset's published results and ours as one table: what every page that compares them shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from teo.evaluation.markdown import percent, plain, table
from teo_lab.reproduce.stored import DATASETS, Published, Stored

VARIANTS = ("teo", "direct", "gold", "stage1", "rfis", "fast", "fused", "rerank", "copy")
"""The order of a model's rows; one with thresholds (`fast+threshold`) follows the one without."""


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


def rank(ours: Stored) -> tuple[int, str, int, bool, str, str]:
    """Return the position of a row of ours: by dataset, model, variant, with thresholds or without, name and file."""
    bare, plus, _ = ours.settings.variant.partition("+")
    position = VARIANTS.index(bare) if bare in VARIANTS else len(VARIANTS)
    return list(DATASETS).index(ours.settings.data), ours.model, position, bool(plus), ours.name, ours.file


def compare(theirs: Sequence[Published], tested: Sequence[Stored]) -> str:
    """Return a dataset's table: the columns that were published (all if nothing was), published rows first."""
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
                *map(_bold, set_apart(result)),
            ]
        )
    # Only our rows fill the last columns: without them they would be dashes all the way down.
    kept = [column for column in range(len(head)) if any(row[column] != "-" for row in rows)]
    return table([head[column] for column in kept], ([row[column] for column in kept] for row in rows))


def say_below(theirs: Sequence[Published], tested: Sequence[Stored]) -> list[str]:
    """Return what a table needs said: where its figures were printed, and that ours are missing if they are."""
    sources: dict[str, list[str]] = {}
    for row in theirs:
        cited = f" (`{row.cites}`)" if row.cites else ""
        sources.setdefault(row.source, []).append(f"{plain(row.system)}{cited}")
    lines = [f"- {plain(source)}: {', '.join(systems)}." for source, systems in sources.items()]
    lines += [f"- {plain(row.system)}: {plain(row.note)}" for row in theirs if row.note]
    notes = ["Sources and notes:\n\n" + "\n".join(lines)] if lines else []
    return notes if tested else [*notes, "No test results of ours are stored."]


def set_apart(result: Stored) -> list[str]:
    """Return the interval of EM, and EM on complete and on incomplete utterances."""
    low, high = result.metrics.intervals.em
    groups = (result.metrics.breakdown.complete, result.metrics.breakdown.incomplete)
    return [f"{percent(low)} to {percent(high)}", *(percent(group.em if group.n else None) for group in groups)]


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _bold(cell: str) -> str:
    return cell if cell == "-" else f"**{cell}**"
