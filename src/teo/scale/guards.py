"""What keeps jobs apart: an output is no input of the same job, and one job at a time writes to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from teo.errors import InputError
from teo.files import make_folder
from teo.scale.inputs import Plan
from teo.scale.manifest import LOCK
from teo.scale.output import Output
from teo.scale.stores import LocalStore, Store, matches, open_store


def refuse_overlap(source: str, output: Output, plan: Plan) -> None:
    """Raise if the input names files of the output: another run would read what this one wrote."""
    store, pattern = open_store(source)
    other, folder = open_store(output.folder)
    if type(store) is not type(other):
        return
    written = [f"{folder}/part-000000.{plan.format}", *([open_store(output.file)[1]] if output.file else [])]
    on_disk = isinstance(store, LocalStore)
    pattern, *written = (_resolve(path) if on_disk else path for path in (pattern, *written))
    files = {_resolve(part.file) if on_disk else part.file for part in plan.parts}
    same = PurePosixPath(written[0]).parent in {PurePosixPath(file).parent for file in files}
    if output.file and written[1] in files:
        raise InputError(f"{output.file}: expected another file for the output, found one that the input names too")
    is_file = pattern in files
    below = not is_file and any(
        PurePosixPath(path).is_relative_to(pattern) or matches(path, pattern) for path in written
    )
    if same or below:
        what = "that of the input" if same else "one that the input names too"
        raise InputError(f"{folder}: expected another folder for the output, found {what}")


def _resolve(path: str) -> str:
    """Return a path on disk without links; a glob's wild cards stay."""
    return str(Path(path).resolve())


@contextmanager
def hold_lock(store: Store, folder: str) -> Iterator[None]:
    """Hold the output of a job, if it is on a disk; the lock ends with the process, however that ends.

    A folder that was made for the lock and got nothing else goes with it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    if not isinstance(store, LocalStore):
        yield
        return
    made = not Path(folder).exists()
    make_folder(Path(folder))
    path = Path(folder) / LOCK
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(f"{folder}: another job writes there now; wait for it, or give another output") from None
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)  # the job before it ended just now, and took the file away
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        if made and not any(Path(folder).iterdir()):  # the job was refused before it began
            Path(folder).rmdir()
