"""Whole files: what is replaced, what is written into, and what a failure leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from teo.errors import InputError
from teo.files import json_line, write_json, write_jsonl, write_text, write_whole


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_new_file_has_the_users_rights_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    new, private = tmp_path / "new.txt", tmp_path / "private.txt"
    private.touch(0o600)
    private.chmod(0o640)
    for path in (new, private):
        write_text(path, "二\n")
        assert path.read_bytes() == "二\n".encode()
    assert new.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert private.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [new, private]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    target, link, chain = folder / "target.txt", tmp_path / "link.txt", tmp_path / "chain.txt"
    target.write_text("old")
    link.symlink_to(Path("there") / "target.txt")
    chain.symlink_to(link)
    write_text(chain, "new")
    assert link.is_symlink()
    assert chain.is_symlink()
    assert target.read_text() == "new"
    assert list(folder.iterdir()) == [target]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to("target.txt")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target.txt").read_text() == "new"


def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    assert write_jsonl(fifo, [{"id": "1"}, {"id": "2"}]) == 2
    reader.join(timeout=10)
    assert read == [b'{"id": "1"}\n{"id": "2"}\n']
    assert fifo.is_fifo()
    assert list(tmp_path.iterdir()) == [fifo]


@pytest.mark.parametrize("through", ["", "link"])
def test_a_device_is_written_into(tmp_path: Path, through: str) -> None:
    before = Path(os.devnull).stat()
    path = Path(os.devnull)
    if through:
        path = tmp_path / through
        path.symlink_to(os.devnull)
    write_json(path, {"a": 1})
    assert Path(os.devnull).stat().st_ino == before.st_ino
    assert path.is_symlink() == bool(through)
    assert Path(os.devnull).is_char_device()


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout on this system")
@pytest.mark.parametrize(("before", "mode"), [("first\n", "ab"), ("", "wb")])
def test_standard_output_is_written_into_and_not_cut(tmp_path: Path, before: str, mode: str) -> None:
    out = tmp_path / "out.txt"
    out.write_text("first\n")
    code = "from pathlib import Path; from teo.files import write_text; write_text(Path('/dev/stdout'), 'second\\n')"
    with out.open(mode) as stream:
        inode = out.stat().st_ino
        for _ in range(2):
            subprocess.run([sys.executable, "-c", code], stdout=stream, check=True, timeout=60)
        stream.write(b"last\n")
    assert out.read_text() == f"{before}second\nsecond\nlast\n"
    assert out.stat().st_ino == inode


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_sentence() -> None:
    with pytest.raises(InputError) as caught:
        write_text(Path("/dev/full"), "text")
    message = "/dev/full: cannot be written: No space left on device; free some space or write elsewhere"
    assert str(caught.value) == message
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/x.jsonl", r"x\.jsonl: expected an existing folder, found no .*nowhere; make the folder first"),
        ("file/x.jsonl", r"x\.jsonl: expected an existing folder, found no .*file; make the folder first"),
        ("folder", r"folder: cannot be written: Is a directory; give the name of a file, not of a folder"),
        ("loop", r"loop: cannot be written: .*symbolic links.*; write to a folder that is yours"),
        ("x" * 300, r"x: cannot be written: File name too long; write to a folder that is yours"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=message):
        write_jsonl(tmp_path / name, [{}])
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc on this system")
def test_a_folder_that_takes_no_files_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^/proc/x\.jsonl: cannot be written: /proc takes no new files; write to a"):
        write_jsonl(Path("/proc/x.jsonl"), [{}])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=r"cannot be written: Permission denied; write to a folder that is yours"):
            write_text(tmp_path / "x.txt", "text")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("kind", ["plain", "fifo"])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "rows.jsonl"
    if kind == "fifo":
        os.mkfifo(out)  # nobody reads it: opening it would wait for ever
    else:
        out.write_text("old\n")

    def write(beside: Path) -> None:
        beside.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(out, write)
    assert list(tmp_path.iterdir()) == [out]
    assert out.is_fifo() if kind == "fifo" else out.read_text() == "old\n"


def test_the_ending_of_the_name_is_kept(tmp_path: Path) -> None:
    seen: list[str] = []
    write_whole(tmp_path / "ids.npy", lambda beside: seen.append(beside.suffix) or beside.write_bytes(b""))
    assert seen == [".npy"]


@pytest.mark.parametrize(("text", "line"), [("二", '{"a": "二"}\n'), ("\ud800", '{"a": "\\ud800"}\n')])
def test_a_line_is_readable_where_utf8_can_hold_it(text: str, line: str) -> None:
    assert json_line({"a": text}) == line
    assert json.loads(line.encode()) == {"a": text}
