"""predict: rows on disk, resuming, and refusing what does not belong together."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import InputError, TeoError
from teo.evaluation.predict import PredictedRow, Progress, Settings, predict
from teo.layouts import Truncation
from teo.pipelines import Prediction

ROWS = [Row(f"r{k}", Dialogue(("said",), f"u{k} it"), f"u{k} that") for k in range(7)]
SETTINGS = Settings("jsonl", "test", {}, "dd", "shout", "tiny", "mm", 0, "fp32")


class Shout:
    """A predictor that counts its rows, and stops the run where it is told to."""

    def __init__(self, fail_after: int = 10**9) -> None:
        self.rows: list[str] = []
        self.fail_after = fail_after

    def __call__(self, rows: Sequence[Row]) -> list[PredictedRow]:
        if len(self.rows) >= self.fail_after:
            raise KeyboardInterrupt
        self.rows += [row.id for row in rows]
        return [PredictedRow.of_prediction(row, self.predict(row.dialogue.utterance), "position") for row in rows]

    @staticmethod
    def predict(utterance: str) -> Prediction:
        scores = {"rewrite": -0.123456789}
        return Prediction(utterance.upper(), EditScript(), "[I] x", scores, Truncation(1, 4), detail={"placed": "p"})


def go(shout: Shout, out: Path, rows: Sequence[Row] = ROWS, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    done = predict(shout, rows, out, settings, chunk=2, run={"device": "cpu"}, progress=io.StringIO())
    return [row.to_dict() for row in done]


def stored(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]


def test_rows_are_written_in_order_with_all_that_scoring_needs(tmp_path: Path) -> None:
    records = go(Shout(), tmp_path / "new" / "out")
    assert records == stored(tmp_path / "new" / "out")
    assert records[0] == {
        "id": "r0",
        "history": ["said"],
        "current": "u0 it",
        "reference": "u0 that",
        "prediction": "U0 IT",
        "operations": "[I] x",
        "gold_operations": "[D] it [R] that",
        "well_formed": True,
        "scores": {"rewrite": -0.12346},
        "truncated": {"turns": 1, "characters": 4},
        "placed": "p",
    }


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(Shout(fail_after=4), tmp_path)
    assert len(stored(tmp_path)) == 4
    second = Shout()
    records = go(second, tmp_path)
    assert second.rows == ["r4", "r5", "r6"]
    assert [record["id"] for record in records] == [row.id for row in ROWS]
    third = Shout()
    assert go(third, tmp_path) == records
    assert third.rows == []


def test_a_line_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    whole = go(Shout(), tmp_path)
    file = tmp_path / "predictions.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    again = Shout()
    assert go(again, tmp_path) == whole == stored(tmp_path)
    assert again.rows == ["r6"]


def test_more_rows_go_on_and_fewer_are_the_first(tmp_path: Path) -> None:
    go(Shout(), tmp_path, ROWS[:3])
    more = Shout()
    assert len(go(more, tmp_path)) == 7
    assert more.rows == ["r3", "r4", "r5", "r6"]
    assert [record["id"] for record in go(Shout(), tmp_path, ROWS[:2])] == ["r0", "r1"]
    assert [record["id"] for record in stored(tmp_path)] == ["r0", "r1"], "the file holds what is measured"
    assert len(go(Shout(), tmp_path)) == len(stored(tmp_path)) == 7


def test_half_an_emoji_is_written_as_an_escape(tmp_path: Path) -> None:
    rows = [Row("r", Dialogue(("said",), "u \ud83d"), "u that")]
    records = go(Shout(), tmp_path, rows)
    assert records == stored(tmp_path) == go(Shout(), tmp_path, rows)
    assert records[0]["prediction"] == "U \ud83d"
    assert b"\\ud83d" in (tmp_path / "predictions.jsonl").read_bytes()


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    go(Shout(), tmp_path)
    with pytest.raises(InputError) as caught:
        go(Shout(), tmp_path, settings=replace(SETTINGS, seed=2, model_hash="nn"))
    assert str(caught.value) == (
        f"{tmp_path}: holds predictions of other settings (model_hash: 'mm' there, 'nn' requested, "
        "seed: 0 there, 2 requested); choose another --out or delete it"
    )


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("predictions.jsonl", "{}\n", "expected settings.json beside predictions.jsonl, found none"),
        ("settings.json", "[]", "expected the settings of an earlier run, found something else"),
        ("settings.json", "{", "expected the settings of an earlier run, found something else"),
    ],
)
def test_folders_of_something_else(tmp_path: Path, file: str, text: str, message: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        go(Shout(), tmp_path)


def test_predictions_of_other_rows_are_refused(tmp_path: Path) -> None:
    go(Shout(), tmp_path)
    with pytest.raises(InputError, match=r"predictions\.jsonl:1: expected the row 'r6', found another"):
        go(Shout(), tmp_path, ROWS[::-1])
    file = tmp_path / "predictions.jsonl"
    file.write_text("junk\n" + file.read_text())
    with pytest.raises(InputError, match=r"predictions\.jsonl:1: expected a predicted row"):
        go(Shout(), tmp_path)


def test_an_output_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="cannot be made the output folder"):
        go(Shout(), tmp_path / "out")


def test_a_full_disk_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def full(path: Path, mode: str = "r", **settings: Any) -> Any:
        if mode == "ab":
            raise OSError(28, "No space left on device")
        return real(path, mode, **settings)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(TeoError, match="cannot be written: No space left on device; run the command again to resume"):
        go(Shout(), tmp_path)


def test_progress_is_plain_lines_in_a_log_and_one_line_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    log, terminal = io.StringIO(), Terminal()
    for stream in (log, terminal):
        progress = Progress(40, 10, stream)
        for _ in range(30):
            progress.advance(1)
        progress.finish()
    lines = log.getvalue().splitlines()
    assert lines[0] == "10 of 40 rows are there already"
    assert len(lines) == 9  # every tenth of the rows, and the last
    assert lines[-1].startswith("40/40 rows, ")
    assert "\r" not in log.getvalue()
    assert terminal.getvalue().count("\n") == 2
    assert terminal.getvalue().count("\r") == 30
