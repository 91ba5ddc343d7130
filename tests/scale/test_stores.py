"""Paths, folders, globs and URLs: both stores find, read and write the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from batch_jobs import Shouting, contents, make_rows, write_rows
from teo.errors import InputError, MissingExtraError
from teo.scale import stores
from teo.scale.job import Job, run_job
from teo.scale.stores import ArrowStore, LocalStore, Store, open_store

FILES = (
    "a.jsonl",
    "b.jsonl",
    "b.txt",
    "deep/c.jsonl",
    "deep/er/d.jsonl",
    "_done/x.jsonl",
    "_done.jsonl",
    ".hidden.jsonl",
    ".git/y.jsonl",
    "w[1].jsonl",
)
ALL = sorted(name for name in FILES if not name.startswith("."))


@pytest.fixture(params=["local", "arrow"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "local":
        return LocalStore()
    fs = pytest.importorskip("pyarrow.fs")
    return ArrowStore(fs.LocalFileSystem())


@pytest.mark.parametrize(
    ("pattern", "found", "reason"),
    [
        ("", ["a.jsonl", "b.jsonl", "b.txt", "deep/c.jsonl", "deep/er/d.jsonl", "w[1].jsonl"], "a folder, its folders"),
        ("/a.jsonl", ["a.jsonl"], "a file"),
        ("/*.jsonl", ["_done.jsonl", "a.jsonl", "b.jsonl", "w[1].jsonl"], "a star stays in its folder"),
        ("/[ab].jsonl", ["a.jsonl", "b.jsonl"], "a set"),
        ("/?.txt", ["b.txt"], "one character"),
        ("/**/*.jsonl", [name for name in ALL if name != "b.txt"], "any folders"),
        ("/deep/*/*.jsonl", ["deep/er/d.jsonl"], "a folder of any name"),
        ("/gone*.jsonl", [], "nothing"),
        ("/[!a].jsonl", ["b.jsonl"], "all but one"),
        ("/[^a].jsonl", ["a.jsonl"], "a caret is a character of the set, as in a shell's older rules"),
        ("/[!a-b]*.jsonl", ["_done.jsonl", "w[1].jsonl"], "all but a range"),
        ("/.*.jsonl", [".hidden.jsonl"], "hidden files, if the pattern says so"),
        ("/**", ALL, "everything that is not hidden"),
        ("/*/*.jsonl", ["_done/x.jsonl", "deep/c.jsonl"], "one folder down"),
        ("/deep/**", ["deep/c.jsonl", "deep/er/d.jsonl"], "everything below"),
        ("/**/d.jsonl", ["deep/er/d.jsonl"], "anywhere"),
        ("/w[[]1].jsonl", ["w[1].jsonl"], "an escaped bracket"),
    ],
)
def test_what_a_path_names(store: Store, tmp_path: Path, pattern: str, found: list[str], reason: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    folder, files = store.find(f"{tmp_path}{pattern}")
    names = [str(Path(file).relative_to(tmp_path)) for file in files]
    assert names == found, reason
    assert all(Path(file).is_relative_to(folder) for file in files)


def test_a_failure_shows_no_part_of_an_object(store: Store, tmp_path: Path) -> None:
    store.write(f"{tmp_path}/a", b"one")
    with pytest.raises((OSError, InputError)):
        store.append(f"{tmp_path}/joined", [f"{tmp_path}/a", f"{tmp_path}/gone"])
    assert store.sizes(str(tmp_path)) == {"a": 3}


def test_files_are_written_listed_joined_and_removed(store: Store, tmp_path: Path) -> None:
    folder = f"{tmp_path}/new/folder"
    assert store.sizes(folder) == {}
    store.write(f"{folder}/a", b"one")
    store.write(f"{folder}/b", b"three")
    store.append(f"{folder}/c", [f"{folder}/a", f"{folder}/b"])
    assert store.sizes(folder) == {"a": 3, "b": 5, "c": 8}
    with store.open(f"{folder}/c") as stream:
        stream.seek(3)
        assert stream.read() == b"three"
    store.remove(f"{folder}/a")
    store.remove(f"{folder}/a")
    assert store.sizes(folder) == {"b": 5, "c": 8}
    store.remove(folder)
    assert store.sizes(folder) == {}


def test_a_url_is_opened_with_its_wild_cards() -> None:
    pytest.importorskip("pyarrow")
    store, path = open_store("file:///some/folder/*.jsonl")
    assert (type(store), path) == (LocalStore, "/some/folder/*.jsonl")
    store, path = open_store("mock:///some/folder/*.jsonl")
    assert (type(store), path.lstrip("/")) == (ArrowStore, "some/folder/*.jsonl")
    with pytest.raises(InputError, match=re.escape("nowhere://x: cannot be opened")):
        open_store("nowhere://x")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.fs", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'teo-rewriter[scale]'")):
        open_store("s3://bucket/rows.jsonl")


def test_a_job_on_a_file_system_of_pyarrow_gives_the_same(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = pytest.importorskip("pyarrow.fs")
    source = write_rows(tmp_path / "in.jsonl", make_rows(25))
    run_job(make_job(source, tmp_path / "plain"))
    for module in ("job", "inputs", "output", "worker"):
        opened = lambda location: (ArrowStore(fs.LocalFileSystem()), location)  # noqa: E731
        monkeypatch.setattr(f"teo.scale.{module}.open_store", opened)
    assert stores.open_store is open_store
    run_job(make_job(source, tmp_path / "arrow"))
    assert contents(tmp_path / "plain") == contents(tmp_path / "arrow")
