"""predict(...): a variant's rewrites of a dataset, written row by row so that a stopped run goes on where it was."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Order, format_operations
from teo.errors import InputError, TeoError
from teo.files import write_json
from teo.pipelines import Prediction, Variant
from teo.stages import Cast

PREDICTIONS, SETTINGS = "predictions.jsonl", "settings.json"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a prediction: with equal settings a run may go on, with others it must not."""

    data: str
    split: str
    options: dict[str, str]
    data_hash: str
    variant: str
    model: str
    """The name of the model's folder."""
    model_hash: str
    seed: int
    precision: str
    """fp32, bf16 or int8."""


def predict(
    cast: Cast,
    variant: Variant,
    rows: Sequence[Row],
    out: Path,
    settings: Settings,
    *,
    chunk: int = 256,
    run: Mapping[str, Any] | None = None,
    progress: TextIO | None = None,
) -> list[Record]:
    """Return the predictions of the rows, from `out` where they are there already, from the model where not.

    `chunk` rows are predicted and appended at a time; `run` is stored beside the settings and not compared.
    """
    done = resume(out, rows, settings, run or {})
    shown = Progress(len(rows), len(done), progress or sys.stderr)
    for start in range(len(done), len(rows), chunk):
        part = rows[start : start + chunk]
        predictions = variant.run(cast, part, settings.seed)
        records = [as_record(row, one, cast.order) for row, one in zip(part, predictions, strict=True)]
        _append(out / PREDICTIONS, records)
        done += records
        shown.advance(len(records))
    shown.finish()
    return done[: len(rows)]


def as_record(row: Row, prediction: Prediction, order: Order) -> Record:
    """Return the line of `predictions.jsonl` for one row."""
    gold = derive_edits(row.dialogue.utterance, row.rewrite).operations
    truncation = prediction.truncation
    return {
        "id": row.id,
        "history": list(row.dialogue.history),
        "current": row.dialogue.utterance,
        "reference": row.rewrite,
        "prediction": prediction.rewrite,
        "operations": prediction.operations,
        "gold_operations": format_operations(gold, order),
        "well_formed": prediction.well_formed,
        "scores": {name: round(score, 5) for name, score in prediction.scores.items()},
        "truncated": {"turns": truncation.turns, "characters": truncation.characters},
        **prediction.detail,
    }


def resume(out: Path, rows: Sequence[Row], settings: Settings, run: Mapping[str, Any]) -> list[Record]:
    """Return the predictions that `out` holds for these rows; a folder of other settings is refused."""
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
    for number, (record, row) in enumerate(zip(done, rows, strict=False), start=1):  # --limit may be shorter
        if record.get("id") != row.id or record.get("current") != row.dialogue.utterance:
            raise InputError(f"{file}:{number}: expected the row '{row.id}', found another; choose another --out")
    return done


def _read_settings(out: Path) -> Record | None:
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


def _require_equal(out: Path, stored: Record, wanted: Record) -> None:
    different = [name for name in wanted if stored.get(name) != wanted[name]]
    if different:
        listed = ", ".join(f"{name}: {stored.get(name)!r} there, {wanted[name]!r} asked for" for name in different)
        raise InputError(f"{out}: holds predictions of other settings ({listed}); choose another --out or delete it")


def _read_whole_lines(file: Path) -> list[Record]:
    """Return the rows of a file; a last line that a stopped run did not finish is cut off."""
    if not file.exists():
        return []
    data = file.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with file.open("r+b") as stream:
            stream.truncate(whole)
    records = []
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise InputError(f"{file}:{number}: expected a JSON object, found something else; choose another --out")
        records.append(record)
    return records


def _append(file: Path, records: Sequence[Record]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    try:
        with file.open("ab") as stream:
            stream.write(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise TeoError(f"{file}: cannot be written: {error.strerror}; run again to go on from here") from error


class Progress:
    """How far a run is: one line that changes on a terminal, now and then a plain line elsewhere."""

    def __init__(self, total: int, done: int, stream: TextIO) -> None:
        self.total, self.done, self.stream = total, done, stream
        self._first, self._started = done, time.monotonic()
        self._live = stream.isatty()
        self._said = done
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
        elif self.done - self._said >= self.total / 10 or self.done == self.total:
            self._said = self.done
            self.stream.write(f"{text}\n")
            self.stream.flush()

    def finish(self) -> None:
        """End the line."""
        if self._live and self.done > self._first:
            self.stream.write("\n")
