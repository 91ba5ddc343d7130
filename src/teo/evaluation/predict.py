"""predict(...): a dataset's rows with their predictions, stored row by row so that a stopped run can resume."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Order, format_operations
from teo.errors import InputError, TeoError
from teo.files import json_line, read_finished_lines, write_json, write_jsonl
from teo.layouts import Truncation
from teo.pipelines import Prediction
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.units import is_exact_match

PREDICTIONS, SETTINGS = "predictions.jsonl", "settings.json"
MEANING = "meaning"
"""The key of a line that holds the verdict by meaning, if the row has keys."""
THRESHOLD_SUFFIX = "+threshold"
"""Ends the name of a variant that was measured with the rules and thresholds of `teo rewrite`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a prediction: a run may only resume with equal settings."""

    data: str
    split: str
    options: dict[str, str]
    data_hash: str
    variant: str
    """The pipeline or ablation; with `THRESHOLD_SUFFIX` if rules and thresholds were applied."""
    model: str
    """The name of the model's folder."""
    model_hash: str
    seed: int
    precision: str
    """fp32, bf16 or int8."""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """A line of `predictions.jsonl`: a row of a dataset, and what was predicted for it."""

    id: str
    history: tuple[str, ...]
    current: str
    reference: str
    prediction: str
    operations: str | None
    """What was proposed, in the paper's notation; None if the variant has no operations."""
    gold_operations: str
    well_formed: bool = True
    scores: Mapping[str, float] = field(default_factory=dict)
    truncated: Truncation = field(default_factory=Truncation)
    detail: Mapping[str, str | int] = field(default_factory=dict)
    """What only some variants have, each under a key of its own in the line."""
    references: tuple[str, ...] = ()
    """Other rewrites that are accepted too; a line has the key if there are any."""

    @classmethod
    def of_prediction(cls, row: Row, prediction: Prediction, order: Order) -> PredictedRow:
        """Return the row with a bare pipeline's or ablation's prediction."""
        return cls(
            *_gold(row),
            prediction.rewrite,
            prediction.operations,
            _gold_operations(row, order),
            prediction.well_formed,
            {name: round(score, 5) for name, score in prediction.scores.items()},
            prediction.truncation,
            prediction.detail,
            row.references,
        )

    @classmethod
    def of_record(cls, row: Row, record: Rewrite, order: Order) -> PredictedRow:
        """Return the row with what a rewriter makes of it."""
        prediction = record.prediction
        if prediction is None:
            gold = _gold_operations(row, order)
            unchanged = cls(*_gold(row), record.rewrite, "", gold, truncated=record.truncated)
            return replace(unchanged, references=row.references)
        predicted = cls.of_prediction(row, prediction, order)
        return replace(predicted, prediction=record.rewrite, truncated=record.truncated)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PredictedRow:
        """Return the row that a line holds; raises KeyError, TypeError or ValueError if it holds something else."""
        known = dict(stored)
        history, truncated = tuple(known.pop("history", ())), Truncation(**known.pop("truncated"))
        references = tuple(known.pop("references", ()))
        names = [name for name in cls.__slots__ if name not in ("history", "truncated", "detail", "references")]
        values = {name: known.pop(name) for name in names}
        return cls(**values, history=history, truncated=truncated, detail=known, references=references)

    def to_dict(self) -> dict[str, Any]:
        """Return the line, ready for JSON."""
        line = asdict(self)
        detail, references = line.pop("detail"), line.pop("references")
        several = {"references": list(references)} if references else {}
        return {**line, "history": list(self.history), **several, **detail}

    @property
    def is_right(self) -> bool:
        """Whether the prediction is an accepted rewrite, as EM counts it."""
        return any(is_exact_match(self.prediction, text) for text in (self.reference, *self.references))


Predictor = Callable[[Sequence[Row]], list[PredictedRow]]
"""What predicts rows: a bare variant, or a rewriter with its rules and thresholds."""


def predict(
    predictor: Predictor,
    rows: Sequence[Row],
    out: Path,
    settings: Settings,
    *,
    chunk: int = 256,
    run: Mapping[str, Any] | None = None,
    progress: TextIO | None = None,
) -> list[PredictedRow]:
    """Return the predicted rows, from `out` if they are there already, else from the model.

    `chunk` rows are predicted and appended at a time; `run` is stored beside the settings and not compared.
    """
    done = resume(out, rows, settings, run or {})
    shown = Progress(len(rows), len(done), progress or sys.stderr)
    for start in range(len(done), len(rows), chunk):
        predicted = predictor(rows[start : start + chunk])
        _append(out / PREDICTIONS, predicted)
        done += predicted
        shown.advance(len(predicted))
    shown.finish()
    return done


