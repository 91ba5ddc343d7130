"""Cache: answers on disk by a hash of their request, so that a stopped run is resumed without paying twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teo.errors import InputError


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer, and what it took."""

    text: str
    """Empty if the endpoint gave none."""
    seconds: float
    """How long the answered request took, failed ones before it not counted."""
    prompt_tokens: int | None = None
    """None if the endpoint does not tell."""
    completion_tokens: int | None = None
    refusal: str = ""
    """Why there is no text, in the endpoint's words."""


class Cache:
    """Completions in an SQLite file; may be used from several threads, and by several processes at once."""

    def __init__(self, file: Path) -> None:
        """Open the file, or make it."""
        self._lock = threading.Lock()
        try:
            self._store = sqlite3.connect(file, timeout=30, check_same_thread=False, isolation_level=None)
            self._store.execute("PRAGMA journal_mode=WAL")
            self._store.execute("CREATE TABLE IF NOT EXISTS completions (request TEXT PRIMARY KEY, completion TEXT)")
        except sqlite3.Error as error:
            raise InputError(f"{file}: expected a cache of completions, found something else ({error})") from error

    def find(self, request: str) -> Completion | None:
        """Return the stored answer to a request; None if there is none."""
        with self._lock:
            found = self._store.execute("SELECT completion FROM completions WHERE request = ?", (request,)).fetchone()
        return Completion(**json.loads(found[0])) if found else None

    def store(self, request: str, completion: Completion) -> None:
        """Keep an answer; it is on disk when this returns."""
        with self._lock:
            self._store.execute(
                "INSERT OR REPLACE INTO completions VALUES (?, ?)", (request, json.dumps(asdict(completion)))
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._store.close()


def hash_request(url: str, body: Mapping[str, Any]) -> str:
    """Return what a request is stored under: a hash of where it goes and what it says, keys left out."""
    return hashlib.blake2b(json.dumps([url, body], sort_keys=True).encode(), digest_size=16).hexdigest()
