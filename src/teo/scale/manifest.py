"""The state of a job, in its output: its settings, and which of its parts are done.

    _manifest.json          the model, the settings, the input files; at the end the totals
    _done/part-000000.json  a file for each part that is done
    part-000000.jsonl       the rows of that part

A part is done when its file in `_done` is there and says the hash that the part has. That file is written last, and
everything is written whole or not at all and synced, so a job can be killed, or lose its machine, at any moment. State
that cannot be read counts as not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from teo.errors import InputError, TeoError
from teo.scale.inputs import Format, Plan, require_parquet
from teo.scale.parts import Done, Part
from teo.scale.stores import UNFINISHED, Store
from teo.scale.worker import DONE

MANIFEST = "_manifest.json"
FORMAT_VERSION = 2
LOCK = "_lock"
"""The file that a running job holds a lock on, if its output is on a disk."""
TRIES = "_tries"
"""The folder in which actors note which part they begin, so that one that kills them is not tried for ever."""


class State:
    """A job's output folder."""

    def __init__(self, store: Store, folder: str, kind: Format) -> None:
        self._store, self._folder, self._kind = store, folder.rstrip("/"), kind

    @property
    def begun(self) -> bool:
        """Whether a job was started here."""
        return MANIFEST in self._store.sizes(self._folder)

    def begin(self, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return how a finished job ended (`totals`, `joined`), None if there is work left; another job is refused."""
        files = self._store.sizes(self._folder)
        self._drop_leftovers()
        if MANIFEST in files:
            stored = self._read_json(MANIFEST)
            if stored is not None:
                end: dict[str, Any] = {name: stored.pop(name) for name in ("totals", "joined") if name in stored}
                require_same(self._folder, stored, json.loads(json.dumps(manifest)))
                return end if "totals" in end else None
            self._store.remove(f"{self._folder}/{DONE}")  # nobody knows what those parts were made with
        elif others := [name for name in files if name != LOCK and not name.startswith(UNFINISHED)]:
            raise InputError(
                f"{self._folder}: expected an empty folder or a job to resume, found {sorted(others)[0]} and no "
                f"{MANIFEST}; give another output"
            )
        self._write_manifest(manifest)
        return None

    def abandon(self) -> None:
        """Forget a job of which no part is done, so that the next one may have other settings."""
        self._drop_leftovers()
        self._store.remove(f"{self._folder}/{MANIFEST}")

    def finish(self, manifest: Mapping[str, Any], end: Mapping[str, Any]) -> None:
        """Store how the job ended: it is finished."""
        self._write_manifest({**manifest, **end})

    def done(self, parts: Iterable[Part]) -> dict[int, Done]:
        """Return the parts that are done, by number: those whose file has the size and the hash of its mark."""
        sizes, marks = self._store.sizes(self._folder), self._store.sizes(f"{self._folder}/{DONE}")
        found = {}
        for part in parts:
            if f"{part.stem}.json" in marks and self.file(part) in sizes:
                mark = self._read_json(f"{DONE}/{part.stem}.json")
                done = None if mark is None else Done.from_dict(mark)
                if done is not None and sizes[self.file(part)] == done.size and self._digest(part) == done.digest:
                    found[part.number] = done
        return found

    def check(self, parts: Iterable[Part], done: Mapping[int, Done]) -> None:
        """Raise unless each part, read again, has a row for each row of its input, and is as it was written."""
        for part in parts:
            with self._store.open(self.path(part)) as stream:
                data = stream.read()
            rows = self._count(data)
            digest = hashlib.blake2b(data, digest_size=16).hexdigest()
            if rows != part.rows or digest != done[part.number].digest:
                self._store.remove(f"{self._folder}/{DONE}/{part.stem}.json")
                raise TeoError(
                    f"{self.path(part)}: expected {part.rows} rows as they were written, found {rows} or others; "
                    "run the same command again to make this part anew"
                )

    def clean_up(self, joined: Iterable[Part]) -> None:
        """Remove what a finished job does not need: parts that were joined into one file, and what the killed left.

        The manifest stays, so that the job is known to be finished.
        """
        parts = [self.path(part) for part in joined]
        for path in parts:
            self._store.remove(path)
        if parts:
            self._store.remove(f"{self._folder}/{DONE}")
        self._drop_leftovers()

    def _drop_leftovers(self) -> None:
        """Remove files that a killed process did not finish, and the notes of actors."""
        for folder in (self._folder, f"{self._folder}/{DONE}"):
            for name in self._store.sizes(folder):
                if name.startswith(UNFINISHED):
                    self._store.remove(f"{folder}/{name}")
        self._store.remove(f"{self._folder}/{TRIES}")

    def file(self, part: Part) -> str:
        """Return the name of a part's file."""
        return f"{part.stem}.{self._kind}"

    def path(self, part: Part) -> str:
        """Return the path of a part's file in the store."""
        return f"{self._folder}/{self.file(part)}"

    def _count(self, data: bytes) -> int:
        if self._kind == "jsonl":
            return data.count(b"\n")
        return int(require_parquet("output").ParquetFile(BytesIO(data)).metadata.num_rows)

    def _digest(self, part: Part) -> str:
        with self._store.open(self.path(part)) as stream:
            return hashlib.blake2b(stream.read(), digest_size=16).hexdigest()

    def _read_json(self, name: str) -> dict[str, Any] | None:
        """Return the object of a state file; None if it holds none, as after a power cut."""
        with self._store.open(f"{self._folder}/{name}") as stream:
            data = stream.read()
        try:
            read = json.loads(data)
        except ValueError:
            return None
        return read if isinstance(read, dict) else None

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
        self._store.write(f"{self._folder}/{MANIFEST}", text.encode(errors="backslashreplace"))


def describe_plan(plan: Plan) -> dict[str, Any]:
    """Return what a manifest says of the input."""
    files = [
        {"name": source.name, "rows": source.rows, "size": source.size, "digest": source.digest}
        for source in plan.sources
    ]
    return {"format": plan.format, "rows": plan.rows, "parts": len(plan.parts), "files": files}


def require_same(folder: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise if a job is resumed with other settings; the first difference is named."""
    before, now = dict(_flatten(stored)), dict(_flatten(wanted))
    for key in [*now, *(key for key in before if key not in now)]:
        if before.get(key) != now.get(key):
            raise InputError(
                f"{folder}: expected the job that was started there, found another {key}: {now.get(key)}, "
                f"which was {before.get(key)}; start it as it was, or give another output"
            )


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield f"{path}.count", len(value)
        for number, inner in enumerate(value):
            yield from _flatten(inner, f"{path}[{number}]")
    else:
        yield path, value
