"""What a dataset holds, beside the paper's table of the same numbers (appendix A, table of dataset statistics)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teo.alignment import derive_edits
from teo.data.files import MissingPartError
from teo.data.loading import find_reader, load_rows
from teo.data.paper_counts import NOTES, PAPER, PaperCounts
from teo.data.reader import Skipped
from teo.data.row import Row
from teo.units import unit_texts

Lengths = tuple[int, int, int]
"""Lengths of the context, the current utterance and the rewrite, as the paper's table has them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over rows; the sums of two sets of rows add up."""

    rows: int = 0
    complete: int = 0
    units: Lengths = (0, 0, 0)
    characters: Lengths = (0, 0, 0)
    insertions: int = 0
    replacements: int = 0
    deletions: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.rows + other.rows,
            self.complete + other.complete,
            _add(self.units, other.units),
            _add(self.characters, other.characters),
            self.insertions + other.insertions,
            self.replacements + other.replacements,
            self.deletions + other.deletions,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that the table shows: averages and shares instead of sums."""
        rows = max(self.rows, 1)
        averages = {
            f"avg_{piece}_{kind}": sums[index] / rows
            for kind, sums in (("units", self.units), ("characters", self.characters))
            for index, piece in enumerate(("context", "current", "rewrite"))
        }
        return {
            "rows": self.rows,
            **averages,
            "insertions": self.insertions,
            "replacements": self.replacements,
            "deletions": self.deletions,
            "complete": self.complete / rows,
        }


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Our numbers by split, the paper's, and why they differ."""

    name: str
    splits: Mapping[str, Counts]
    skipped: tuple[Skipped, ...]
    paper: PaperCounts | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        paper = self.paper and {name: getattr(self.paper, name) for name in PaperCounts.__slots__}
        return {
            "name": self.name,
            "splits": {split: counts.to_dict() for split, counts in self.splits.items()},
            "skipped": [str(item) for item in self.skipped],
            "paper": paper,
            "notes": list(self.notes),
        }


def count_rows(rows: Iterable[Row]) -> Counts:
    """Return the sums over rows."""
    total = Counts()
    for row in rows:
        total += _count_row(row)
    return total


def dataset_stats(name: str, path: str | Path, *, strict: bool = False, **options: str) -> DatasetStats:
    """Return the numbers of every split that the files can give, and of all of them together."""
    parts = find_reader(name).splits(Path(path))
    wanted = ("train", "dev", "test") if len(parts["all"]) > 1 else ("all",)
    splits: dict[str, Counts] = {}
    skipped: dict[Skipped, None] = {}  # an ordered set: train and dev report the malformed rows of one file
    for split in wanted:
        try:
            loaded = load_rows(name, path, split, strict=strict, **options)
        except MissingPartError:
            if split == wanted[-1] and not splits:
                raise
            continue
        splits[split] = count_rows(loaded.rows)
        skipped |= dict.fromkeys(loaded.skipped)
    if "all" not in splits:
        splits["all"] = sum(splits.values(), Counts())
    return DatasetStats(name, splits, tuple(skipped), PAPER.get(name), NOTES.get(name, ()))


def format_stats(stats: DatasetStats) -> str:
    """Return the numbers as an aligned table, the paper's column last, then the notes."""
    shown = {split: counts.to_dict() for split, counts in stats.splits.items()}
    paper = _paper_cells(stats.paper)
    lines = [_line(stats.name, list(shown), "paper" if stats.paper else "")]
    for key in next(iter(shown.values())):
        label = key.replace("avg_", "average ").replace("_", " ").replace("deletions", "pure deletions")
        cells = [_cell(key, values[key]) for values in shown.values()]
        lines.append(_line(label, cells, paper.get(key, "")))
    lines.append(_line("skipped (malformed)", [""] * (len(shown) - 1) + [str(len(stats.skipped))], ""))
    return "\n".join([*lines, *(f"\n{note}" for note in stats.notes)])


def _count_row(row: Row) -> Counts:
    operations = derive_edits(row.dialogue.utterance, row.rewrite).operations
    texts = (row.dialogue.history, (row.dialogue.utterance,), (row.rewrite,))
    context, current, rewrite = (sum(len(unit_texts(text)) for text in part) for part in texts)
    characters = (sum(map(len, row.dialogue.history)), len(row.dialogue.utterance), len(row.rewrite))
    insertions = sum(operation.is_insertion for operation in operations)
    deletions = sum(not operation.new for operation in operations)
    replacements = len(operations) - insertions - deletions
    units = (context, current, rewrite)
    return Counts(1, int(row.is_complete), units, characters, insertions, replacements, deletions)


def _add(first: Lengths, second: Lengths) -> Lengths:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def _paper_cells(paper: PaperCounts | None) -> dict[str, str]:
    if paper is None:
        return {}
    lengths = {f"avg_{piece}_units": str(getattr(paper, piece)) for piece in ("context", "current", "rewrite")}
    counts = {name: f"{getattr(paper, name):,}" for name in ("insertions", "replacements")}
    return {"rows": paper.rows, **lengths, **counts}


def _cell(key: str, value: float) -> str:
    if key == "complete":
        return f"{value:.1%}"
    return f"{value:.2f}" if key.startswith("avg_") else f"{value:,}"


def _line(label: str, cells: list[str], paper: str) -> str:
    return f"{label:<28}{''.join(f'{cell:>10}' for cell in cells)}{paper:>20}".rstrip()
