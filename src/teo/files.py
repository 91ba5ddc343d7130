"""Files that are written whole or not at all: finished under another name, synced, then put in their place.

Also text files that may be packed.
"""

from __future__ import annotations

import errno
import json
import lzma
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from teo.errors import InputError

_MOST_LINKS = 40
"""As many symbolic links as Linux follows."""
_ADVICE = {
    errno.ENOSPC: "free some space or write elsewhere",
    errno.EDQUOT: "free some space or write elsewhere",
    errno.EISDIR: "give the name of a file, not of a folder",
    errno.EPIPE: "keep its reader open",
}


def open_text(path: Path) -> TextIO:
    """Return a text file opened for reading; a name that ends in `.xz` says that it is packed with xz."""
    return lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file under a temporary name, then put it in the place of `path`.

    A failure leaves what was there, and nothing beside it. A symbolic link is followed: its target is replaced, with
    the target's permissions kept. A FIFO, a device, an open descriptor (`/dev/stdout`) or any other special file is
    never replaced: the finished bytes are written into it.
    """
    try:
        if _is_special(path):
            _write_into(path, write)
        else:
            _replace(path.resolve(), write)
    except OSError as error:
        raise InputError(_explain(path, error)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8", newline="\n"))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, _dump(value, indent=1) + "\n")


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Return how many records were written, one a line, whole or not at all."""
    count = 0

    def write(beside: Path) -> None:
        nonlocal count
        with beside.open("wb") as stream:
            for record in records:
                stream.write(json_line(record).encode())
                count += 1

    write_whole(path, write)
    return count


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as a line of JSON."""
    return _dump(record) + "\n"


def _dump(value: Mapping[str, Any], indent: int | None = None) -> str:
    """Return JSON; half a surrogate pair, which UTF-8 cannot hold, stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    return text


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that they outlast a power cut."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk; a system that cannot say so is believed."""
    flags = os.O_RDONLY | (0 if os.name == "posix" else os.O_RDWR)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        if path.is_dir():  # Windows opens no folders
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside a file that may be there already, then take its place; both are on the disk before this returns."""
    beside = path.with_name(f".teo-{secrets.token_hex(6)}{path.suffix}")  # of its own: others may write here too
    try:
        write(beside)
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        sync(beside)  # else a power cut may leave the name without the bytes
        beside.replace(path)
        sync(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _write_into(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a private place first, so that a failure to make the text gives the special file nothing at all."""
    with tempfile.TemporaryDirectory(prefix="teo-") as folder:
        made = Path(folder) / f"made{path.suffix}"
        write(made)
        with made.open("rb") as source, os.fdopen(_open_special(path), "wb") as stream:
            shutil.copyfileobj(source, stream)


def _open_special(path: Path) -> int:
    """Return a descriptor to write with; that of `/dev/stdout` goes on where this process's own output stands."""
    number = _descriptor(path)
    if number is not None:
        return os.dup(number)
    return os.open(path, os.O_WRONLY)  # neither makes a file nor cuts one off


def _is_special(path: Path) -> bool:
    """Tell whether a path is there and must not be replaced: it is no plain file, or an open descriptor."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode) or _descriptor(path) is not None


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path names, itself or through links, as `/dev/stdout` does."""
    own = {Path("/dev/fd"), Path("/proc/self/fd").resolve()}
    for _ in range(_MOST_LINKS):
        folder = path.parent.resolve()
        if folder in own and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = folder / path.readlink()
    return None


def _explain(path: Path, error: OSError) -> str:
    parent = path.parent
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not parent.is_dir():
        return f"{path}: expected an existing folder, found no {parent}; make the folder first"
    reason, advice = error.strerror or str(error), _ADVICE.get(error.errno or 0, "write to a folder that is yours")
    if error.errno == errno.ENOENT:
        reason = f"{parent} takes no new files"
    return f"{path}: cannot be written: {reason}; {advice}"


def read_finished_lines(file: Path) -> list[bytes]:
    """Return the lines of a file that a run appends to; a last line that a stopped run did not finish is cut off."""
    if not file.exists():
        return []
    data = file.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with file.open("r+b") as stream:
            stream.truncate(whole)
    return data[:whole].splitlines()
