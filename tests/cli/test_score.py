import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from teo.cli.score import score
from teo.errors import InputError

ROWS = [
    {"current": "It is he.", "reference": "It is Ben.", "prediction": "It is Ben.", "id": 1},
    {"current": "好喝", "reference": "茶好喝", "prediction": ""},
    {"current": "Thank you!", "reference": "Thank you!", "prediction": "Thank you!"},
]

app = typer.Typer()
app.command()(score)


def _write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path):
    return _write(tmp_path / "a.jsonl", ROWS)


@pytest.fixture
def other(tmp_path):
    return _write(tmp_path / "b.jsonl", [{**row, "prediction": row["current"]} for row in ROWS])


def _run(*arguments):
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_is_the_report(file):
    found = json.loads(_run(file, "--json"))
    assert found["n"] == 3
    assert found["em"] == pytest.approx(2 / 3)
    assert found["breakdown"]["insertion_only"] == {"n": 1, "em": 0.0}
    assert "intervals" not in found
    assert found["signatures"]["em"].startswith("EM|units:teo|")


def test_json_with_intervals_and_given_units(file):
    found = json.loads(_run(file, "--json", "--intervals", "--pretokenized"))
    low, high = found["intervals"]["em"]
    assert 0.0 <= low < 2 / 3 < high <= 1.0
    assert found["signatures"]["em"].startswith("EM|units:as-given|")


def test_the_table_has_a_line_per_number_and_the_signatures(file):
    lines = _run(file).splitlines()
    assert lines[0] == "3 rows"
    assert "em                      0.6667" in lines
    assert "complete                1.0000       1" in lines
    assert "both                         -       0" in lines
    assert "under rewrite rate      0.0000" in lines
    assert sum(line.startswith("  BLEU-3|") for line in lines) == 1
    assert sum(line.startswith("  restoration-run|") for line in lines) == 1
    assert not any(line.startswith("  interval|") for line in lines)


def test_the_table_shows_intervals_on_request(file):
    lines = _run(file, "--intervals").splitlines()
    assert next(line for line in lines if line.startswith("em ")).endswith("   [0.0000, 1.0000]")
    assert next(line for line in lines if line.startswith("complete ")).endswith("       1   [1.0000, 1.0000]")
    assert any(line.startswith("  interval|level:95%") for line in lines)


def test_two_files_are_compared(file, other):
    found = json.loads(_run(file, other, "--json"))
    assert found["files"] == {"first": file, "second": other}
    assert found["differences"]["em"]["difference"] == pytest.approx(-1 / 3)
    assert found["differences"]["em_both"] is None


def test_the_table_of_two_files(file, other):
    lines = _run(file, other).splitlines()
    assert lines[:3] == [f"first   {file}", f"second  {other}", "3 rows"]
    em = next(line for line in lines if line.startswith("em "))
    assert em.startswith("em                      0.6667  0.3333   -0.3333  [-1.0000, +0.0000]   1.0000")
    assert next(line for line in lines if line.startswith("em_both")).split() == ["em_both", "-", "-"]
    assert any(line.startswith("  paired|") for line in lines)


def test_the_table_of_two_files_marks_what_is_significant(tmp_path, file):
    right = [{**row, "prediction": row["reference"]} for row in ROWS]
    one, two = _write(tmp_path / "x.jsonl", ROWS * 9), _write(tmp_path / "y.jsonl", right * 9)
    lines = _run(one, two, "--intervals").splitlines()
    em = next(line for line in lines if line.startswith("em "))
    assert em.endswith(" *")
    assert em.count("[") == 3
    assert not next(line for line in lines if line.startswith("em_complete")).endswith("*")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:2], "a.jsonl:3: no row to pair with, the other system has 2 rows and this one 3"),
        ([ROWS[0], {**ROWS[1], "reference": "x"}, ROWS[2]], "b.jsonl:2: reference: expected '茶好喝' as in "),
    ],
)
def test_files_with_other_rows_are_refused(tmp_path, file, rows, message):
    second = _write(tmp_path / "b.jsonl", rows)
    with pytest.raises(InputError) as caught:
        _run(file, second)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def _teo(*arguments):
    source = str(Path(__file__).resolve().parents[2] / "src")
    return subprocess.run(
        [sys.executable, "-m", "teo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"},
    )


@pytest.mark.process
def test_a_bad_file_is_one_line_on_stderr_and_exit_2(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"current": "a", "reference": "b"}\n', encoding="utf-8")
    done = _teo("score", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    form = '{"current": "...", "reference": "...", "prediction": "..."}'
    assert done.stderr == f"teo: {path}:1: prediction: missing; a row is {form}\n"


@pytest.mark.process
def test_the_command_gives_data_on_stdout_and_nothing_else(file):
    done = _teo("score", file, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n"] == 3


@pytest.mark.process
def test_loading_the_command_does_not_load_the_metrics():
    code = "import sys, teo.cli.score; print(any(name.split('.')[0] in ('numpy', 'rapidfuzz') for name in sys.modules))"
    source = str(Path(__file__).resolve().parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}
    )
    assert done.stdout.strip() == "False"
