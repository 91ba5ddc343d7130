"""The state of a job, in its output: what it was asked to do, and which of its parts are done.

    _manifest.json          the model, the settings, the input files; at the end the totals
    _done/part-000000.json  a file for each part that is done
    part-000000.jsonl       the rows of that part

A part is done when its file in `_done` is there. That file is written last, and everything is written whole or not at
all, so a job can be killed at any moment.
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
FORMAT_VERSION = 1


class State:
    """A job's output folder."""

    def __init__(self, store: Store, folder: str, kind: Format) -> None:
        self._store, self._folder, self._kind = store, folder.rstrip("/"), kind

    @property
    def begun(self) -> bool:
        """Whether a job was begun here."""
        return MANIFEST in self._store.sizes(self._folder)

    def begin(self, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the totals of a job that is finished already, None where there is work; another job is refused."""
        files = self._store.sizes(self._folder)
        for name in files:
            if name.startswith(UNFINISHED):
                self._store.remove(f"{self._folder}/{name}")
        for name in self._store.sizes(f"{self._folder}/{DONE}"):
            if name.startswith(UNFINISHED):
                self._store.remove(f"{self._folder}/{DONE}/{name}")
        if MANIFEST in files:
            stored = self._read_json(MANIFEST)
            totals: Mapping[str, Any] | None = stored.pop("totals", None)
            require_same(self._folder, stored, json.loads(json.dumps(manifest)))
            return totals
        if others := [name for name in files if not name.startswith(UNFINISHED)]:
            raise InputError(
                f"{self._folder}: expected an empty folder or a job to go on with, found {sorted(others)[0]} and no "
                f"{MANIFEST}; give another output"
            )
        self._write_manifest(manifest)
        return None

    def finish(self, manifest: Mapping[str, Any], totals: Mapping[str, Any]) -> None:
        """Store the totals: the job is finished."""
        self._write_manifest({**manifest, "totals": totals})

    def done(self, parts: Iterable[Part]) -> dict[int, Done]:
        """Return the parts that are done, by number; one whose file has another size than it had is not."""
        sizes, marks = self._store.sizes(self._folder), self._store.sizes(f"{self._folder}/{DONE}")
        found = {}
        for part in parts:
            if f"{part.stem}.json" in marks:
                done = Done.from_dict(self._read_json(f"{DONE}/{part.stem}.json"))
                if sizes.get(self.file(part)) == done.size:
                    found[part.number] = done
        return found

    def check(self, parts: Iterable[Part], done: Mapping[int, Done]) -> Iterator[Part]:
        """Yield each part after its file was read again: it has a row for each row of the part, and was not changed."""
        for part in parts:
            with self._store.open(self.path(part)) as stream:
                data = stream.read()
            rows = self._count(data)
            digest = hashlib.blake2b(data, digest_size=16).hexdigest()
            if rows != part.rows or digest != done[part.number].digest:
                self._store.remove(f"{self._folder}/{DONE}/{part.stem}.json")
                raise TeoError(
                    f"{self.path(part)}: expected {part.rows} rows as they were written, found {rows} or others; "
                    "start the same command again to make this part anew"
                )
            yield part

    def remove_parts(self, parts: Iterable[Part]) -> None:
        """Remove what was joined into one file; the manifest stays, so that the job is known to be finished."""
        for part in parts:
            self._store.remove(self.path(part))
        self._store.remove(f"{self._folder}/{DONE}")

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

    def _read_json(self, name: str) -> dict[str, Any]:
        with self._store.open(f"{self._folder}/{name}") as stream:
            read: dict[str, Any] = json.loads(stream.read())
        return read

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


def require_same(folder: str, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise where a job is gone on with that was asked for something else; the first difference is named."""
    before, now = dict(_flatten(stored)), dict(_flatten(asked))
    for key in [*now, *(key for key in before if key not in now)]:
        if before.get(key) != now.get(key):
            raise InputError(
                f"{folder}: expected the job that was begun there, found another {key}: {now.get(key)}, "
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
