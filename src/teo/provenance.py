"""Where a result comes from: the versions and the commit that made it."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from teo.version import __version__


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, of this package and of those libraries that are installed."""
    found = {"python": platform.python_version(), "teo": __version__}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """Return the commit of the checkout that this package runs from; None where there is none.

    Installed into a folder of another project, the package is not among the files of that project's checkout.
    """
    file = Path(__file__)
    if _run_git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return None
    return _run_git(file.parent, "rev-parse", "--verify", "--quiet", "HEAD")


def _run_git(folder: Path, *words: str) -> str | None:
    """Return what git prints in a folder; None if it prints nothing, fails, or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
