from __future__ import annotations

import pytest

from teo import Dialogue
from teo.errors import InputError


def test_turns_become_an_immutable_dialogue() -> None:
    dialogue = Dialogue.from_turns(["a", "b"], "c")
    assert dialogue == Dialogue(("a", "b"), "c")
    assert hash(dialogue) == hash(Dialogue(("a", "b"), "c"))


@pytest.mark.parametrize(
    ("messages", "expected", "reason"),
    [
        ([{"role": "user", "content": "hi"}], Dialogue((), "hi"), "one message is an utterance without history"),
        (
            [
                {"role": "system", "content": "be nice"},
                {"role": "user", "content": "a"},
                {"role": "user", "content": "b"},
            ],
            Dialogue(("a",), "b"),
            "a system message was not said by anybody",
        ),
        (
            [
                {"role": "tool", "content": "42"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "b"},
            ],
            Dialogue(("a",), "b"),
            "a tool's output is not dialogue",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}],
            Dialogue((), "a"),
            "content parts: text is kept, pictures have none",
        ),
        (
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": None},
                {"role": "user", "content": "b"},
            ],
            Dialogue(("a", ""), "b"),
            "an assistant message that only calls a tool has no text",
        ),
        ([{"role": "system", "content": "x"}], Dialogue((), "x"), "the last message is rewritten whatever its role"),
    ],
)
def test_messages(messages: list[dict[str, object]], expected: Dialogue, reason: str) -> None:
    assert Dialogue.from_messages(messages) == expected, reason


@pytest.mark.parametrize(
    ("row", "wording"),
    [
        (3, "expected a JSON object with history and utterance, or messages; found a number"),
        ({}, "utterance: missing"),
        ({"utterance": 5}, "utterance: expected a string, found a number"),
        ({"utterance": None}, "utterance: expected a string, found nothing"),
        ({"history": "hello", "utterance": "x"}, "history: expected a list of strings"),
        ({"history": ["a", 3], "utterance": "x"}, r"history\[1\]: expected a string, found a number"),
        ({"history": 7, "utterance": "x"}, "history: expected a list of strings, found a number"),
        ({"messages": []}, "messages: expected at least one message, found none"),
        ({"messages": "hi"}, "messages: expected a list of chat messages"),
        ({"messages": ["hi"]}, r"messages\[0\]: expected an object with role and content"),
        ({"messages": [{"content": "hi"}]}, r"messages\[0\]\.role: expected a string"),
        ({"messages": [{"role": "user"}]}, r"messages\[0\]\.content: expected a string, found nothing"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, r"messages\[0\]\.content\[0\]: expected an object"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            r"messages\[0\]\.content\[0\]\.text: expected a string",
        ),
        (
            {"messages": [{"role": "user", "content": "x"}], "utterance": "y"},
            "either messages or history and utterance",
        ),
    ],
)
def test_a_bad_row_names_its_field(row: object, wording: str) -> None:
    with pytest.raises(InputError, match=wording):
        Dialogue.from_row(row)


def test_a_row_may_leave_out_its_history() -> None:
    assert Dialogue.from_row({"utterance": "x", "id": 7}) == Dialogue((), "x")
    assert Dialogue.from_row({"messages": [{"role": "user", "content": "x"}]}) == Dialogue((), "x")
