"""Where each dataset is published, under which licence, and the checksums of its files: what `registry.toml` holds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.errors import InputError


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file of a dataset; without an address it must be requested."""

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is known of a dataset outside its files."""

    name: str
    title: str
    language: str
    licence: str
    page: str
    citation: str
    files: tuple[PublishedFile, ...]
    remark: str = ""
    """What a download lacks, and where to get it."""


def _read(file: Path) -> dict[str, Dataset]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: Dataset(name, **{**table, "files": tuple(PublishedFile(**each) for each in table["files"])})
        for name, table in tables.items()
    }


REGISTRY: Mapping[str, Dataset] = _read(Path(__file__).with_name("registry.toml"))


def find_dataset(name: str) -> Dataset:
    """Return what is known of a dataset by its name."""
    if name not in REGISTRY:
        raise InputError(f"dataset: expected one of {', '.join(REGISTRY)}; found '{name}'")
    return REGISTRY[name]
