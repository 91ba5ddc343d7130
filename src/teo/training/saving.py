"""Writing models whole or not at all: beside their final path, then renamed to it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from teo.errors import InputError, TeoError
from teo.files import write_json
from teo.runtime.torch_codec import Codec

_FULL = ("No space left", "StorageFull", "code: 28", "Disk quota", "file write failed", "unexpected pos")
"""How the libraries' own writers say that the disk is full: they raise other errors than OSError."""
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "writing there is not allowed",
}


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a write that failed for the disk's sake into one clear line; other errors, or those of other files, pass."""
    try:
        yield
    except Exception as error:
        reason = _reason(error)
        if reason is None or _is_elsewhere(error, path):
            raise
        raise TeoError(
            f"{path}: could not be saved ({reason}); what was there before is unharmed; "
            "make room and resume it with --resume"
        ) from error


def _reason(error: Exception) -> str | None:
    if isinstance(error, OSError) and error.errno is not None:
        return _REASONS.get(error.errno)
    return _REASONS[errno.ENOSPC] if any(text in str(error) for text in _FULL) else None


def _is_elsewhere(error: Exception, path: Path) -> bool:
    """Tell whether an error names a file that has nothing to do with writing `path`: data that cannot be read, say."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes | os.PathLike):
        return False
    file, place = Path(os.fsdecode(error.filename)).resolve(), path.resolve()
    written = [place, *(place.with_name(place.name + ending) for ending in _BESIDE)]
    return not place.is_relative_to(file) and not any(file.is_relative_to(own) for own in written)


_BESIDE = (".part", ".old")
_MODEL_FILES = ("teo.json", "config.json", "baseline.json", "graphs.json")
"""Each kind of model folder has one of these."""


@contextmanager
def whole_folder(path: Path, *sources: Path) -> Iterator[Path]:
    """Give a folder to write into, which replaces `path` once all is written, and vanishes otherwise.

    Only an empty folder or a model is replaced, and none of the `sources` that the new one is made from. A link to a
    folder stays, and the folder behind it is replaced; a file or a device is refused.
    """
    path = path.resolve()
    before = path.with_name(path.name + ".old")
    if before.is_dir() and not path.exists():  # a process was killed between the two renames below
        before.rename(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder; give a new name or a folder to replace", str(path))
    for source in map(Path.resolve, sources):
        if path == source or path in source.parents:
            raise InputError(f"{path}: expected another folder than that of the source; give a new name")
    if path.is_dir() and any(path.iterdir()) and not any((path / name).is_file() for name in _MODEL_FILES):
        raise InputError(f"{path}: expected an empty folder or a model to replace, found other files; give a new name")
    beside = path.with_name(path.name + ".part")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        yield beside
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    shutil.rmtree(before, ignore_errors=True)
    if path.exists():
        path.rename(before)
    beside.rename(path)
    shutil.rmtree(before, ignore_errors=True)


def save_weights(model: Any, codec: Codec, path: Path, facts: dict[str, Any] | None = None) -> None:
    """Write a model and its tokenizer as one folder that transformers' Auto classes load."""
    with disk_errors(path), whole_folder(path) as folder:
        model.save_pretrained(folder)
        codec.tokenizer.save_pretrained(folder)
        if facts is not None:
            write_json(folder / "training.json", facts)


def drop_unfinished(folder: Path) -> None:
    """Delete what a killed process left half written, in a folder and those below it."""
    for path in [*folder.rglob("*.part"), *folder.rglob(".teo-*")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
