"""Parquet: other columns as they were, the record's columns beside them, parts that cross row groups."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import Shouting
from teo.errors import InputError
from teo.scale.job import Job, run_job
from teo.scale.rows import Columns

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def make_table(rows: int) -> Any:
    return pa.table(
        {
            "key": pa.array(range(rows), pa.int16()),
            "turns": [["a", "b"] if k % 3 else None for k in range(rows)],
            "text": [f"say {k}" if k != 4 else None for k in range(rows)],
            "day": [datetime.date(2024, 1, 1)] * rows,
            "price": [Decimal("1.50")] * rows,
            "rewrite": [f"gold {k}" for k in range(rows)],
        }
    )


COLUMNS = Columns(history="turns", utterance="text", id="key")


@pytest.mark.parametrize("group", [3, 10, 100])
def test_rows_keep_their_columns_and_their_order(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, group: int
) -> None:
    table = make_table(25)
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=group)
    totals, _ = run_job(make_job(tmp_path / "in.parquet", tmp_path / "out", columns=COLUMNS))
    parts = [pq.read_table(file) for file in sorted((tmp_path / "out").glob("part-*.parquet"))]
    assert [part.num_rows for part in parts] == [10, 10, 5]
    found = pa.concat_tables(parts)
    assert found["id"].type == pa.int16()
    assert found["id"].to_pylist() == list(range(25))
    assert found["day"].equals(table["day"])
    assert found["price"].type == table["price"].type
    assert found["reference"].to_pylist() == [f"gold {k}" for k in range(25)]
    rewrites = found["rewrite"].to_pylist()
    assert rewrites == [f"SAY {k}" if k != 4 else None for k in range(25)]
    errors = {k: error for k, error in enumerate(found["error"].to_pylist()) if error}
    assert (totals.errors, list(errors)) == (1, [4])
    assert (errors[4]["file"], errors[4]["line"]) == ("in.parquet", 5)
    assert errors[4]["message"].startswith("utterance: missing")
    assert found["edits"].to_pylist()[0][0]["new"] == "SAY"
    assert not {"turns", "text", "history", "utterance", "key"} & set(found.column_names)


def test_messages_and_one_file(shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path) -> None:
    messages = [[{"role": "user", "content": "a"}, {"role": "user", "content": f"say {k}"}] for k in range(12)]
    pq.write_table(pa.table({"chat": messages}), tmp_path / "in.parquet")
    run_job(make_job(tmp_path / "in.parquet", tmp_path / "out.parquet", columns=Columns(messages="chat")))
    joined = pq.read_table(tmp_path / "out.parquet")
    assert joined["rewrite"].to_pylist() == [f"SAY {k}" for k in range(12)]
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == 2


@pytest.mark.parametrize(
    ("columns", "wording"),
    [
        (Columns(), r"expected a column utterance or messages, found key, turns, text, .*--utterance or --messages"),
        (Columns(utterance="words"), r"in.parquet: words: expected the column of the utterance, found key, turns"),
        (Columns(history="past", utterance="text"), r"in.parquet: past: expected the column of the history, found key"),
        (
            Columns(utterance="text", id="number"),
            r"in.parquet: number: expected the column of the id, found key, turns",
        ),
        (Columns(history="turns", utterance="text", id="rewrite"), None),
    ],
)
def test_columns_that_are_not_there_end_the_job(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, columns: Columns, wording: str | None
) -> None:
    pq.write_table(make_table(3), tmp_path / "in.parquet")
    job = make_job(tmp_path / "in.parquet", columns=columns)
    if wording is None:
        assert run_job(job)[0].errors == 0
        return
    with pytest.raises(InputError, match=wording) as caught:
        run_job(job)
    assert "to resume" not in str(caught.value)
    assert not (tmp_path / "out").exists(), "the job may be started with other columns"


def test_columns_are_checked_in_every_file_before_any_is_rewritten(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    table = make_table(3)
    pq.write_table(table, tmp_path / "d" / "a.parquet")
    pq.write_table(table.drop_columns(["key"]), tmp_path / "d" / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: key: expected the column of the id, found turns, text"):
        run_job(make_job(tmp_path / "d", columns=COLUMNS))
    assert not shouting.asked


def test_two_columns_of_one_name_are_refused(shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path) -> None:
    table = make_table(3)
    pq.write_table(table.append_column("day", table["day"]), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"in\.parquet: expected columns of different names, found 'day' twice"):
        run_job(make_job(tmp_path / "in.parquet", columns=COLUMNS))
