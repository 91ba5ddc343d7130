"""Evaluations kept without the dataset's text: metrics as they are, and per row what says how it went.

Of a folder that `teo evaluate` wrote, the metrics are copied as DATASET-SPLIT-VARIANT.json, and the predictions as
DATASET-SPLIT-VARIANT.rows.jsonl.gz: per row its id, whether it was right and changed, whether its operations were right
if it has any, the log-probability, and a hash of the predicted text, by which a repeated run can be checked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teo.errors import InputError
from teo.evaluation.analysis import operations_match
from teo.evaluation.predict import PREDICTIONS
from teo.files import write_json, write_whole
from teo.units import is_exact_match

ROWS = ".rows.jsonl.gz"
"""How the name of the rows' file ends."""


def store(folder: Path, run: Path) -> Path:
    """Write a run's metrics and its rows without text into a folder, and return the metrics' file."""
    metrics = _read(run / "metrics.json")
    predictions = run / PREDICTIONS
    if not predictions.is_file():
        raise InputError(f"{predictions}: no such file; give the folder that teo evaluate wrote")
    settings = metrics["settings"]
    name = f"{settings['data']}-{settings['split']}-{settings['variant']}"
    rows = "".join(json.dumps(row) + "\n" for row in _bare_rows(predictions, metrics.get("n")))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}{ROWS}"
    packed = gzip.compress(rows.encode(), mtime=0)  # equal rows give equal bytes
    write_whole(target, lambda beside: beside.write_bytes(packed))
    write_json(folder / f"{name}.json", metrics)
    return folder / f"{name}.json"


def _bare_rows(predictions: Path, count: int | None) -> list[dict[str, Any]]:
    """Return what may be stored of all predicted rows; torn ones, or another number than was counted, are refused."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(predictions.read_bytes().splitlines(), 1):
        try:
            rows.append(bare_row(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{predictions}:{number}: expected a row that teo evaluate wrote ({type(error).__name__}: {error}); "
                "run it again"
            ) from None
    if count is not None and len(rows) != count:
        raise InputError(
            f"{predictions}: expected {count} rows, as metrics.json has them, found {len(rows)}; run teo evaluate again"
        )
    return rows


def bare_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be stored of a predicted row."""
    text, accepted = record["prediction"], (record["reference"], *record.get("references", ()))
    proposed = record.get("operations")
    known = {} if proposed is None else {"operations_right": operations_match(proposed, record["gold_operations"])}
    return {
        "id": record["id"],
        "right": any(is_exact_match(text, reference) for reference in accepted),
        **known,
        "changed": not is_exact_match(text, record["current"]),
        "score": round(sum(record["scores"].values()), 4),
        "hash": hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        metrics = json.loads(path.read_text(encoding="utf-8"))
        return {**metrics, "settings": dict(metrics["settings"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: expected the metrics that teo evaluate wrote ({error})") from None


def read_right(metrics: Path) -> dict[str, bool]:
    """Return by id whether each stored row was right; `metrics` is the file that `store` returned."""
    return _read_rows(metrics, "right")


def read_operations_right(metrics: Path) -> dict[str, bool]:
    """Return by id whether the operations of each stored row were right."""
    return _read_rows(metrics, "operations_right")


def _read_rows(metrics: Path, key: str) -> dict[str, bool]:
    packed = metrics.with_name(metrics.name.removesuffix(".json") + ROWS)
    try:
        lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
        return {record["id"]: bool(record[key]) for record in map(json.loads, lines)}
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{packed}: expected the rows that were stored beside the metrics ({error})") from None
