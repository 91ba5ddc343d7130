"""Sheets to read by meaning: what a model makes of development rows, and the verdicts of those who read it.

A verdict is stored by the row's id and the fingerprint of the rewrite, so that no text of a dataset is stored and
another model takes over what was already read. `make_sheets` writes what is left to read, `take_verdicts` stores what
the readers said, and `judged_rows` gives the rows with all verdicts, as `teo calibrate` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from teo.data import load_rows
from teo.data.row import MeaningKeys, Row, fingerprint
from teo.errors import DataError, InputError
from teo.files import write_jsonl
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.units import is_exact_match
from teo_lab.paths import EVERYDAY, RESULTS
from teo_lab.rows.mudoco import mudoco_rows

Reading = Literal["right", "partly", "wrong"]
VERDICTS: tuple[Reading, ...] = get_args(Reading)
JUDGED = RESULTS / "judged"
DATASETS = ("rewrite", "res200k", "task", "canard", "mudoco")
SETS = (*(f"everyday-{part}-{language}" for part in ("dev", "held") for language in ("en", "zh")), *DATASETS)
"""The development rows whose rewrites are read; `everyday-test-en` and `-zh` are the benchmark, read once a release."""
_PART = 256
"""Rows that a model rewrites at once."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict: on which rewrite of which row, of which model, by how many readers."""

    id: str
    rewrite: str
    """The fingerprint of the rewrite."""
    verdict: Reading
    model: str
    readers: int = 1
    """0 if it equals an accepted rewrite."""


def load_set(name: str, data: Path) -> list[Row]:
    """Return the rows of a set; `data` is the folder of the published datasets."""
    if name.startswith("everyday-"):
        _, part, language = name.split("-")
        folder = EVERYDAY if part == "test" else EVERYDAY / part
        return list(load_rows("jsonl", folder / f"{language}.jsonl", "all").rows)
    if name == "mudoco":
        return list(mudoco_rows(data / name / "dev.jsonl", "dev"))
    if name not in DATASETS:
        raise InputError(f"set: expected one of {', '.join(SETS)}; found '{name}'")
    return list(load_rows(name, data / name, "dev").rows)


def read_judged(name: str, folder: Path = JUDGED) -> dict[tuple[str, str], Judged]:
    """Return the stored verdicts of a set by row and fingerprint."""
    file = folder / f"{name}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = [Judged(**json.loads(line)) for line in lines]
    return {(one.id, one.rewrite): one for one in found}


def judged_rows(name: str, data: Path, folder: Path = JUDGED) -> Iterator[Row]:
    """Yield the rows of a set with all verdicts on their rewrites."""
    by_row: dict[str, list[tuple[str, bool]]] = {}
    for one in read_judged(name, folder).values():
        by_row.setdefault(one.id, []).append((one.rewrite, one.verdict == "right"))
    for row in load_set(name, data):
        keys = row.keys or MeaningKeys()
        yield replace(row, keys=replace(keys, judged=tuple(by_row.get(row.id, ()))))


def sampled_rows(name: str, data: Path, rewriter: Rewriter, sample: int, folder: Path = JUDGED) -> Iterator[Row]:
    """Yield the rows of a set with all verdicts, up to the last one whose rewrite was in a sample of N.

    Of the rows after it only unchanged ones could be graded, and a confidence fitted to these would be wrong.
    """
    changed = 0
    for row, result in _propose(rewriter, judged_rows(name, data, folder)):
        yield row
        changed += result.changed
        if changed == sample:
            return


