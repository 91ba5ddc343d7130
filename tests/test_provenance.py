"""Provenance: the commit is that of the package's own checkout, or none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teo.provenance import git_commit


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.process
def test_the_commit_of_a_project_that_only_holds_the_package_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / ".venv" / "teo" / "provenance.py"
    package.parent.mkdir(parents=True)
    package.touch()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "someone's own project")
    monkeypatch.setattr("teo.provenance.__file__", str(package))
    assert git_commit() is None
    git(tmp_path, "add", "--force", ".venv")
    git(tmp_path, "commit", "--quiet", "-m", "a checkout of the package")
    assert git_commit() == git(tmp_path, "rev-parse", "HEAD").strip()
    monkeypatch.setattr("teo.provenance.__file__", str(tmp_path / "gone" / "provenance.py"))
    assert git_commit() is None
