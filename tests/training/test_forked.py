"""Slices of work in forked processes: the same result, in order, as one process gives."""

from __future__ import annotations

import os

import pytest

from teo.training import forked
from teo.training.forked import map_slices


@pytest.mark.process
@pytest.mark.parametrize(("count", "processes"), [(0, 2), (1, 2), (10, 1), (10, 2), (103, 3)])
def test_the_result_does_not_depend_on_the_processes(
    count: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "_FEW", 0)
    offset = 7
    assert map_slices(lambda part: [n + offset for n in part], count, processes) == [n + 7 for n in range(count)]


@pytest.mark.process
def test_many_items_are_worked_on_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_FEW", 10)
    assert os.getpid() not in map_slices(lambda part: [os.getpid() for _ in part], 20, 2)
    assert set(map_slices(lambda part: [os.getpid() for _ in part], 9, 2)) == {os.getpid()}
