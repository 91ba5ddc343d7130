"""TASK, the annotated CamRest676 (Quan et al., 2019): English restaurant search with every user turn made complete.

A turn has a complete form and up to two incomplete ones, with an ellipsis or with a coreference. The
history is what the field uses: the user's earlier turns in their complete form and the system's turns, alternating;
all of it (`history="full"`, which fits the paper's average length) or the last two turns (as RUN). The utterance is
the ellipsis form, else the coreference form, else the complete one (`forms="one"`); `forms="both"` gives a row per
incomplete form. Dialogues 0 to 539 are for training, the rest for testing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from teo.data.files import find_file, read_json_array
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import CARVED, Splits
from teo.dialogue import Dialogue

FIRST_TEST_DIALOGUE = 540
_COMPLETE, _ELLIPSIS, _COREFERENCE = "transcript_complete", "transcript_with_ellipsis", "transcript_with_coreference"


class TaskReader:
    """Rows of `CamRest676_annotated.json`."""

    name = "task"
    file_format = "a JSON array of dialogues with dialogue_id and dial (TASK)"
    options: Mapping[str, tuple[str, ...]] = {"history": ("full", "last-two"), "forms": ("one", "both")}

    def splits(self, path: Path) -> Splits:
        """Return the splits: the dataset has no development set of its own."""
        return CARVED

    def locate(self, path: Path, part: str) -> Path:
        """Return the file; both parts are in it."""
        return find_file(path, ("CamRest676_annotated.json",))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows of the part's dialogues."""
        for index, dialogue in enumerate(read_json_array(file, self.file_format, self.name)):
            number, turns = _fields(dialogue, "dialogue_id", int), _fields(dialogue, "dial", list)
            if number is None or turns is None:
                yield Skipped(file, f"[{index}]", "expected an object with a number dialogue_id and a list dial")
            elif (number < FIRST_TEST_DIALOGUE) == (part == "train"):
                yield from _read_dialogue(file, index, number, turns, options)


def _read_dialogue(
    file: Path, index: int, number: int, turns: list[Any], options: Mapping[str, str]
) -> Iterator[Entry | Skipped]:
    """Yield the rows of one dialogue; it ends at a malformed turn, since later turns would miss it in their history."""
    history: list[str] = []
    for position, turn in enumerate(turns):
        user, system = _fields(turn, "usr", dict), _fields(turn, "sys", dict)
        complete, answer = _fields(user, _COMPLETE, str), _fields(system, "sent", str)
        forms = {
            name: _fields(user, key, str) for name, key in (("ellipsis", _ELLIPSIS), ("coreference", _COREFERENCE))
        }
        if not complete or answer is None or None in forms.values():
            location = f"[{index}].dial[{position}]"
            reason = f"expected usr with {_COMPLETE}, {_ELLIPSIS}, {_COREFERENCE} and sys with sent"
            yield Skipped(
                file, location, f"{reason}; this turn and the {len(turns) - position - 1} after it are left out"
            )
            return
        shown = tuple(history if options["history"] == "full" else history[-2:])
        incomplete = {name: text for name, text in forms.items() if text}
        if options["forms"] == "one" or not incomplete:
            chosen = {"": next(iter(incomplete.values()), complete)}
        else:
            chosen = {f"-{name}": text for name, text in incomplete.items()}
        for suffix, utterance in chosen.items():
            row = Row(f"task-{number:03d}-{position}{suffix}", Dialogue(shown, utterance), complete)
            yield Entry(row, group=str(number))
        history += [complete, answer]


def _fields(value: object, key: str, kind: type) -> Any:
    """Return a field of an object, stripped if it is text; None if it is missing or of another type."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, kind):
        return None
    return found.strip() if isinstance(found, str) else found


TASK = TaskReader()
