"""Rows for the batch benchmarks: dialogues repeated with other names, so that no two are the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from teo import Dialogue, derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.units import is_cjk

_FAMILY = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗"
_GIVEN = "明丽强敏静伟芳军洋勇艳杰娟涛超霞平刚桂英文华玉兰凤洁梅琳素云莲真环雪荣爱妹霭香月莺媛"
_FIRST = ("Ada", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Iris", "Jonas")
_LAST = ("Abbott", "Baker", "Carter", "Dalton", "Ellis", "Foster", "Gibson", "Harper", "Irving", "Jensen")


def make_rows(rows: Sequence[Row], wanted: int) -> Iterator[dict[str, Any]]:
    """Yield so many rows: those given, then the same again and again with other names."""
    return islice(
        (
            {"id": f"{row.id}-{turn}", **_as_row(rename(row, turn * len(rows) + place) if turn else row.dialogue)}
            for turn in count()
            for place, row in enumerate(rows)
        ),
        wanted,
    )


def rename(row: Row, number: int) -> Dialogue:
    """Return a row's dialogue with another name for what its rewrite restores, or with one called at its start."""
    dialogue = row.dialogue
    restored = [edit.new.strip() for edit in derive_edits(dialogue.utterance, row.rewrite)]
    old = max(restored, key=len, default="")
    chinese = any(map(is_cjk, dialogue.utterance))
    name = name_of(number, chinese=chinese)
    if len(old) > 1 and any(old in turn for turn in dialogue.history):
        history = tuple(turn.replace(old, name) for turn in dialogue.history)
        return Dialogue(history, dialogue.utterance.replace(old, name))
    first, *others = dialogue.history or ("",)
    return Dialogue((f"{name}{'，' if chinese else ', '}{first}", *others), dialogue.utterance)


def name_of(number: int, *, chinese: bool) -> str:
    """Return a name; the first thousands of numbers give different ones."""
    if chinese:
        number, given = divmod(number, len(_GIVEN))
        other, family = divmod(number, len(_FAMILY))
        return _FAMILY[family] + _GIVEN[other % len(_GIVEN)] + _GIVEN[given]
    number, first = divmod(number, len(_FIRST))
    other, last = divmod(number, len(_LAST))
    return f"{_FIRST[first]} {_LAST[last]}{f' {other}' if other else ''}"


def load_datasets(folder: Path, names: Iterable[str] = ("rewrite", "res200k")) -> list[Row]:
    """Return all rows of the datasets in a folder."""
    return [row for name in names for row in load_rows(name, folder / name).rows]


def _as_row(dialogue: Dialogue) -> dict[str, Any]:
    return {"history": list(dialogue.history), "utterance": dialogue.utterance}
