"""The rows of a run: every dataset of its configuration, read, counted and hashed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.data.row import Row
from teo.edits import Operation, Order, format_operations, parse_operations
from teo.errors import DataError
from teo.files import write_jsonl
from teo.training.config import SYNTHETIC, DataSettings, UnchangedSettings
from teo.training.synthetic import write_rows
from teo.training.unchanged import unchanged_rows
from teo.units import replace_surrogates

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RunRows:
    """The rows to train on, how often each is seen in an epoch, and the rows to choose on."""

    train: list[Row] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    dev: list[Row] = field(default_factory=list)
    sources: list[Path] = field(default_factory=list)

    @property
    def texts(self) -> Iterator[str]:
        """Every text of the training rows."""
        for row in self.train:
            yield from (*row.dialogue.history, row.dialogue.utterance, row.rewrite)


def read_rows(
    datasets: Sequence[DataSettings],
    folder: Path,
    unchanged: UnchangedSettings | None = None,
    *,
    seed: int = 0,
    writes: bool = True,
) -> RunRows:
    """Return the rows of all datasets, and the complete utterances made from them, each of these once an epoch.

    The synthetic dataset is written into `folder` first, by one process only.
    """
    rows = RunRows()
    for number, settings in enumerate(datasets):
        if settings.name == SYNTHETIC:
            target = folder / SYNTHETIC if not settings.path else Path(settings.path)
            if writes and not (target / "train.jsonl").is_file():
                write_rows(target)
            settings = replace(settings, name="jsonl", path=str(target))  # noqa: PLW2901
        prefix = f"{number}-{settings.name}:" if len(datasets) > 1 else ""
        train = _read(settings, settings.train, prefix)
        train = train[: settings.rows] if settings.rows else train
        rows.train += train
        rows.repeats += [settings.repeat] * len(train)
        if settings.dev:
            dev = _read(settings, settings.dev, prefix)
            rows.dev += dev[: settings.dev_rows] if settings.dev_rows else dev
        rows.sources.append(Path(settings.path))
    rows.train, rows.dev = name_apart(rows.train), name_apart(rows.dev)
    added = unchanged_rows(rows.train, unchanged or UnchangedSettings(), seed)
    if added:
        logger.info("%d complete utterances added", len(added))
        rows.train = name_apart([*rows.train, *added])
    rows.repeats += [1] * len(added)
    return rows


def _read(settings: DataSettings, split: str, prefix: str) -> list[Row]:
    loaded = load_rows(settings.name, settings.path, split, strict=False, **settings.options)
    for skipped in loaded.skipped:
        logger.warning("skipped: %s", skipped)
    logger.info("%s %s: %d rows from %s", settings.name, split, len(loaded.rows), settings.path)
    return [replace(_without_surrogates(row), id=prefix + replace_surrogates(row.id)) for row in loaded.rows]


def _without_surrogates(row: Row) -> Row:
    """Return the row as tokenizers can read it."""
    dialogue = row.dialogue
    history = tuple(map(replace_surrogates, dialogue.history))
    return replace(
        row,
        dialogue=replace(dialogue, history=history, utterance=replace_surrogates(dialogue.utterance)),
        rewrite=replace_surrogates(row.rewrite),
        references=tuple(map(replace_surrogates, row.references)),
    )


def name_apart(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with an id each: one that another row before has gets a number, as in "7 (2)"."""
    names: set[str] = set()
    numbers: Counter[str] = Counter()
    apart = []
    for row in rows:
        name = row.id
        while name in names:
            numbers[row.id] += 1
            name = f"{row.id} ({numbers[row.id] + 1})"
        names.add(name)
        apart.append(row if name == row.id else replace(row, id=name))
    return apart


def hash_files(sources: Sequence[Path]) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of every file that rows were read from."""
    files = [file for source in sources for file in (sorted(source.rglob("*")) if source.is_dir() else [source])]
    hashed = []
    for file in files:
        if file.is_file():
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            hashed.append({"file": str(file), "bytes": file.stat().st_size, "sha256": digest})
    return hashed


def write_operations(path: Path, rows: Sequence[Row], operations: Sequence[Sequence[Operation]], order: Order) -> None:
    """Write predicted operations as JSONL rows {"id", "operations"}."""
    pairs = zip(rows, operations, strict=True)
    write_jsonl(path, ({"id": row.id, "operations": format_operations(proposed, order)} for row, proposed in pairs))


def read_operations(path: Path) -> dict[str, tuple[Operation, ...]]:
    """Return predicted operations by row id; what is not well formed in them is dropped."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; give predicted operations as JSONL, or leave the key empty")
    operations: dict[str, tuple[Operation, ...]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                proposed = parse_operations(replace_surrogates(row["operations"]))
                operations[replace_surrogates(str(row["id"]))] = proposed.operations
            except (json.JSONDecodeError, KeyError, TypeError):
                found = line.strip()[:60]
                raise DataError(f'{path}:{number}: expected {{"id", "operations"}}, found {found!r}') from None
    return operations
