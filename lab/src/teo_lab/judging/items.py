"""draw_study(...): the items that people judge, drawn from two files of predictions, and the order they are shown in.

Nothing here is random without the seed: the same files, numbers and seed give the same items in the same order.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from teo.arguments import require_integer
from teo.data.files import NOT_UTF8, read_lines
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.evaluation.predict import PREDICTIONS
from teo.units import is_exact_match

SAMPLE, RATERS, SEED = 50, 3, 0
"""What is drawn unless asked otherwise: items, raters and the seed."""

Choice = Literal["a", "b", "tie"]
"""A vote: for the first system (the file named first), for the second, or for neither."""
Shown = Literal["first", "second", "tie"]
"""A vote as the page knows it, which never learns what system wrote which rewrite."""


@dataclass(frozen=True, slots=True)
class Item:
    """A dialogue and what each system made of its utterance."""

    id: str
    history: tuple[str, ...]
    utterance: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study was drawn from; with an equal plan it may be resumed, with another it must not."""

    a: str
    """The name of the first system: the folder of its file."""
    b: str
    a_hash: str
    b_hash: str
    sample: int
    """How many items were asked for; fewer are drawn if fewer differ."""
    raters: int
    seed: int
    shared: int
    """Rows that both files have."""
    equal: int
    """Shared rows whose rewrites exact match does not tell apart: nobody is asked about them."""


@dataclass(frozen=True, slots=True)
class JudgingStudy:
    """A plan and its items."""

    plan: Plan
    items: tuple[Item, ...]

    def order(self, seat: int) -> list[Presentation]:
        """Return a rater's list: every item once, in the rater's own random order.

        The first system's rewrite stands first in half of a rater's items, so that a habit of choosing the upper one
        favours neither.
        """
        generator = random.Random(f"{self.plan.seed}/{seat}")
        indices = list(range(len(self.items)))
        generator.shuffle(indices)
        sides = [(number + seat) % 2 == 0 for number in range(len(indices))]
        generator.shuffle(sides)
        return [Presentation(index, a_first) for index, a_first in zip(indices, sides, strict=True)]


@dataclass(frozen=True, slots=True)
class Presentation:
    """Where an item stands in a rater's list: which item, and whose rewrite is shown first."""

    item: int
    a_first: bool

    def choice_of(self, shown: Shown) -> Choice:
        """Return the vote that a key on the page means."""
        if shown == "tie":
            return "tie"
        return "a" if (shown == "first") == self.a_first else "b"

    def shown_as(self, choice: Choice) -> Shown:
        """Return the key on the page that means this vote."""
        if choice == "tie":
            return "tie"
        return "first" if (choice == "a") == self.a_first else "second"


def draw_study(
    first: Path,
    second: Path,
    *,
    rows: Iterable[Row] = (),
    sample: int = SAMPLE,
    raters: int = RATERS,
    seed: int = SEED,
) -> JudgingStudy:
    """Return a study of two files of predictions: rows of both whose rewrites differ, drawn by the seed.

    `rows` are those of the dataset; they are needed if neither file holds the dialogues.
    """
    require_integer("--sample", sample, 1)
    require_integer("--raters", raters, 1)
    files = [find_predictions(path) for path in (first, second)]
    a, b = (_read_predictions(file) for file in files)
    dialogues = {row.id: row.dialogue for row in rows}
    shared = [id_ for id_ in a if id_ in b]
    if not shared:
        raise InputError(f"{files[1]}: expected rows of {files[0]}, found no id in both; judge the same split twice")
    different = [id_ for id_ in shared if not is_exact_match(a[id_].text, b[id_].text)]
    if not different:
        raise InputError(f"{files[1]}: all {len(shared)} rewrites are those of {files[0]}; there is nothing to judge")
    drawn = random.Random(seed).sample(different, min(sample, len(different)))
    items = []
    for id_ in drawn:
        dialogue = _find_dialogue(id_, {str(files[0]): a[id_], str(files[1]): b[id_]}, dialogues.get(id_))
        items.append(Item(id_, dialogue.history, dialogue.utterance, a[id_].text, b[id_].text))
    name_a, name_b = name_systems(files[0], files[1])
    plan = Plan(
        a=name_a,
        b=name_b,
        a_hash=_hash(files[0]),
        b_hash=_hash(files[1]),
        sample=sample,
        raters=raters,
        seed=seed,
        shared=len(shared),
        equal=len(shared) - len(different),
    )
    return JudgingStudy(plan, tuple(items))


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def find_predictions(path: Path) -> Path:
    """Return the file of predictions: the path itself, or predictions.jsonl in the folder."""
    file = path / PREDICTIONS if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{file}: no such file; expected the {PREDICTIONS} of teo evaluate")
    return file


