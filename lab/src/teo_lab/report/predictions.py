"""Predicted rows for the page: from files of predictions, or from stored rows with or without the datasets' text."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.edits import EditScript
from teo.errors import InputError
from teo.evaluation.analysis import operations_match
from teo.evaluation.predict import SETTINGS, PredictedRow
from teo.files import read_finished_lines
from teo.metrics.base import ScoredExample
from teo.metrics.breakdown import kind_of
from teo.units import scoring_units
from teo_lab.reproduce.stored import Stored
from teo_lab.reproduce.stored_rows import ROWS

Change = Literal["keep", "gone", "new"]


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row as the explorer shows it; what is not known is None or empty."""

    id: str
    right: bool
    stage1_right: bool | None = None
    kind: str | None = None
    """What the utterance needs, one of `teo.metrics.breakdown.KINDS`."""
    length: int | None = None
    """Units of the utterance."""
    confidence: float | None = None
    """The model's probability of its own output."""
    history: tuple[str, ...] = ()
    utterance: str = ""
    prediction: str | None = None
    reference: str | None = None
    operations: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the row for the page's script, without what is not known."""
        row: dict[str, Any] = {"id": self.id, "right": self.right, "stage1": self.stage1_right, "kind": self.kind}
        row |= {"length": self.length, "confidence": self.confidence, "history": list(self.history)}
        row |= {"reference": self.reference, "operations": self.operations}
        if self.prediction is not None:
            row["changes"] = split_changes(self.utterance, self.prediction)
        elif self.utterance:
            row["utterance"] = self.utterance
        return {name: value for name, value in row.items() if value not in (None, [], "")}


@dataclass(frozen=True, slots=True)
class PredictedSystem:
    """The rows that one system predicted."""

    name: str
    dataset: str
    rows: tuple[ShownRow, ...]

    @property
    def has_text(self) -> bool:
        """Whether its rows can be read."""
        return any(row.utterance for row in self.rows)


def split_changes(utterance: str, prediction: str) -> list[tuple[Change, str]]:
    """Return the rewrite as runs of text that were kept, taken out or put in."""
    script: EditScript = derive_edits(utterance, prediction)
    runs: list[tuple[Change, str]] = []
    reached = 0
    for edit in script.to_dicts():
        start, end = int(edit["start"]), int(edit["end"])
        pieces: list[tuple[Change, str]] = [
            ("keep", utterance[reached:start]),
            ("gone", str(edit["old"])),
            ("new", str(edit["new"])),
        ]
        runs += [piece for piece in pieces if piece[1]]
        reached = end
    return [*runs, ("keep", utterance[reached:])] if utterance[reached:] else runs


def read_predictions(files: Sequence[Path]) -> list[PredictedSystem]:
    """Return the systems of files that `teo evaluate` wrote."""
    return [_read_file(file) for file in files]


def read_stored(results: Path, stored: Stored, data: Path | None) -> PredictedSystem:
    """Return a stored evaluation's rows, with the dataset's text if its folder is given."""
    packed = results.parent / (stored.file.removesuffix(".json") + ROWS)
    try:
        bare = [json.loads(line) for line in gzip.decompress(packed.read_bytes()).decode().splitlines()]
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{packed}: expected the rows that were stored beside the metrics ({error})") from None
    settings = stored.settings
    texts: dict[str, Row] = {}
    if data is not None and (data / settings.data).is_dir():
        options: dict[str, Any] = dict(settings.options)
        texts = {row.id: row for row in load_rows(settings.data, data / settings.data, "test", **options).rows}
    rows = tuple(_of_stored(record, texts.get(record["id"])) for record in bare)
    return PredictedSystem(f"{stored.model}, {settings.variant} on {settings.data}", settings.data, rows)


def _read_file(file: Path) -> PredictedSystem:
    if not file.is_file():
        raise InputError(f"{file}: no such file; expected the predictions.jsonl of teo evaluate")
    rows = []
    for number, line in enumerate(read_finished_lines(file), start=1):
        try:
            rows.append(_of_prediction(PredictedRow.from_dict(json.loads(line))))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file}:{number}: expected a line of teo evaluate, found another ({error})") from None
    if not rows:
        raise InputError(f"{file}: expected predicted rows, found none")
    settings = _settings(file)
    name = f"{settings['model']}, {settings['variant']} on {settings['data']}" if settings else file.parent.name
    return PredictedSystem(name, settings.get("data", file.parent.name), tuple(rows))


def _settings(file: Path) -> Mapping[str, str]:
    """Return what `teo evaluate` wrote beside the predictions about what made them; nothing if there is no file."""
    try:
        settings = json.loads(file.with_name(SETTINGS).read_text(encoding="utf-8"))["settings"]
        return {name: str(settings[name]) for name in ("model", "variant", "data")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _of_prediction(row: PredictedRow) -> ShownRow:
    score = sum(row.scores.values()) if row.scores else None
    stage1 = None if row.operations is None else operations_match(row.operations, row.gold_operations)
    return ShownRow(
        row.id,
        row.is_right,
        stage1,
        *_needs(row.current, row.reference),
        None if score is None else _probability(score),
        row.history,
        row.current,
        row.prediction,
        row.reference,
        row.operations,
    )


def _of_stored(record: Mapping[str, Any], row: Row | None) -> ShownRow:
    """Return a stored row: its prediction is known if it was right or nothing was changed."""
    confidence = _probability(record["score"])
    if row is None:
        return ShownRow(record["id"], record["right"], confidence=confidence)
    current, gold = row.dialogue.utterance, row.rewrite
    known = gold if record["right"] else None if record["changed"] else current
    needs = _needs(current, gold)
    return ShownRow(record["id"], record["right"], None, *needs, confidence, row.dialogue.history, current, known, gold)


def _needs(current: str, reference: str) -> tuple[str, int]:
    """Return what an utterance needs, and its length."""
    units = tuple(scoring_units(current))
    gold = tuple(scoring_units(reference))
    return kind_of(ScoredExample(units, gold, gold)), len(units)


def _probability(score: float) -> float:
    return round(math.exp(min(score, 0.0)), 4)
