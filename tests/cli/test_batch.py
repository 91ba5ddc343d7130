"""`teo batch`: its options, what it shows while it works, and what it says at the end."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from batch_jobs import Shouting, make_rows, read_output, write_rows
from teo.cli.batch import Display, batch, describe, draw_bar, duration, summarise
from teo.errors import InputError, MissingExtraError
from teo.scale.job import JobProgress, Totals
from teo.scale.worker import ModelChoice

app = typer.Typer()
app.command()(batch)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[ModelChoice]:
    """The model choices that were loaded; each gives a rewriter by rule."""
    choices: list[ModelChoice] = []

    def load(self: ModelChoice, number: int = 0) -> Shouting:
        choices.append(self)
        return Shouting()

    monkeypatch.setattr(ModelChoice, "load", load)
    return choices


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_columns_are_mapped_and_the_end_is_told(tmp_path: Path, loaded: list[ModelChoice]) -> None:
    rows = [{"n": row["id"], "ctx": row["history"], "q": row["utterance"]} for row in make_rows(30)]
    source = write_rows(tmp_path / "in.jsonl", [*rows, {"n": 30}])
    options = ("--history", "ctx", "--utterance", "q", "--id", "n", "--part-rows", 20, "--processes", 1)
    result = run(source, tmp_path / "out", *options, "--batch-size", 7)
    assert result.exit_code == 3, "one row is bad"
    assert re.fullmatch(
        r"teo: 31 rows: 30 changed, 1 bad, 0 repeated; 31 in [\d.]+ s, [\d.,]+ rows/s, idle \d+% of the time\n"
        rf"teo: the first bad row is {source}, row 31: ctx: expected the column of the history, found n\n",
        result.stderr,
    )
    assert result.stdout == ""
    records = read_output(tmp_path / "out")
    assert [record["id"] for record in records] == list(range(31))
    assert records[-1]["error"]["message"] == "ctx: expected the column of the history, found n"
    assert [choice.batch_size for choice in loaded] == [7]
    again = run(source, tmp_path / "out", *options, "--batch-size", 7)
    first, second = again.stderr.splitlines()
    assert first == "teo: 31 rows: 30 changed, 1 bad, 0 repeated; all of them were done before"
    assert second == result.stderr.splitlines()[1], "the reason is kept for the next run"


@pytest.mark.parametrize(
    ("options", "wording"),
    [
        (["--engine", "spark"], "--engine: expected local or ray, found 'spark'"),
        (["--dtype", "int4"], "--dtype: expected float32 or bfloat16, found 'int4'"),
        (["--device", "tpu"], "--device: expected cpu or cuda, found 'tpu'"),
        (["--truncation", "newest"], "--truncation: expected oldest or error, found 'newest'"),
        (["--address", "auto"], "--address: expected --engine ray with it"),
        (["--min-confidence", "2"], "--min-confidence: expected 0 to 1, found 2"),
        (["--dtype", "bfloat16"], "give the folder that training wrote with --model"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, options: list[str], wording: str) -> None:
    result = run(write_rows(tmp_path / "in.jsonl", make_rows(1)), tmp_path / "out", *options)
    assert isinstance(result.exception, InputError)
    assert wording in str(result.exception)


def test_ray_without_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: list[ModelChoice]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray.data", None)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    result = run(write_rows(tmp_path / "in.jsonl", make_rows(1)), tmp_path / "out", "--engine", "ray")
    assert isinstance(result.exception, MissingExtraError)
    assert "pip install 'teo-rewriter[scale]'" in str(result.exception)
    assert not (tmp_path / "out").exists(), "the job may be started with another engine"


def test_a_bar_on_a_terminal_only() -> None:
    progress = JobProgress(200, before=50, done=50, errors=3, started=0.0, ended=10.0)
    assert draw_bar(progress) == "[############............]"
    assert describe(progress) == "100 of 200 rows, 5.0 rows/s, 20.0 s left, 3 bad"
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        display = Display(stream)
        display(progress)
        display.finish()
    assert terminal.getvalue() == f"\r\x1b[K{draw_bar(progress)} {describe(progress)}\n"
    assert log.getvalue() == "", "a log gets a line a minute"


def test_the_summary_of_a_job_that_went_on() -> None:
    progress = JobProgress(100, processes=2, before=40, done=60, busy=30.0, started=0.0, ended=20.0)
    assert summarise(Totals(100, 1, 50, 7), progress) == (
        "100 rows: 50 changed, 1 bad, 7 repeated; 60 in 20.0 s (40 were done before), 3.0 rows/s, "
        "1.5 for each of 2 processes, idle 25% of the time"
    )
    nothing = JobProgress(0)
    assert summarise(Totals(), nothing) == "0 rows: 0 changed, 0 bad, 0 repeated; the input has none"
    assert [duration(seconds) for seconds in (5, 119.96, 120, 7300)] == ["5.0 s", "120.0 s", "2.0 min", "2.0 h"]
