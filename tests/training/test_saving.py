"""Folders that are written whole: what stands in their place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="saving a model needs torch")

from teo.errors import explain
from teo.training.saving import whole_folder


def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    (target / "old").touch()
    link.symlink_to(target)
    with whole_folder(link) as folder:
        (folder / "new").touch()
    assert link.is_symlink()
    assert [file.name for file in target.iterdir()] == ["new"]
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link"}


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["file", "fifo"])
def test_what_is_no_folder_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "place"
    make(path)
    with pytest.raises(NotADirectoryError) as caught, whole_folder(path):
        pass
    assert explain(caught.value) == (
        f"{path}: cannot be read or written: it is no folder; give a new name or a folder to replace",
        2,
    )
    assert not path.with_name(path.name + ".old").exists()
    assert path.exists()
