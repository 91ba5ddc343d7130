"""Downloads a dataset's files under a temporary name, resumes unfinished ones, and checks them before use."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from teo.data.registry import Dataset, PublishedFile
from teo.errors import TeoError

MIRROR_VARIABLE = "TEO_DATA_MIRROR"
"""An address that serves <dataset>/<file> instead of the published ones."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far, and the bytes in all if the server says so."""

_CHUNK = 1 << 16
_TIMEOUT = 30.0
_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 206, 416


class DownloadError(TeoError):
    """A file could not be fetched, or is not the file that was expected."""


def download_dataset(dataset: Dataset, folder: Path, *, base: str | None = None) -> list[Path]:
    """Return the files that are now in the folder: every file of the dataset that has an address."""
    base = base or os.environ.get(MIRROR_VARIABLE)
    fetched = []
    for file in dataset.files:
        url = f"{base.rstrip('/')}/{dataset.name}/{file.name}" if base else file.url
        if url and file.url:
            fetched.append(download_file(file, url, folder, page=dataset.page))
    return fetched


def download_file(
    file: PublishedFile, url: str, folder: Path, *, page: str = "", progress: Progress | None = None
) -> Path:
    """Return the path of the file once it is there and its checksum is right; an unfinished one is `<name>.part`."""
    target = folder / file.name
    if target.is_file():
        if _checksum(target) == file.sha256:
            return target
        raise DownloadError(
            f"{target}: a file with other content is there already; move it away or choose another folder"
        )
    part = target.with_name(f"{target.name}.part")
    with _folder_for(target):
        _fetch(url, part, page, progress)
    found = _checksum(part)
    if found != file.sha256:
        part.unlink()
        raise DownloadError(
            f"{url}: expected a file with SHA-256 {file.sha256[:12]}..., found {found[:12]}...; it was discarded: "
            f"try again, and if it happens again the published file has changed{f', see {page}' if page else ''}"
        )
    part.replace(target)
    return target


@contextmanager
def _folder_for(target: Path) -> Iterator[None]:
    """Make the folder of a file; a failure takes away again what was made and is still empty."""
    made = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            if any(folder.iterdir()):
                break
            folder.rmdir()
        raise


def _fetch(url: str, part: Path, page: str, progress: Progress | None) -> None:
    """Complete the file `part` from the address, from the end of `part` on."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(
        url, headers={"User-Agent": "teo", **({"Range": f"bytes={have}-"} if have else {})}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            resumed = response.status == _PARTIAL_CONTENT
            _save(response, part, have if resumed else 0, progress)
    except urllib.error.HTTPError as error:
        if error.code == _RANGE_NOT_SATISFIABLE and have:
            return  # the part has every byte there is; the checksum decides
        hint = f"it may have moved: see {page}" if page else "check the address"
        raise DownloadError(f"{url}: the server answered {error.code} {error.reason}; {hint}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url}: the connection failed ({reason}); to resume, run the command again") from error


def _save(response: http.client.HTTPResponse, part: Path, start: int, progress: Progress | None) -> None:
    """Write what the server sends behind the first `start` bytes of the part."""
    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    done = start
    with part.open("ab" if start else "wb") as stream:
        while chunk := response.read(_CHUNK):
            stream.write(chunk)
            done += len(chunk)
            if progress:
                progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"it broke off after {done} of {total} bytes")


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
