"""`python -m teo.evaluation.store RESULTS/MODEL RUN ...`: keep evaluations without keeping the dataset's text.

Of each run's folder the metrics are copied as DATASET-SPLIT-VARIANT.json, and its predictions as
DATASET-SPLIT-VARIANT.rows.jsonl.gz: per row its id, whether it was right and changed, the log-probability, and a hash
of the predicted text, by which a repeated run can be checked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.errors import InputError, exit_status
from teo.evaluation.predict import PREDICTIONS
from teo.files import write_json, write_whole
from teo.units import is_exact_match


def store(folder: Path, run: Path) -> Path:
    """Write a run's metrics and its rows without text into a folder, and return the metrics' file."""
    metrics = _read(run / "metrics.json")
    predictions = run / PREDICTIONS
    if not predictions.is_file():
        raise InputError(f"{predictions}: no such file; give the folder that teo evaluate wrote")
    settings = metrics["settings"]
    name = f"{settings['data']}-{settings['split']}-{settings['variant']}"
    folder.mkdir(parents=True, exist_ok=True)
    with predictions.open(encoding="utf-8") as lines:
        rows = "".join(json.dumps(bare_row(json.loads(line))) + "\n" for line in lines)
    target = folder / f"{name}.rows.jsonl.gz"
    packed = gzip.compress(rows.encode(), mtime=0)  # equal rows give equal bytes
    write_whole(target, lambda beside: beside.write_bytes(packed))
    write_json(folder / f"{name}.json", metrics)
    return folder / f"{name}.json"


def bare_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be kept of a predicted row."""
    text = record["prediction"]
    return {
        "id": record["id"],
        "right": is_exact_match(text, record["reference"]),
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


def main(arguments: Sequence[str]) -> int:
    """Run the command; a known error is one line on stderr and its exit status."""
    return exit_status(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> None:
    if len(arguments) < 2:
        raise InputError("expected folders: python -m teo.evaluation.store RESULTS/MODEL RUN ...")
    for run in arguments[1:]:
        sys.stdout.write(f"{store(Path(arguments[0]), Path(run))}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
