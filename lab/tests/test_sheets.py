"""Sheets to read: what is left to read, what is stored, and the rows that calibration gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripted import rewriter_of, says
from teo.data.row import MeaningKeys, Row, fingerprint
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError
from teo_lab import sheets

ROWS = [
    Row("a", Dialogue(("Who wrote Dune?",), "When was he born?"), "When was Frank Herbert born?"),
    Row("b", Dialogue(("Who?",), "x y"), "x y"),
    Row("c", Dialogue(("Who?",), "z"), "something else", ("It is Ben.",)),
]


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sheets, "load_set", lambda name, data: list(ROWS))
    return tmp_path / "judged"


def make(judged: Path, out: Path) -> list[dict[str, object]]:
    sheets.make_sheets(rewriter_of(says("It is Ben.")), ["task"], Path(), out, folder=judged)
    return [json.loads(line) for line in (out / "task.jsonl").read_text().splitlines()]


def test_only_what_nobody_read_is_on_a_sheet(judged: Path, tmp_path: Path) -> None:
    items = make(judged, tmp_path / "first")
    assert sorted((item["id"], item["rewrite"]) for item in items) == [("a", "It is Ben."), ("b", "It is Ben.")]
    a, b = (next(n for n, item in enumerate(items, 1) if item["id"] == name) for name in "ab")
    (tmp_path / "reader.txt").write_text(f"{a} wrong\n{b} right\n")
    (tmp_path / "other.txt").write_text(f"{b} right\n{a} partly\n")
    sheet = tmp_path / "first" / "task.jsonl"
    readings = [tmp_path / "reader.txt", tmp_path / "other.txt"]
    assert sheets.take_verdicts("task", sheet, readings, "m", judged) == (2, ["a"])
    assert make(judged, tmp_path / "second") == []
    stored = (judged / "task.jsonl").read_text()
    assert "Ben" not in stored, "no text is stored"
    assert [json.loads(line)["verdict"] for line in stored.splitlines()] == ["partly", "right", "right"]
    assert [json.loads(line)["readers"] for line in stored.splitlines()] == [2, 2, 0], "c equals an accepted rewrite"


def test_rows_come_with_their_verdicts(judged: Path) -> None:
    sheets.write_judged("task", [sheets.Judged("a", fingerprint("It is Ben."), "right", "m")], judged)
    rows = list(sheets.judged_rows("task", Path(), judged))
    assert rows[0].keys == MeaningKeys(judged=((fingerprint("It is Ben."), True),))
    assert (rows[0].keys.judgement("It is Ben."), rows[0].keys.judgement("It is Al.")) == (True, None)
    assert rows[1].keys == MeaningKeys()


@pytest.mark.parametrize(("sample", "count"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_rows_of_a_sample_end_with_the_last_that_was_read(judged: Path, sample: int, count: int) -> None:
    rewriter = rewriter_of(says("It is Ben."))
    rows = [row.id for row in sheets.sampled_rows("task", Path(), rewriter, sample, judged)]
    assert rows == sorted("abc", key=fingerprint)[:count], "in the order in which sheets are made"


def test_unchanged_rows_of_a_sample_do_not_count(judged: Path) -> None:
    rewriter = rewriter_of(says("x y"))
    changed = [row.id for row in ROWS if row.dialogue.utterance != "x y"]
    last = max(sorted("abc", key=fingerprint).index(name) for name in changed)
    assert len(list(sheets.sampled_rows("task", Path(), rewriter, 2, judged))) == last + 1


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("1 right\n", "expected a verdict for each of 2 lines, found none for line 2"),
        ("1 right\n2 good\n", "2: expected a number from 1 to 2 and one of right, partly, wrong, found '2 good'"),
        ("1 right\n3 right\n", "found '3 right'"),
    ],
)
def test_readings_that_do_not_fit_their_sheet_are_named(text: str, wording: str, tmp_path: Path) -> None:
    file = tmp_path / "reader.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=wording):
        sheets.read_verdicts(file, 2)


def test_a_set_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"set: expected one of everyday-dev-en, .* mudoco; found 'nope'"):
        sheets.load_set("nope", tmp_path)


def test_every_everyday_set_can_be_loaded(tmp_path: Path) -> None:
    names = [name for name in sheets.SETS if name.startswith("everyday-")]
    assert all(sheets.load_set(name, tmp_path) for name in names)