def name_systems(first: Path, second: Path) -> tuple[str, str]:
    """Return the names of two systems: their folders, or more of the path if those are the same."""
    a, b = (file.resolve().parts for file in (first, second))
    if a[:-1] == b[:-1]:
        return (first.stem, second.stem) if first.stem != second.stem else (f"{first.stem} (1)", f"{second.stem} (2)")
    length = next(count for count in range(1, max(len(a), len(b))) if a[:-1][-count:] != b[:-1][-count:])
    return "/".join(a[:-1][-length:]), "/".join(b[:-1][-length:])


@dataclass(frozen=True, slots=True)
class _Predicted:
    """A line of predictions: the rewrite, and what of the dialogue the line holds."""

    text: str
    utterance: str | None
    history: tuple[str, ...] | None

    @property
    def dialogue(self) -> Dialogue | None:
        if self.utterance is None or self.history is None:
            return None
        return Dialogue(self.history, self.utterance)


def _read_predictions(file: Path) -> dict[str, _Predicted]:
    """Return the predictions of a file by id, in the file's order."""
    found: dict[str, _Predicted] = {}
    for number, line in read_lines(file):
        if line is not None and not line.strip():
            continue
        try:
            id_, predicted = _read_line(line)
        except InputError as error:
            raise InputError(f"{file}:{number}: {error}") from None
        if id_ in found:
            raise InputError(f"{file}:{number}: expected each id once, found '{id_}' again")
        found[id_] = predicted
    if not found:
        raise InputError(f"{file}: expected predictions, found an empty file")
    return found


def _read_line(line: str | None) -> tuple[str, _Predicted]:
    if line is None:
        raise InputError(NOT_UTF8)
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, Mapping):
        raise InputError("expected a JSON object with id and prediction, found something else")
    for name in ("id", "prediction"):
        if not isinstance(record.get(name), str):
            raise InputError(
                f"{name}: expected a string, as a line of {PREDICTIONS} has it; found {record.get(name)!r}"
            )
    utterance, history = record.get("current", record.get("utterance")), record.get("history")
    if utterance is not None or history is not None:
        Dialogue.from_turns(history, "" if utterance is None else utterance)
    return record["id"], _Predicted(record["prediction"], utterance, None if history is None else tuple(history))


def _find_dialogue(id_: str, lines: Mapping[str, _Predicted], known: Dialogue | None) -> Dialogue:
    """Return the dialogue of a row: from either file, else from the dataset; all that name it must agree."""
    found = next((line.dialogue for line in lines.values() if line.dialogue), known)
    if found is None:
        files = " and ".join(lines)
        raise InputError(f"row '{id_}': no dialogue in {files}; name its dataset with --data, --path and --split")
    dataset = [_Predicted("", known.utterance, known.history)] if known else []
    for line in (*lines.values(), *dataset):
        if line.utterance not in (None, found.utterance) or line.history not in (None, found.history):
            raise InputError(f"row '{id_}': expected one dialogue, found two; judge two systems on the same split")
    return found


def item_record(item: Item) -> dict[str, Any]:
    """Return an item ready for JSON."""
    return asdict(item)


def item_of(record: Mapping[str, Any]) -> Item:
    """Return the item of a record."""
    return Item(**{**record, "history": tuple(record["history"])})
