"""VoteStore: a study and its votes in one SQLite file, safe when a process dies and when several write at once.

Every vote is a transaction of its own, on the disk before the rater sees the next item. The file holds the items too:
a study is resumed, and reported, without the files of predictions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teo.errors import InputError
from teo_lab.judging.items import Choice, Item, JudgingStudy, Plan, item_of, item_record

VOTES = "votes.sqlite"
_FORMAT = 1
_PATIENCE = 30.0
"""Seconds that a writer waits for another."""
_TABLES = """\
CREATE TABLE study (plan TEXT NOT NULL);
CREATE TABLE items (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE raters (seat INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE votes (
    seat INTEGER NOT NULL REFERENCES raters (seat),
    item INTEGER NOT NULL REFERENCES items (number),
    choice TEXT NOT NULL CHECK (choice IN ('a', 'b', 'tie')),
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (seat, item)
);"""


@dataclass(frozen=True, slots=True)
class Vote:
    """What a rater chose for an item."""

    seat: int
    item: int
    choice: Choice


class VoteStore:
    """The votes of one study; each call opens the file anew, so any thread or process may make it."""

    def __init__(self, file: Path, study: JudgingStudy) -> None:
        self.file, self.study = file, study

    @classmethod
    def create(cls, folder: Path, study: JudgingStudy) -> VoteStore:
        """Return the store of a study in a folder: a new one, or the one that is there if it is of the same study."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / VOTES
        with _open(file) as database, _writing(database):
            if _version(database) == 0:  # still so, now that nobody else can write
                for statement in _TABLES.split(";\n"):
                    database.execute(statement)
                database.execute("INSERT INTO study VALUES (?)", [json.dumps(asdict(study.plan))])
                records = [(number, json.dumps(item_record(item))) for number, item in enumerate(study.items)]
                database.executemany("INSERT INTO items VALUES (?, ?)", records)
                database.execute(f"PRAGMA user_version = {_FORMAT}")
        store = cls.open(folder)
        store.require(asdict(study.plan))
        return store

    @classmethod
    def open(cls, folder: Path) -> VoteStore:
        """Return the store that a folder holds."""
        file = folder / VOTES
        if not file.is_file():
            raise InputError(
                f"{folder}: expected {VOTES} of a study, found none; start one: teo-lab judge A B, or name its --out"
            )
        with _open(file) as database:
            if _version(database) != _FORMAT:
                raise InputError(f"{file}: expected votes of teo-lab judge in format {_FORMAT}, found something else")
            plan = Plan(**json.loads(database.execute("SELECT plan FROM study").fetchone()[0]))
            records = database.execute("SELECT record FROM items ORDER BY number").fetchall()
        items: tuple[Item, ...] = tuple(item_of(json.loads(record)) for (record,) in records)
        return cls(file, JudgingStudy(plan, items))

    def require(self, wanted: Mapping[str, Any]) -> None:
        """Raise if the stored study was drawn otherwise than wanted."""
        stored = asdict(self.study.plan)
        different = [name for name in wanted if stored[name] != wanted[name]]
        if different:
            listed = ", ".join(f"{name}: {stored[name]!r} there, {wanted[name]!r} asked for" for name in different)
            raise InputError(f"{self.file}: holds another study ({listed}); choose another --out or delete it")

    def seat(self, name: str) -> int:
        """Return the seat of a rater, 1 for the first; a new name takes the next free seat."""
        with _open(self.file) as database, _writing(database):
            found = database.execute("SELECT seat FROM raters WHERE name = ?", [name]).fetchone()
            if found:
                return int(found[0])
            taken = int(database.execute("SELECT count(*) FROM raters").fetchone()[0])
            if taken >= self.study.plan.raters:
                raise InputError(f"all {taken} raters of this study have started; enter the name that you started with")
            database.execute("INSERT INTO raters VALUES (?, ?)", [taken + 1, name])
            return taken + 1

    def vote(self, vote: Vote) -> None:
        """Store a vote; a second vote of the same rater for the same item takes the place of the first."""
        with _open(self.file) as database, _writing(database):
            database.execute(
                "INSERT INTO votes (seat, item, choice) VALUES (?, ?, ?) ON CONFLICT (seat, item) DO UPDATE "
                "SET choice = excluded.choice, at = excluded.at",
                [vote.seat, vote.item, vote.choice],
            )

    def votes(self, seat: int | None = None) -> list[Vote]:
        """Return the votes of a rater, or all, by rater and item."""
        with _open(self.file) as database:
            found = database.execute("SELECT seat, item, choice FROM votes ORDER BY seat, item").fetchall()
        return [Vote(*row) for row in found if seat in (None, row[0])]

    def seats(self) -> list[int]:
        """Return the seats that are taken."""
        with _open(self.file) as database:
            return [row[0] for row in database.execute("SELECT seat FROM raters ORDER BY seat")]


@contextmanager
def _open(file: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection; what SQLite cannot do is one sentence for the user."""
    database = None
    try:
        database = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for each other
        database.execute("PRAGMA synchronous = FULL")  # a vote survives a power cut, not only a dead process
        database.execute("PRAGMA foreign_keys = ON")
        yield database
    except sqlite3.Error as error:
        raise InputError(f"{file}: cannot be used as the votes of a study: {error}") from error
    finally:
        if database is not None:
            database.close()


@contextmanager
def _writing(database: sqlite3.Connection) -> Iterator[None]:
    """Hold the one right to write: all of the block is stored, or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
