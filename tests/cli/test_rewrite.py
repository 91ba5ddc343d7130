"""`teo rewrite`: arguments and streams, with a scripted rewriter; the process itself with a pipe."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.alignment import derive_edits
from teo.cli.rewrite import rewrite
from teo.cli.show import show_edits, show_result
from teo.cli.stream import read_batches, stream
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.result import Alternative, Rewrite
from teo.rewriter import Rewriter


class Shouting:
    """A rewriter that writes utterances in capitals and refuses the word 'long' when told to."""

    name, variant, threshold = "shouting", "direct", 0.0

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.options: list[dict[str, Any]] = []

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
    monkeypatch.setattr(Rewriter, "from_pretrained", lambda *args, **settings: rewriter)
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


def test_alternatives_in_colour(shouting: Shouting) -> None:
    result = shouting.rewrite(["a"], "is he", n_best=2)
    assert show_result("is he", result, colour=True).splitlines()[1] == (
        "    0.25  \x1b[31;9mis he\x1b[0m\x1b[32mIs He\x1b[0m"
    )


def test_options_reach_the_rewriter(shouting: Shouting) -> None:
    run("a", "is he", "--min-confidence", "0.7", "--truncation", "error")
    run("a", "is he", "--n-best", "3")
    assert shouting.options == [
        {"min_confidence": 0.7, "truncation": "error", "n_best": 1},
        {"min_confidence": None, "truncation": "oldest", "n_best": 3},
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
        "error": {"line": 3, "message": "history: expected a list of strings, found a str; pass one string per turn"}
    }
    assert "teo: line 3: history: expected a list of strings" in result.stderr
    assert "expected UTF-8, found byte 0xff at 0" in result.stderr


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
    with pytest.raises(InputError, match=r"expected TURN\.\.\. UTTERANCE, or JSON lines on stdin"):
        rewrite(None)


def test_edits_in_colour() -> None:
    script = derive_edits("It is he who acted.", "It is Ben who acted as Batman.")
    plain = show_edits("It is he who acted.", script, colour=False)
    shown = show_edits("It is he who acted.", script, colour=True)
    assert plain == "It is Ben who acted as Batman."
    assert shown == "It is \x1b[31;9mhe\x1b[0m\x1b[32mBen\x1b[0m who acted\x1b[32m as Batman\x1b[0m."
    assert show_edits("same", derive_edits("same", "same"), colour=True) == "same"


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
    first = process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    lines = (first + out).splitlines(keepends=True)
    assert process.returncode == 130
    assert 0 < len(lines) < 400
    assert all(line.endswith(b"\n") and json.loads(line)["rewrite"] for line in lines)
    assert f"teo: stopped after {len(lines)} lines" in err.decode()
    assert b"Traceback" not in err
