"""Writing models whole or not at all: beside their place, then renamed into it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from teo.errors import TeoError
from teo.files import write_json
from teo.runtime.torch_codec import Codec

COMPLETE = "complete"
"""The file that a checkpoint gets last; one without it was cut short."""
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
    """Turn a write that failed for the disk's sake into one clear line; other errors pass."""
    try:
        yield
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise TeoError(
            f"{path}: could not be saved ({reason}); what was there before is unharmed; "
            "make room and go on with --resume"
        ) from error


def _reason(error: Exception) -> str | None:
    if isinstance(error, OSError) and error.errno is not None:
        return _REASONS.get(error.errno)
    return _REASONS[errno.ENOSPC] if any(text in str(error) for text in _FULL) else None


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write into, which takes the place of `path` once all is written, and vanishes otherwise.

    A link to a folder stays, and the folder behind it is replaced; a file or a device is refused.
    """
    path = path.resolve()
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder; give a new name or a folder to replace", str(path))
    beside = path.with_name(path.name + ".part")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        yield beside
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    before = path.with_name(path.name + ".old")
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


def complete_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints that were written to their end, the oldest first."""
    found = [path for path in folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def drop_checkpoints(folder: Path, keep: Path | None = None) -> None:
    """Delete checkpoints, all but one."""
    for path in folder.glob("checkpoint-*"):
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)


def drop_incomplete(folder: Path) -> None:
    """Delete what was cut short."""
    whole = set(complete_checkpoints(folder))
    for path in [*folder.glob("checkpoint-*"), *folder.glob("*.part")]:
        if path not in whole and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
