"""Standard streams and output files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from teo.cli.output import echo_json, open_input, open_output, prepare_streams, silence, write_line
from teo.errors import InputError

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


def write(path: Path, data: bytes) -> None:
    with open_output(path) as out:
        out.write(data)


def test_a_file_is_written_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(path, b"a longer text")
    write(path, b"short")
    assert path.read_bytes() == b"short"


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_fifo_stays_and_its_reader_gets_all(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    write(fifo, b"rows")
    reader.join(10)
    assert read == [b"rows"]
    assert fifo.is_fifo()


@needs_full
def test_a_full_disk_is_named() -> None:
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left on device; free some space"):
        write(FULL, b"x")
    assert FULL.is_char_device(), "the device is still one"


def test_other_errors_of_the_body_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_output(tmp_path / "f"):
        (tmp_path / "none").read_bytes()


def test_what_standard_output_is_already_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"before\n")
    with path.open("ab") as binary, io.TextIOWrapper(binary) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        write(path, b"after\n")  # as /dev/stdout is with >> log
    assert path.read_bytes() == b"before\nafter\n"


def test_the_file_that_is_read_is_not_written(tmp_path: Path) -> None:
    path, link = tmp_path / "f", tmp_path / "link"
    path.write_bytes(b"rows")
    link.symlink_to(path)
    with (
        pytest.raises(InputError, match="expected another file for output, found the file that is read"),
        open_input(path) as source,
        open_output(link, source),
    ):
        pass
    assert path.read_bytes() == b"rows"


def test_json_is_utf8_whatever_the_terminal(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    echo_json({"a": "中😀"})
    assert capfdbinary.readouterr().out == '{"a": "中😀"}\n'.encode()
    echo_json({"a": "中\ud800"}, indent=1)
    out = capfdbinary.readouterr().out
    assert json.loads(out) == {"a": "中\ud800"}
    assert out.count(b"\n") == 3


def test_a_character_that_an_encoding_lacks_is_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    binary = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(binary, encoding="latin-1"))
    prepare_streams()
    sys.stdout.write("é中\ud800")
    sys.stdout.flush()
    assert binary.getvalue() == b"\xe9\\u4e2d\\ud800"


def test_closed_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    prepare_streams()
    assert sys.stdin.read() == ""
    write_line("nobody hears this")
    monkeypatch.setattr(sys, "stdout", None)
    silence(sys.stdout)
    with pytest.raises(InputError, match="standard output is closed; expected somewhere to write to"):
        prepare_streams()


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are POSIX's")
@pytest.mark.parametrize("length", [9, 99_999])
def test_a_full_disk_leaves_whole_lines(tmp_path: Path, length: int) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from teo.cli.output import open_output\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (250_007, 250_007))\n"
        "with open_output(Path(sys.argv[1])) as out:\n"
        f"    for _ in range(100_000): out.write(b'x' * {length} + b'\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True)
    assert "File too large; free some space" in done.stderr
    data = (tmp_path / "out").read_bytes()
    assert data.endswith(b"\n")
    assert set(map(len, data.splitlines())) == {length}