def rewrite_rows(rewriter: Rewriter, rows: Sequence[Row], min_confidence: float | None = None) -> list[Rewrite]:
    """Return the record of each row, in order: what a user gets."""
    dialogues = [row.dialogue for row in rows]
    return rewriter.rewrite_many(dialogues, max(1, len(rows)), min_confidence=min_confidence)


def resume(out: Path, rows: Sequence[Row], settings: Settings, run: Mapping[str, Any]) -> list[PredictedRow]:
    """Return the predicted rows that `out` holds for these rows; rows after them are cut off.

    A folder of other settings is refused.
    """
    file = out / PREDICTIONS
    stored = _read_settings(out)
    if stored is not None:
        _require_equal(out, stored, asdict(settings))
    elif file.exists():
        raise InputError(f"{out}: expected {SETTINGS} beside {PREDICTIONS}, found none; choose another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made the output folder: {error.strerror}") from None
    if stored is None:
        write_json(out / SETTINGS, {"settings": asdict(settings), "run": dict(run)})
    done = _read_whole_lines(file)
    for number, (stored_row, row) in enumerate(zip(done, rows, strict=False), start=1):  # --limit may be shorter
        if (stored_row.id, stored_row.current) != (row.id, row.dialogue.utterance):
            raise InputError(f"{file}:{number}: expected the row '{row.id}', found another; choose another --out")
    if len(done) > len(rows):  # the file holds the rows that are measured, and no others
        done = done[: len(rows)]
        write_jsonl(file, (stored_row.to_dict() for stored_row in done))
    return done


def _read_settings(out: Path) -> dict[str, Any] | None:
    file = out / SETTINGS
    if not file.is_file():
        return None
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))["settings"]
    except (ValueError, KeyError, TypeError):
        stored = None
    if not isinstance(stored, dict):
        raise InputError(f"{file}: expected the settings of an earlier run, found something else; choose another --out")
    return stored


def _require_equal(out: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    different = [name for name in wanted if stored.get(name) != wanted[name]]
    if different:
        listed = ", ".join(f"{name}: {stored.get(name)!r} there, {wanted[name]!r} requested" for name in different)
        raise InputError(f"{out}: holds predictions of other settings ({listed}); choose another --out or delete it")


def _read_whole_lines(file: Path) -> list[PredictedRow]:
    """Return the rows of a file; a last line that a stopped run did not finish is cut off."""
    rows = []
    for number, line in enumerate(read_finished_lines(file), start=1):
        try:
            rows.append(PredictedRow.from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            message = f"{file}:{number}: expected a predicted row, found something else; choose another --out"
            raise InputError(message) from None
    return rows


def _append(file: Path, rows: Sequence[PredictedRow]) -> None:
    text = "".join(json_line(row.to_dict()) for row in rows)
    try:
        with file.open("ab") as stream:
            stream.write(text.encode())
    except OSError as error:
        raise TeoError(f"{file}: cannot be written: {error.strerror}; run the command again to resume") from error


class Progress:
    """How far a run is: one line that changes on a terminal, now and then a plain line elsewhere."""

    def __init__(self, total: int, done: int, stream: TextIO) -> None:
        self.total, self.done, self.stream = total, done, stream
        self._first, self._started = done, time.monotonic()
        self._live = stream.isatty()
        self._reported = done
        if done:
            stream.write(
                f"{done} of {total} rows are there already\n" if done < total else "all rows are there already\n"
            )

    def advance(self, rows: int) -> None:
        """Count rows and say so."""
        self.done += rows
        rate = (self.done - self._first) / max(time.monotonic() - self._started, 1e-9)
        text = f"{self.done}/{self.total} rows, {rate:.1f} rows/s"
        if self._live:
            self.stream.write(f"\r{text:<40}")
            self.stream.flush()
        elif self.done - self._reported >= self.total / 10 or self.done == self.total:
            self._reported = self.done
            self.stream.write(f"{text}\n")
            self.stream.flush()

    def finish(self) -> None:
        """End the line."""
        if self._live and self.done > self._first:
            self.stream.write("\n")


def _gold(row: Row) -> tuple[str, tuple[str, ...], str, str]:
    return row.id, row.dialogue.history, row.dialogue.utterance, row.rewrite


def _gold_operations(row: Row, order: Order) -> str:
    return format_operations(derive_edits(row.dialogue.utterance, row.rewrite).operations, order)
