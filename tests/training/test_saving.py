"""Folders that are written whole: what stands in their place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="saving a model needs torch")

from teo.errors import InputError, TeoError, explain
from teo.training.saving import disk_errors, whole_folder


def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    (target / "teo.json").touch()
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


def test_only_an_empty_folder_or_a_model_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "photos").mkdir(parents=True)
    with pytest.raises(InputError, match="expected an empty folder or a model to replace"), whole_folder(home):
        pytest.fail("nothing may be written")
    assert (home / "photos").is_dir()
    (home / "photos").rmdir()
    for name in ("empty", "again"):
        with whole_folder(home) as folder:
            (folder / "teo.json").write_text(name)
    assert (home / "teo.json").read_text() == "again"


def test_a_source_is_never_replaced(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "stage1").mkdir(parents=True)
    (run / "teo.json").touch()
    (tmp_path / "link").symlink_to(run)
    for target in (run, tmp_path / "link", tmp_path / "x" / ".." / "run"):
        wording = "expected another folder than that of the source"
        with pytest.raises(InputError, match=wording), whole_folder(target, run):
            pytest.fail("nothing may be written")
        assert (run / "stage1").is_dir()


def test_a_folder_that_was_moved_away_by_a_killed_process_comes_back(tmp_path: Path) -> None:
    (tmp_path / "model.old").mkdir()
    (tmp_path / "model.old" / "teo.json").write_text("mine")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "model"):
        raise RuntimeError("the disk is full")
    assert (tmp_path / "model" / "teo.json").read_text() == "mine"


def test_a_file_that_cannot_be_read_is_not_a_model_that_cannot_be_saved(tmp_path: Path) -> None:
    output, data = tmp_path / "model", tmp_path / "mine" / "train.jsonl"
    with pytest.raises(PermissionError) as caught, disk_errors(output):
        raise PermissionError(errno.EACCES, "Permission denied", str(data))
    assert explain(caught.value) == (f"{data}: cannot be read or written: Permission denied", 2)
    for place in (output / "teo.json", tmp_path / "model.part", tmp_path):
        with pytest.raises(TeoError, match="could not be saved"), disk_errors(output):
            raise PermissionError(errno.EACCES, "Permission denied", str(place))
