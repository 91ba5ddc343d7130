"""What is written of the rows that a teacher sampled."""

from __future__ import annotations

from collections import Counter

from teo_lab.teacher.sample import select


def test_rows_come_once_and_unchanged_ones_need_room() -> None:
    changed = [{"history": ["Hi."], "utterance": f"it {n}", "rewrite": f"the car {n}"} for n in range(5)]
    unchanged = [{"history": ["Hi."], "utterance": f"car {n}", "rewrite": f"car {n}"} for n in range(4)]
    parts = [
        ([unchanged[0], *changed[:3]], Counter(taken=4)),
        ([changed[0], *unchanged[1:3], *changed[3:], *unchanged[3:]], Counter()),
    ]
    written = list(select(parts))
    assert [row["utterance"] for row in written] == ["it 0", "it 1", "it 2", "car 1", "it 3", "it 4", "car 3"]
    assert [row["id"] for row in written] == [f"sampled-{n}" for n in range(1, 8)]
