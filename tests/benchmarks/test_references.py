"""References as utterances: only those of incomplete rows count, and a changed one is not kept."""

from __future__ import annotations

from references import count_kept
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.result import Rewrite


class Scripted:
    """A rewriter that changes one utterance."""

    def rewrite_many(self, dialogues):
        return [Rewrite("Is the car red?" if "new" in row["utterance"] else row["utterance"]) for row in dialogues]


def test_references_of_incomplete_rows_are_counted():
    history = ("My car is here.",)
    rows = [
        Row("1", Dialogue(history, "Is it new?"), "Is the car new?"),
        Row("2", Dialogue(history, "Is it old?"), "Is the car old?"),
        Row("3", Dialogue(history, "Is it old?"), "is the  car old?"),
        Row("4", Dialogue(history, "Is the car new?"), "Is the car new?"),
    ]
    assert count_kept(Scripted(), rows) == {"references": 3, "kept": 2}
