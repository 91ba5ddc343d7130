"""Which items are drawn, in what order each rater sees them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged_files import Line, make_lines, write_lines
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo_lab.judging.items import Choice, JudgingStudy, Presentation, Shown, draw_study, name_systems


def test_the_same_seed_gives_the_same_study(files: tuple[Path, Path]) -> None:
    first, again, other = (draw_study(*files, sample=10, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.items != other.items
    assert len(first.items) == len({item.id for item in first.items}) == 10


def test_rows_with_equal_rewrites_are_not_asked(files: tuple[Path, Path]) -> None:
    study = draw_study(*files, sample=50)
    assert (study.plan.shared, study.plan.equal, study.plan.sample) == (24, 4, 50)
    assert len(study.items) == 20
    assert all(item.a.endswith("up?") and item.b.endswith("down?") for item in study.items)


def test_the_order_is_random_and_stays(study: JudgingStudy, files: tuple[Path, Path]) -> None:
    orders = {seat: study.order(seat) for seat in (1, 2)}
    assert orders[1] == draw_study(*files, sample=20, raters=2, seed=7).order(1)
    assert orders[1] != draw_study(*files, sample=20, raters=2, seed=8).order(1)
    assert [place.item for place in orders[1]] != [place.item for place in orders[2]], "each rater has an own order"
    for order in orders.values():
        numbers = [place.item for place in order]
        assert sorted(numbers) == list(range(20)) != numbers
        assert sum(place.a_first for place in order) == 10, "each system stands first in half of the items"
    sides = [{place.item: place.a_first for place in order} for order in orders.values()]
    assert sides[0] != sides[1]
    assert any(sides[0][item] == sides[1][item] for item in range(20)), "nor are they each other's mirror"


@pytest.mark.parametrize(
    ("a_first", "shown", "choice"),
    [(True, "first", "a"), (True, "second", "b"), (False, "first", "b"), (False, "second", "a"), (False, "tie", "tie")],
)
def test_a_key_means_a_system(a_first: bool, shown: Shown, choice: Choice) -> None:
    place = Presentation(0, a_first)
    assert place.choice_of(shown) == choice
    assert place.shown_as(choice) == shown


@pytest.mark.parametrize(
    ("first", "second", "names", "why"),
    [
        ("x/one/p.jsonl", "x/two/p.jsonl", ("one", "two"), "the folders"),
        ("one/test/p.jsonl", "two/test/p.jsonl", ("one/test", "two/test"), "as much of the path as differs"),
        ("x/one.jsonl", "x/two.jsonl", ("one", "two"), "the files, where the folder is the same"),
        ("x/one.jsonl", "x/one.json", ("one (1)", "one (2)"), "never the same name twice"),
    ],
)
def test_systems_have_two_names(tmp_path: Path, first: str, second: str, names: tuple[str, str], why: str) -> None:
    assert name_systems(tmp_path / first, tmp_path / second) == names, why


def strip(lines: list[Line], *keys: str) -> list[Line]:
    return [{key: value for key, value in line.items() if key not in keys} for line in lines]


def test_dialogues_come_from_either_file_or_the_dataset(tmp_path: Path) -> None:
    whole, bare = make_lines("up"), strip(make_lines("down"), "history", "current")
    first = write_lines(tmp_path / "a" / "p.jsonl", whole)
    second = write_lines(tmp_path / "b" / "p.jsonl", bare)
    expected = draw_study(first, second).items
    assert draw_study(second, first).items[0].utterance.startswith("number ")
    without = write_lines(tmp_path / "c" / "p.jsonl", strip(whole, "history"))
    with pytest.raises(InputError, match=r"row 'row-0\d\d': no dialogue in .*; name its dataset with --data, --path"):
        draw_study(without, second)
    rows = [Row(line["id"], Dialogue(tuple(line["history"]), line["current"]), line["reference"]) for line in whole]
    assert draw_study(without, second, rows=rows).items == expected


@pytest.mark.parametrize(
    ("change", "message", "why"),
    [
        ({"id": 5}, r":3: id: expected a string", "an id that is no text"),
        (
            {"prediction": None},
            r":3: prediction: expected a string, as a line of predictions.jsonl has it",
            "no rewrite",
        ),
        ({"id": "row-000"}, r":3: expected each id once, found 'row-000' again", "an id twice"),
        ({"history": "text"}, r":3: history: expected a list of strings", "a history that is no list"),
    ],
)
def test_bad_lines_are_named(files: tuple[Path, Path], change: dict[str, Any], message: str, why: str) -> None:
    lines = make_lines("down")
    lines[2] |= change
    write_lines(files[1], lines)
    with pytest.raises(InputError, match=message):
        draw_study(*files)


def test_files_that_do_not_fit_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file; expected the predictions\.jsonl of teo evaluate"):
        draw_study(files[0], tmp_path / "none")
    with pytest.raises(InputError, match=r"all 24 rewrites are those of .*; there is nothing to judge"):
        draw_study(files[0], files[0].parent)
    other = write_lines(tmp_path / "o.jsonl", [line | {"id": f"x{line['id']}"} for line in make_lines("down")])
    with pytest.raises(InputError, match="found no id in both; judge the same split twice"):
        draw_study(files[0], other)
    write_lines(other, [line | {"current": "other words"} for line in make_lines("down")])
    with pytest.raises(InputError, match="expected one dialogue, found two"):
        draw_study(files[0], other)
    other.write_text("")
    with pytest.raises(InputError, match="expected predictions, found an empty file"):
        draw_study(files[0], other)
    other.write_text("[1]\n")
    with pytest.raises(InputError, match=r":1: expected a JSON object with id and prediction"):
        draw_study(files[0], other)
