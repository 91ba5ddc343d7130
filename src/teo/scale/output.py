"""The output of a job: a folder of parts, or one file that the parts are joined into at the end."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from teo.errors import InputError
from teo.scale.inputs import Plan, format_of, require_parquet
from teo.scale.manifest import MANIFEST, State
from teo.scale.stores import Store, is_there, open_store

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Output:
    """The folder of the parts, and the file that they become, if any."""

    folder: str
    file: str | None = None

    @classmethod
    def of(cls, location: str, plan: Plan) -> Output:
        """Return the output of a location: one that ends as a file of the input's format does is a file."""
        base, mark, query = location.partition("?")
        kind = format_of(base)
        if kind is None:
            return cls(location)
        if kind != plan.format:
            raise InputError(f"{location}: expected the input's format, {plan.format}, found {kind}; change the suffix")
        return cls(f"{base}.parts{mark}{query}", location)

    def require_free(self, state: State) -> None:
        """Raise if the file exists and is not from an unfinished job of ours."""
        if self.file and not state.begun and is_there(*open_store(self.file)):
            raise InputError(f"{self.file}: expected a new file, found one; remove it or give another output")

    def require_there(self, joined: Mapping[str, Any] | None) -> None:
        """Raise if a job is finished and its file is gone, or is not the one that was written."""
        if not self.file:
            return
        found = self._describe() if is_there(*open_store(self.file)) else None
        if found is None or found != joined:
            what = "none" if found is None else "one that was changed since"
            raise InputError(
                f"{self.file}: expected the file of a finished job, found {what}; remove {self.folder}/{MANIFEST} to "
                "start anew"
            )

    def join(self, parts: list[str]) -> dict[str, Any]:
        """Write the parts as one file, if one is wanted; returns what the manifest says of it."""
        if self.file is None:
            return {}
        store, path = open_store(self.file)
        if PurePosixPath(parts[0]).suffix == ".parquet":
            store.write(path, _join_tables(store, parts))
        else:
            store.append(path, parts)
        return {"joined": self._describe()}

    def _describe(self) -> dict[str, Any]:
        store, path = open_store(self.file or "")
        digest, size = hashlib.blake2b(digest_size=16), 0
        with store.open(path) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return {"size": size, "digest": digest.hexdigest()}


def _join_tables(store: Store, parts: list[str]) -> bytes:
    """Return one Parquet file of several, each a row group of it."""
    parquet, out = require_parquet("output"), io.BytesIO()
    with store.open(parts[0]) as stream:
        schema = parquet.read_schema(stream)
    with parquet.ParquetWriter(out, schema) as writer:
        for part in parts:
            with store.open(part) as stream:
                table = parquet.read_table(stream)
            if table.schema != schema:
                raise InputError("output: the input files have different columns; give a folder as output")
            writer.write_table(table)
    return out.getvalue()
