"""The command as a process: one line on stderr for every error, and the exit status that says whose it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teo.cli import app as cli
from teo.loading import has_default

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
ROW = {"id": "1", "history": ["Ben is here"], "utterance": "is he", "rewrite": "is Ben"}
SCORED = {"current": "is he", "reference": "is Ben", "prediction": "is Ben"}
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
needs_model = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")


def teo(*arguments: str | bytes, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": SOURCE, **settings.pop("env", {})}
    environment.pop("TEO_DEBUG", None)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
    return subprocess.run([sys.executable, "-m", "teo", *arguments], env=environment, timeout=120, **streams)


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Return the exit status of the command in this process."""
    monkeypatch.setattr(sys, "argv", ["teo", *arguments])
    monkeypatch.setenv("TEO_DEBUG", "")
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The files that a command line may name."""
    for name, row in (("ROWS", ROW), ("SCORED", SCORED)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    return {name: str(tmp_path / f"{name}.jsonl") for name in ("ROWS", "SCORED")}


@pytest.mark.parametrize(
    ("arguments", "message", "reason"),
    [
        (["bogus"], "No such command 'bogus'; see teo --help", "no such verb"),
        (["score"], "Missing argument 'FILE'; see teo score --help", "too few"),
        (["score", "none.jsonl"], "none.jsonl: no such file; expected JSONL", "a file that is not there"),
        (
            ["rewrite", "a", "-5 degrees?"],
            "No such option: -5; a turn that starts with - must come after --, as in "
            "teo rewrite -- TURN... UTTERANCE; see teo rewrite --help",
            "a turn that looks like an option",
        ),
        (["score", "-5"], "No such option: -5; see teo score --help", "which has no turns"),
        (["rewrite", "a", "b", "--n-best", "x"], "Invalid value for '--n-best': ", "no number"),
        (["rewrite", "a", "b", "--n-best", "99"], "--n-best: expected 1 to 16, found 99", "too many"),
        (["rewrite", "ROWS"], "ROWS: expected TURN... UTTERANCE, found the name of a file", "a file of rows"),
        (["data", "convert", "jsonl", "ROWS", "/proc/x"], "/proc/x: cannot be written: ", "no file can be made"),
        (["rewrite", "--input", "ROWS", "--output", "/proc/x"], "/proc/x: cannot be written: ", "likewise"),
        (
            ["evaluate", "--data", "jsonl", "--path", "ROWS", "--split", "all", "--out", "/proc/x"],
            "/proc/x: cannot be ",
            "likewise",
        ),
        (["train", "/proc/x.toml"], "/proc/x.toml: ", "a configuration that is not there"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    files: dict[str, str],
    arguments: list[str],
    message: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--output" in arguments and not has_default():
        pytest.skip("this checkout has no embedded model")
    assert main(monkeypatch, *(files.get(word, word) for word in arguments)) == 2, reason
    out, err = capsys.readouterr()
    assert out == ""
    assert err.lower().startswith(f"teo: {message.replace('ROWS', files['ROWS'])}".lower())
    assert err.count("\n") == 1


def test_a_defect_is_one_line_and_exit_1(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: Path) -> None:
        raise KeyError("k")

    monkeypatch.setattr("teo.metrics.read_rows", fail)
    assert main(monkeypatch, "score", files["SCORED"]) == 1
    assert capsys.readouterr().err == "teo: KeyError: 'k'; this is a defect of teo, please report it\n"
    monkeypatch.setattr(sys, "argv", ["teo", "--debug", "score", files["SCORED"]])
    with pytest.raises(KeyError):
        cli.main()


def test_an_interrupt_is_status_130(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("teo.metrics.read_rows", interrupt)
    assert main(monkeypatch, "score", files["SCORED"]) == 130


def test_the_status_of_a_verb_is_the_commands(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    assert main(monkeypatch, "score", files["SCORED"]) == 0
    monkeypatch.setattr(cli, "app", lambda **settings: 3)
    assert main(monkeypatch) == 3


@pytest.mark.process
@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["score", "SCORED"],
        ["score", "SCORED", "--json"],
        ["data", "convert", "jsonl", "ROWS", "-"],
        pytest.param(["rewrite", "Ben is here", "is he"], marks=needs_model),
        pytest.param(["rewrite", "Ben is here", "is he", "--json"], marks=needs_model),
        pytest.param(["rewrite", "--input", "ROWS"], marks=needs_model),
    ],
    ids=" ".join,
)
def test_a_full_disk_behind_standard_output(files: dict[str, str], arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = teo(*(files.get(word, word) for word in arguments), stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"teo: writing failed: No space left on device; free some space or write elsewhere\n"


@pytest.mark.process
@needs_full
def test_a_full_disk_behind_standard_error() -> None:
    with Path("/dev/full").open("wb") as full:
        assert teo("score", "none.jsonl", stderr=full).returncode == 2


@pytest.mark.process
def test_a_reader_that_leaves_is_no_error(files: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = teo("score", files["SCORED"], stdout=out)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.process
@needs_model
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_no_character_is_lost_on_standard_output(encoding: str) -> None:
    done = teo("rewrite", "再见", env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0
    assert done.stdout in ("再见\n".encode(), b"\\u518d\\u89c1\n")
    done = teo("rewrite", "再见😀", "--json", env={"PYTHONIOENCODING": encoding})
    assert json.loads(done.stdout.decode())["rewrite"] == "再见😀"


@pytest.mark.process
def test_bytes_that_are_no_text_are_refused() -> None:
    done = teo("rewrite", "a", b"caf\xe9")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"teo: argument 2: expected UTF-8, found byte 0xe9\n"


@pytest.mark.process
def test_a_warning_of_the_rewriter_is_shown() -> None:
    code = (
        "import logging, sys\n"
        "from teo.rewriter import Rewriter\n"
        "from teo.result import Rewrite\n"
        "class Fake:\n"
        "    def rewrite(self, history, utterance, **options): return Rewrite(utterance)\n"
        "def load(model, **settings):\n"
        "    logging.getLogger('teo.loading').warning('threads: %d is more than 8; 8 are used', settings['threads'])\n"
        "    return Fake()\n"
        "Rewriter.from_pretrained = load\n"
        "from teo.cli.app import main\n"
        "main()"
    )
    words = ["rewrite", "a", "b", "--threads", "100000"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, env=environment)
    assert (done.returncode, done.stdout) == (0, b"b\n")
    assert done.stderr == b"teo: threads: 100000 is more than 8; 8 are used\n"


@pytest.mark.process
def test_help_imports_no_library_of_the_model() -> None:
    code = (
        "import sys\nfrom teo.cli.app import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'torch', 'transformers', 'fastapi', 'uvicorn', 'rapidfuzz'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCE}
    )
    assert done.stderr == "[]\n"
    assert "Rewrite the last utterance" in done.stdout