def make_sheets(
    rewriter: Rewriter, names: Sequence[str], data: Path, out: Path, sample: int = 0, folder: Path = JUDGED
) -> dict[str, int]:
    """Write a sheet of each set with the rewrites that nobody has read, and return how many each has.

    A rewrite that equals an accepted one needs no reader: it is stored as right at once. With a `sample`, N rewrites of
    each set are judged, those whose rows come first by a hash of their ids, so that models share most of them.
    """
    counts = {}
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        known = read_judged(name, folder)
        proposed = _propose(rewriter, load_set(name, data))
        changed = ((row, result.rewrite) for row, result in proposed if result.changed)
        unread = []
        for row, text in islice(changed, sample or None):
            key = (row.id, fingerprint(text))
            if _is_accepted(row, text):
                known.setdefault(key, Judged(*key, "right", rewriter.name, readers=0))
            elif key not in known:
                unread.append(_item(row, text))
        write_judged(name, known.values(), folder)
        counts[name] = write_jsonl(out / f"{name}.jsonl", unread)
    return counts


def take_verdicts(
    name: str, sheet: Path, readings: Sequence[Path], model: str, folder: Path = JUDGED
) -> tuple[int, list[str]]:
    """Store the verdicts of a sheet's readers, and return how many, and the ids on which readers differ.

    A file of readings has a line `NUMBER VERDICT` for each line of the sheet. Where readers differ, the last file
    decides: let it be the one of whoever adjudicated.
    """
    items = [json.loads(line) for line in sheet.read_text(encoding="utf-8").splitlines()]
    read = [read_verdicts(file, len(items)) for file in readings]
    known = read_judged(name, folder)
    differing = []
    for number, item in enumerate(items, 1):
        verdicts = [verdicts[number] for verdicts in read]
        if len(set(verdicts)) > 1:
            differing.append(str(item["id"]))
        one = Judged(str(item["id"]), fingerprint(item["rewrite"]), verdicts[-1], model, len(verdicts))
        known[one.id, one.rewrite] = one
    write_judged(name, known.values(), folder)
    return len(items), differing


def write_judged(name: str, verdicts: Iterable[Judged], folder: Path = JUDGED) -> None:
    """Write the verdicts of a set, in the order of their rows' ids."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(verdicts, key=lambda one: (one.id, one.rewrite))
    fields = ("id", "rewrite", "verdict", "model", "readers")
    write_jsonl(folder / f"{name}.jsonl", ({field: getattr(one, field) for field in fields} for one in ordered))


def read_verdicts(file: Path, count: int) -> Mapping[int, Reading]:
    """Return the verdicts of one reader by the number of the sheet's line."""
    found: dict[int, Reading] = {}
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        number, _, verdict = text.strip().partition(" ")
        chosen = next((each for each in VERDICTS if each == verdict), None)
        if chosen is None or not number.isdigit() or not 1 <= int(number) <= count:
            raise DataError(
                f"{file}:{line}: expected a number from 1 to {count} and one of {', '.join(VERDICTS)}, found {text!r}"
            )
        found[int(number)] = chosen
    if missing := [number for number in range(1, count + 1) if number not in found]:
        raise DataError(f"{file}: expected a verdict for each of {count} lines, found none for line {missing[0]}")
    return found


def _propose(rewriter: Rewriter, rows: Iterable[Row]) -> Iterator[tuple[Row, Rewrite]]:
    """Yield rows in the order in which samples are drawn from them, each with what a model makes of it.

    The model rewrites a part of them at a time, so that a small sample of a large set takes no longer than it must.
    """
    ordered = sorted(rows, key=lambda row: fingerprint(row.id))
    for start in range(0, len(ordered), _PART):
        part = ordered[start : start + _PART]
        records = rewriter.rewrite_many([row.dialogue for row in part], min_confidence=0.0)
        yield from zip(part, records, strict=True)


def _item(row: Row, rewrite: str) -> dict[str, object]:
    return {
        "id": row.id,
        "history": list(row.dialogue.history),
        "utterance": row.dialogue.utterance,
        "rewrite": rewrite,
        "accepted": row.rewrite,
    }


def _is_accepted(row: Row, rewrite: str) -> bool:
    return any(is_exact_match(rewrite, text) for text in (row.rewrite, *row.references))
