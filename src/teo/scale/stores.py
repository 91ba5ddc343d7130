"""Storage: this machine's disks, or any object store that pyarrow's file systems reach.

A location is a path or a URL (`s3://`, `gs://`, `abfs://`, `hdfs://`, `file://`). A store lists files, opens them and
writes them whole or not at all; an object store shows an object only once it was written to its end.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, cast

from teo.errors import InputError, MissingExtraError
from teo.files import make_folder, sync, write_whole

UNFINISHED = ".teo-"
"""The first characters of files that a killed process did not finish (`teo.files.write_whole`)."""
_WILD = re.compile(r"[*?\[]")


class Store(Protocol):
    """Files by their paths, written as in the location that the store was made for."""

    def find(self, pattern: str) -> tuple[str, list[str]]:
        """Return a folder and the files in it that a path names: a file, all files of a folder, or a glob's."""

    def open(self, path: str) -> BinaryIO:
        """Return a file to read, which can be sought in."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole or not at all; its folder is made if it is missing."""

    def append(self, path: str, parts: list[str]) -> None:
        """Write a file whole or not at all, as the files `parts` one after another."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the files of a folder, without those in its folders, by name: how many bytes they have."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if there is none."""


def open_store(location: str) -> tuple[Store, str]:
    """Return the store of a location and the location's path in it."""
    if "://" not in location:
        return LocalStore(), location
    try:
        from pyarrow.fs import FileSystem, LocalFileSystem
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{location}: a URL", str(error.name), "scale") from None
    base, mark, query = location.partition("?")
    wild = _WILD.search(base)
    fixed = base[: base.rindex("/", 0, wild.start()) + 1] if wild else base
    try:
        files, path = FileSystem.from_uri(fixed + mark + query)
    except (OSError, ValueError) as error:
        raise InputError(f"{location}: cannot be opened: {error}; expected a path or a URL such as s3://…") from error
    if wild:
        path = path.rstrip("/") + "/" + base[len(fixed) :]
    if isinstance(files, LocalFileSystem):
        return LocalStore(), path
    return ArrowStore(files), path


def is_there(store: Store, path: str) -> bool:
    """Tell whether a store has a file."""
    return PurePosixPath(path).name in store.sizes(str(PurePosixPath(path).parent))


class LocalStore:
    """The disks of this machine."""

    def find(self, pattern: str) -> tuple[str, list[str]]:
        """Return a folder and the files in it that a path names: a file, all files of a folder, or a glob's."""
        path = Path(pattern)
        if path.is_dir():
            return pattern, _visible(pattern, [str(file) for file in path.rglob("*") if file.is_file()])
        if path.is_file() or not _WILD.search(pattern):
            return str(path.parent), [pattern]
        folder = _fixed_folder(pattern)
        return folder, [file for file in sorted(glob.glob(pattern, recursive=True)) if Path(file).is_file()]  # noqa: PTH207

    def open(self, path: str) -> BinaryIO:
        """Return a file to read, which can be sought in."""
        return Path(path).open("rb")

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole or not at all; its folder is made if it is missing."""
        make_folder(Path(path).parent)
        write_whole(Path(path), lambda beside: beside.write_bytes(data))

    def append(self, path: str, parts: list[str]) -> None:
        """Write a file whole or not at all, as the files `parts` one after another."""

        def write(beside: Path) -> None:
            with beside.open("wb") as out:
                for part in parts:
                    out.write(Path(part).read_bytes())

        write_whole(Path(path), write)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the files of a folder by name: how many bytes they have."""
        try:
            return {file.name: file.stat().st_size for file in Path(folder).iterdir() if file.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        import shutil

        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)
        if Path(path).parent.is_dir():
            sync(Path(path).parent)


class ArrowStore:
    """A file system of pyarrow's."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def find(self, pattern: str) -> tuple[str, list[str]]:
        """Return a folder and the files in it that a path names: a file, all files of a folder, or a glob's."""
        from pyarrow.fs import FileSelector, FileType

        wild = _WILD.search(pattern)
        folder = _fixed_folder(pattern) if wild else pattern
        if not wild and self._files.get_file_info(pattern).type != FileType.Directory:
            return str(PurePosixPath(pattern).parent), [pattern]
        found = self._files.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
        files = [info.path for info in found if info.type == FileType.File]
        if not wild:
            return folder, _visible(folder, files)
        return folder, sorted(file for file in files if matches(file, pattern))

    def open(self, path: str) -> BinaryIO:
        """Return a file to read, which can be sought in."""
        return cast(BinaryIO, io.BufferedReader(self._files.open_input_file(path)))

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole or not at all: an object shows only once it was written to its end."""
        self._files.create_dir(str(PurePosixPath(path).parent), recursive=True)
        with self._output(path) as out:
            out.write(data)

    def append(self, path: str, parts: list[str]) -> None:
        """Write a file as the files `parts` one after another."""
        with self._output(path) as out:
            for part in parts:
                with self._files.open_input_stream(part) as source:
                    out.write(source.read())

    @contextmanager
    def _output(self, path: str) -> Iterator[Any]:
        """Give a stream to write an object with; closing it shows the object, so after a failure it is removed."""
        out = self._files.open_output_stream(path)
        try:
            yield out
        except BaseException:
            with suppress(OSError):
                out.close()
            with suppress(OSError):
                self._files.delete_file(path)
            raise
        out.close()

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the files of a folder by name: how many bytes they have."""
        from pyarrow.fs import FileSelector, FileType

        found = self._files.get_file_info(FileSelector(folder, allow_not_found=True))
        return {info.base_name: info.size for info in found if info.type == FileType.File}

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        from pyarrow.fs import FileType

        kind = self._files.get_file_info(path).type
        if kind == FileType.Directory:
            self._files.delete_dir(path)
        elif kind == FileType.File:
            self._files.delete_file(path)


def _fixed_folder(pattern: str) -> str:
    """Return the folder before the first wild card of a glob."""
    wild = _WILD.search(pattern)
    before = pattern[: wild.start()] if wild else pattern
    return before.rpartition("/")[0] or ("/" if before.startswith("/") else ".")


def _visible(folder: str, files: list[str]) -> list[str]:
    """Return the files of a folder in order, without those that are hidden or in hidden folders (`.` and `_`)."""
    return sorted(
        file
        for file in files
        if not any(name.startswith((".", "_")) for name in PurePosixPath(file).relative_to(folder).parts)
    )


def matches(file: str, pattern: str) -> bool:
    """Tell whether a glob names a file, as `glob.glob` with `recursive=True` does on disk."""
    return _match(PurePosixPath(file).parts, PurePosixPath(pattern).parts)


def _match(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns or not names:
        return names == patterns
    first, rest = patterns[0], patterns[1:]
    if first != "**":
        return _match_name(names[0], first) and _match(names[1:], rest)
    if not rest:
        return not any(name.startswith(".") for name in names)
    return _match(names, rest) or (not names[0].startswith(".") and _match(names[1:], patterns))


def _match_name(name: str, pattern: str) -> bool:
    """Tell whether a name matches; a wild card does not stand for the dot of a hidden name."""
    return fnmatch.fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))
