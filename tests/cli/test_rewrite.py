"""`teo rewrite`: arguments and streams, with a scripted rewriter; the process itself with a pipe."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.alignment import derive_edits
from teo.cli.rewrite import rewrite
from teo.cli.score import score
from teo.cli.stream import read_batches, stream
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.result import Alternative, Rewrite
from teo.rewriter import MOST_ALTERNATIVES, Rewriter


class Shouting:
    """A rewriter that writes utterances in capitals and refuses the word 'long' when told to."""

    name, variant, threshold = "shouting", "direct", 0.0

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.options: list[dict[str, Any]] = []
        self.settings: dict[str, Any] = {}

    def rewrite(self, history: list[str], utterance: str, **options: Any) -> Rewrite:
        found = self.try_many([Dialogue.from_turns(history, utterance)], **options)[0]
        if isinstance(found, Exception):
            raise found
        return found

    def try_many(self, dialogues: Iterable[Dialogue], batch_size: int = 32, **options: Any) -> list[Any]:
        listed = list(dialogues)
        self.batches.append(len(listed))
        self.options.append(options)
        return [self._one(one, options) for one in listed]

    def _one(self, dialogue: Dialogue, options: dict[str, Any]) -> Rewrite | InputError:
        if options.get("truncation") == "error" and "long" in dialogue.utterance:
            return InputError("history: too long")
        edits = derive_edits(dialogue.utterance, dialogue.utterance.upper())
        found = Rewrite(edits.apply(dialogue.utterance), bool(edits), edits, "", 0.5)
        if options.get("n_best", 1) == 1:
            return found
        titled = derive_edits(dialogue.utterance, dialogue.utterance.title())
        others = (Alternative(found.rewrite, edits, "", 0.5), Alternative(dialogue.utterance.title(), titled, "", 0.25))
        return replace(found, alternatives=others)


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> Shouting:
    rewriter = Shouting()

    def load(model: str | None, **settings: Any) -> Shouting:
        rewriter.settings = settings
        return rewriter

    monkeypatch.setattr(Rewriter, "from_pretrained", load)
    return rewriter


app = typer.Typer()
app.command()(rewrite)


def run(*arguments: str, stdin: str | bytes | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def rows(count: int) -> str:
    return "".join(json.dumps({"id": k, "history": ["a"], "utterance": f"it {k}"}) + "\n" for k in range(count))


def test_turns_and_an_utterance(shouting: Shouting) -> None:
    assert run("a turn", "is he").stdout == "IS HE\n"
    record = json.loads(run("a turn", "is he", "--json").stdout)
    assert record["rewrite"] == "IS HE"
    assert list(record) == ["rewrite", "changed", "edits", "operations", "confidence", "reason", "truncated"]


def test_alternatives_are_indented_under_the_rewrite(shouting: Shouting) -> None:
    assert run("a turn", "is he", "--n-best", "2").stdout == "IS HE\n    0.25  Is He\n"
    record = json.loads(run("a turn", "is he", "--n-best", "2", "--json").stdout)
    assert [one["rewrite"] for one in record["alternatives"]] == ["IS HE", "Is He"]
    (line,) = run("--n-best", "2", stdin=rows(1)).stdout.splitlines()
    assert json.loads(line)["alternatives"][1]["rewrite"] == "It 0"


def test_options_reach_the_rewriter(shouting: Shouting) -> None:
    run("a", "is he", "--min-confidence", "0.7", "--truncation", "error")
    run("a", "is he", "--n-best", "3")
    assert shouting.options == [
        {"prefer": None, "min_confidence": 0.7, "truncation": "error", "n_best": 1},
        {"prefer": None, "min_confidence": None, "truncation": "oldest", "n_best": 3},
    ]


def test_a_stream_keeps_order_and_other_keys(shouting: Shouting) -> None:
    result = run("--batch-size", "4", stdin=rows(10))
    assert result.exit_code == 0
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["id"], one["rewrite"]) for one in records] == [(k, f"IT {k}") for k in range(10)]
    assert "history" not in records[0]
    assert shouting.batches == [4, 4, 2]


def test_messages_in_a_stream(shouting: Shouting) -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "n": {"x": 1}})
    record = json.loads(run(stdin=line).stdout)
    assert (record["rewrite"], record["n"]) == ("B", {"x": 1})


def test_bad_lines_stay_in_their_place(shouting: Shouting) -> None:
    good = json.dumps({"history": [], "utterance": "ok"})
    bad = [b"nonsense", b'{"history": "a", "utterance": "b"}', b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"utterance": 1}']
    stdin = b"\n".join([good.encode(), *bad, b"", good.encode()])
    result = run(stdin=stdin)
    assert result.exit_code == 1
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one.get("rewrite") for one in records] == ["OK", *[None] * 6, "OK"]
    assert [one["error"]["line"] for one in records[1:-1]] == [2, 3, 4, 5, 6, 7]
    assert records[2] == {
        "error": {"line": 3, "message": "history: expected a list of strings, found a string; pass one string per turn"}
    }
    assert "teo: line 3: history: expected a list of strings" in result.stderr
    assert "expected UTF-8, found byte 0xff at 0" in result.stderr


@pytest.mark.parametrize(
    ("indent", "value", "found"),
    [(2, {"history": [], "utterance": "x"}, "pretty-printed JSON"), (2, [{"utterance": "x"}], "a JSON array")],
)
def test_a_json_document_is_named_once(shouting: Shouting, indent: int, value: Any, found: str) -> None:
    result = run(stdin="\n" + json.dumps(value, indent=indent))
    assert (result.stdout, type(result.exception)) == ("", InputError)
    assert (
        f"expected JSON lines (JSONL), one object with history and utterance, or messages, on each line; found {found}"
        in (str(result.exception))
    )


def test_an_array_on_one_line_is_a_bad_line(shouting: Shouting) -> None:
    result = run(stdin=json.dumps([{"history": [], "utterance": "x"}]))
    assert result.exit_code == 1
    assert "found a JSON array; jq -c '.[]' makes lines" in json.loads(result.stdout)["error"]["message"]


def test_a_wrong_key_is_a_bad_line_that_names_the_keys(shouting: Shouting) -> None:
    result = run(stdin=json.dumps({"id": 7, "context": ["a"], "utterance": "x"}))
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["id"] == 7
    assert record["error"]["message"].startswith("history: missing; found id, context, utterance; a row is")


def test_a_file_that_does_not_exist_is_no_utterance(shouting: Shouting) -> None:
    for name in ("nope.jsonl", "data/nope.JSON", "nope.csv.gz"):
        result = run(name)
        assert isinstance(result.exception, InputError)
        assert f"{name}: expected TURN... UTTERANCE, found what looks like the name of a file" in str(result.exception)
        assert "was a file meant?" in str(result.exception)
    assert run("a turn", "open nope.jsonl").stdout == "OPEN NOPE.JSONL\n"
    assert run("open nope.jsonl").stdout


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_why_an_utterance_is_unchanged(
    shouting: Shouting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    unsure = Rewrite("is he", operations="[D] he [R] Ben", confidence=0.25, reason="unsure")
    monkeypatch.setattr(shouting, "rewrite", lambda *_, **__: unsure)
    rewrite(["a turn", "is he"])
    assert terminal.getvalue() == "is he\n", "what is copied or piped is the rewrite alone"
    shown = capsys.readouterr().err
    assert "unchanged: the model is unsure (confidence 0.25); proposed: [D] he [R] Ben" in shown
    assert not run("a turn", "is he").stderr, "not if stdout is no terminal"


def test_a_refused_dialogue_is_a_bad_line(shouting: Shouting) -> None:
    lines = [json.dumps({"history": ["a"], "utterance": text}) for text in ("one", "a long one", "two")]
    result = run("--truncation", "error", stdin="\n".join(lines))
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one.get("rewrite") for one in records] == ["ONE", None, "TWO"]
    assert records[1] == {"error": {"line": 2, "message": "history: too long"}}
    assert result.exit_code == 1


def test_lone_surrogates_come_through(shouting: Shouting) -> None:
    result = run(stdin=json.dumps({"history": ["a"], "utterance": "x\ud800"}))
    assert json.loads(result.stdout)["rewrite"] == "X\ud800"
    assert "中" in run(stdin=json.dumps({"history": ["a"], "utterance": "中"})).stdout, "other text is not escaped"


def test_nothing_on_stdin_is_nothing_on_stdout(shouting: Shouting) -> None:
    result = run(stdin="")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_terminal_without_arguments_is_told_what_to_do(shouting: Shouting, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(InputError, match=r"expected TURN\.\.\. UTTERANCE, --input FILE, or JSON lines on stdin"):
        rewrite(None)


def test_progress_only_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for log, expected in ((io.StringIO(), ""), (Terminal(), "\r4 lines, ")):
        assert stream(Shouting(), io.BytesIO(rows(4).encode()), io.BytesIO(), log, 2, {}) == 0  # type: ignore[arg-type]
        assert expected in log.getvalue()
        assert bool(log.getvalue()) == bool(expected)


def test_lines_that_have_come_do_not_wait_for_more() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source:
        batches = read_batches(source, 32)
        os.write(writer, b'{"a": 1}\n{"b": 2}\n{"c"')
        assert next(batches) == [(1, b'{"a": 1}'), (2, b'{"b": 2}')]
        os.write(writer, b": 3}\n\n\nlast")
        assert next(batches) == [(3, b'{"c": 3}')]
        os.close(writer)
        assert list(batches) == [[(6, b"last")]]


def test_of_a_line_that_is_too_long_only_its_start_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teo.cli.stream.LONGEST_LINE", 100_000)
    source = io.BytesIO(b'{"a": 1}\n' + b"x" * 3_000_000 + b'\n{"b": 2}\n')
    [(first, long, last)] = read_batches(source, 32)
    assert (first, last) == ((1, b'{"a": 1}'), (3, b'{"b": 2}'))
    assert 100_000 < len(long[1]) < 300_000


def test_files_in_the_place_of_pipes(shouting: Shouting, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(rows(3))
    target.write_text("what was there is replaced, however long it was" * 100)
    piped = run(stdin=rows(3)).stdout
    result = run("--input", str(source), "--output", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text() == piped
    assert run("--input", str(source), "--output", "-").stdout == piped
    assert run("--input", "-", stdin=rows(3)).stdout == piped


def test_one_rewrite_goes_to_a_file_without_colour(shouting: Shouting, tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert run("a", "is 中 he", "--output", str(target)).stdout == ""
    assert target.read_bytes() == "IS 中 HE\n".encode()
    run("a", "is he", "--output", str(target), "--json")
    assert json.loads(target.read_text())["rewrite"] == "IS HE"


@pytest.mark.parametrize(
    ("arguments", "message", "reason"),
    [
        (
            ["@ROWS"],
            "@ROWS: expected TURN... UTTERANCE, found the name of a file; to rewrite the file's rows: "
            "teo rewrite --input @ROWS",
            "a file name is no utterance",
        ),
        (
            ["a", "b", "--input", "@ROWS"],
            "expected either TURN... UTTERANCE or --input FILE, found both",
            "one of them",
        ),
        (
            ["--input", "@ROWS", "--output", "@ROWS"],
            "@ROWS: expected another file for output, found the file that is read",
            "the rows would be lost",
        ),
        (
            ["--input", "@FOLDER/none"],
            "@FOLDER/none: cannot be read: No such file or directory; expected a file of JSON lines",
            "not there",
        ),
        (["--input", "@FOLDER"], "@FOLDER: cannot be read: Is a directory; expected a file of JSON lines", "a folder"),
        (
            ["a", "b", "--output", "@FOLDER"],
            "@FOLDER: cannot be written: Is a directory; name a file that can be made",
            "a folder",
        ),
        (["a", "b", "--min-confidence", "2"], "--min-confidence: expected 0 to 1, found 2", "above"),
        (["a", "b", "--min-confidence", "-0.5"], "--min-confidence: expected 0 to 1, found -0.5", "below"),
        (["a", "b", "--min-confidence", "nan"], "--min-confidence: expected 0 to 1, found nan", "neither"),
        (["a", "b", "--n-best", "0"], "--n-best: expected 1 to 16, found 0", "as over HTTP"),
        (["a", "b", "--n-best", "17"], "--n-best: expected 1 to 16, found 17", "as over HTTP"),
        (["a", "b\udcff"], "argument 2: expected UTF-8, found byte 0xff", "a byte that is not text, as Python has it"),
    ],
)
def test_mistakes(shouting: Shouting, tmp_path: Path, arguments: list[str], message: str, reason: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(rows(2))

    def named(text: str) -> str:
        return text.replace("@ROWS", str(file)).replace("@FOLDER", str(tmp_path))

    result = run(*map(named, arguments))
    assert isinstance(result.exception, InputError), reason
    assert str(result.exception) == named(message)
    assert result.exception.exit_code == 2
    assert file.read_text() == rows(2), "the input is as it was"


def test_the_help_shows_no_type_after_a_flag() -> None:
    options = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert "--json" in options
    assert not re.search(r"--json\s+<", options)


def test_the_limit_of_alternatives_is_the_rewriters() -> None:
    assert sys.modules["teo.cli.rewrite"]._MOST_ALTERNATIVES == MOST_ALTERNATIVES


def test_a_long_utterance_is_no_file_name(shouting: Shouting) -> None:
    assert run("x" * 5000).stdout == "X" * 5000 + "\n"
    assert run("no/such\0file").stdout == "NO/SUCH\0FILE\n"


def test_settings_reach_the_model(shouting: Shouting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = ModuleType("teo.rules")
    monkeypatch.setattr(keeping, "read_keep_file", lambda path: [path.read_text()], raising=False)
    monkeypatch.setitem(sys.modules, "teo.rules", keeping)
    words = tmp_path / "keep.txt"
    words.write_text("okay")
    usual = {"threads": None, "variant": None, "runtime": "onnx", "device": "auto", "dtype": "float32"}
    run("a", "b", "--threads", "100000", "--variant", "fast", "--keep", str(words))
    assert shouting.settings == {**usual, "threads": 100000, "variant": "fast", "keep": ["okay"]}
    run("a", "b", *["--runtime", "torch", "--device", "cuda:1", "--dtype", "bfloat16"])
    assert shouting.settings == {**usual, "runtime": "torch", "device": "cuda:1", "dtype": "bfloat16"}
    run("a", "b")
    assert shouting.settings == usual, "no list of one's own"


def test_an_error_record_keeps_the_other_keys(shouting: Shouting) -> None:
    lines = [
        {"id": "bad-7", "history": 3, "utterance": "x", "rewrite": "gold"},
        {"id": 8, "history": ["a"], "utterance": "a long one"},
    ]
    result = run("--truncation", "error", stdin="\n".join(map(json.dumps, lines)))
    first, second = map(json.loads, result.stdout.splitlines())
    assert list(first) == ["id", "reference", "error"]
    assert (first["id"], first["reference"], first["error"]["line"]) == ("bad-7", "gold", 1)
    assert second == {"id": 8, "error": {"line": 2, "message": "history: too long"}}
    assert result.exit_code == 1


def test_a_row_may_have_a_key_named_error(shouting: Shouting) -> None:
    result = run(stdin=json.dumps({"history": ["a"], "utterance": "b", "error": {"line": 1}}))
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["rewrite"] == "B"


def test_records_of_rows_with_a_rewrite_can_be_scored(shouting: Shouting) -> None:
    gold = [("is he", "IS HE"), ("and she", "and Ann")]
    lines = [json.dumps({"id": k, "history": ["a"], "utterance": u, "rewrite": g}) for k, (u, g) in enumerate(gold)]
    records = run(stdin="\n".join(lines)).stdout
    first = json.loads(records.splitlines()[1])
    assert [first[key] for key in ("id", "current", "reference", "prediction", "rewrite")] == [
        1, "and she", "and Ann", "AND SHE", "AND SHE",
    ]  # fmt: skip
    scoring = typer.Typer()
    scoring.command()(score)
    result = CliRunner().invoke(scoring, ["-", "--json"], input=records)
    assert json.loads(result.stdout)["em"] == 0.5
    twice = CliRunner().invoke(scoring, ["-", "-"], input=records)
    assert "found stdin twice; name a file for one of them" in str(twice.exception)


SCRIPT = textwrap.dedent(
    """
    import sys, time
    from teo.cli.stream import stream
    from teo.result import Rewrite

    class Slow:
        def try_many(self, dialogues, batch_size=32, **options):
            time.sleep(0.02 * len(dialogues))
            return [Rewrite(one.utterance * 50) for one in dialogues]

    sys.exit(stream(Slow(), sys.stdin.buffer, sys.stdout.buffer, sys.stderr, 4, {}))
    """
)


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
def test_an_interrupt_leaves_whole_lines() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(rows(400).encode())
    process.stdin.flush()
    first = process.stdout.readline() + process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    lines = (first + out).splitlines(keepends=True)
    assert process.returncode == 130
    assert 0 < len(lines) < 400
    assert all(line.endswith(b"\n") and json.loads(line)["rewrite"] for line in lines)
    assert f"teo: stopped after {len(lines)} lines" in err.decode()
    assert b"Traceback" not in err
