"""Marks around the words that a rewrite takes up, and marks that a rewrite has."""

from __future__ import annotations

import pytest

from checkout import ROOT
from markdown import ANSWERED, FORMS, Words, answer_examples, find_marks, find_words, mark_dialogues, measure
from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.result import Rewrite

ROW = Row(
    "1", Dialogue(("Who wrote Dune?", "It was Frank Herbert."), "When was he born?"), "When was Frank Herbert born?"
)


class Copying:
    """A rewriter that copies a name with all marks, if the turn has it in one piece."""

    def rewrite_many(self, dialogues, **_):
        return [self.rewrite(dialogue) for dialogue in dialogues]

    def rewrite(self, dialogue):
        turn = dialogue.history[-1]
        name = "**Frank Herbert**" if "**Frank" in turn else "Frank Herbert"
        if name not in turn or "](" in turn:
            return Rewrite(dialogue.utterance)
        text = dialogue.utterance.replace(" he ", f" {name} ")
        return Rewrite(text, True, derive_edits(dialogue.utterance, text))


def test_the_words_of_an_answer_are_found() -> None:
    result = Rewrite(ROW.rewrite, True, derive_edits(ROW.dialogue.utterance, ROW.rewrite))
    assert find_words(ROW, result) == Words(1, 7, 20)
    asked = Row("2", Dialogue(("Who was Frank Herbert?", "A writer."), "When was he born?"), ROW.rewrite)
    assert find_words(asked, result) is None, "the user said it"


@pytest.mark.parametrize(
    ("form", "turn"),
    [
        ("plain", "It was Frank Herbert."),
        ("bold", "It was **Frank Herbert**."),
        ("link", "It was [Frank Herbert](https://www.example.com/a_b/c)."),
        ("bullet and bold", "- It was **Frank Herbert**."),
        ("bullet after a sentence", "Sure, here you go:\n\n- It was Frank Herbert."),
        ("heading", "## It was Frank Herbert."),
        ("table", "| | |\n|---|---|\n| 1 | It was Frank Herbert. |"),
    ],
)
def test_forms(form: str, turn: str) -> None:
    assert FORMS[form](ROW, Words(1, 7, 20)).dialogue.history == ("Who wrote Dune?", turn)


def test_rows_are_right_by_form_and_marks_are_found() -> None:
    rewriter = Copying()
    outcomes = measure(rewriter, [ROW], None)
    assert outcomes["plain"].right == outcomes["bullet"].right == [True]
    assert outcomes["bold"].right == outcomes["link"].right == [False]
    assert outcomes["bold"].read_as_plain == 1
    assert outcomes["bullet after a sentence"].read_as_plain == 0
    marked = FORMS["bold"](ROW, Words(1, 7, 20))
    assert find_marks(rewriter, [ROW, marked]) == ["When was **Frank Herbert** born?"]


def test_dialogues_are_marked_by_turns_and_then_again() -> None:
    rows = list(mark_dialogues([ROW] * 3))
    turns = [row.dialogue.history[-1] for row in rows]
    assert len(turns) == 3 * (len(FORMS) - 1)
    assert turns[:4] == [
        "It **was Frank Herbert**.",
        "It [was Frank Herbert](https://www.example.com/a_b/c).",
        "- It was Frank Herbert.",
        "It [was Frank Herbert](https://www.example.com/a_b/c).",
    ], "three dialogues in three forms, then the first one in the next"


def test_the_examples_are_those_of_the_readme() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    for history, utterance, rewrite in ANSWERED:
        assert all(f'"{text}"' in page for text in (history[0], utterance))
        assert f"\n{rewrite}\n" in page
    assert [found["right"] for found in answer_examples(Copying())] == [False, False, False]
