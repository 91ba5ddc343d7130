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
            Dialogue(("a",), "b"),
            "an assistant message that only calls a tool says nothing",
        ),
        (
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [{"type": "tool_use", "name": "search"}]},
                {"role": "tool", "content": [{"type": "image"}]},
                {"role": "user", "content": "b"},
            ],
            Dialogue(("a",), "b"),
            "a call among the parts says nothing, and what a tool gives back is not read",
        ),
        (
            [
                {"role": "Human", "content": "a"},
                {"role": "AI", "content": "b"},
                {"role": " bot ", "content": "c"},
                {"role": "model", "content": "d"},
                {"role": "Developer", "content": "x"},
                {"role": "function", "content": "y"},
                {"role": "USER", "content": "e"},
            ],
            Dialogue(("a", "b", "c", "d"), "e"),
            "the usual other names of roles, in any case",
        ),
        (
            [{"role": "user", "content": [{"type": "input_text", "text": "When was he"}, {"text": "born?"}]}],
            Dialogue((), "When was he born?"),
            "parts are joined with a space where none is",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}],
            Dialogue((), "a b"),
            "no second space",
        ),
        (
            [
                {"role": "assistant", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal"}]},
                {"role": "user", "content": [{"type": "text", "text": None}, {"type": "text", "text": "b"}]},
            ],
            Dialogue(("a",), "b"),
            "a part without text is skipped",
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
            r"messages\[0\]\.content: expected text, found none in its 1 parts",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]},
            r"messages\[0\]\.content\[0\]\.text: expected a string, found a number",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}, {"type": "input_audio"}]}]},
            r"messages\[0\]\.content: expected text, found none in its 2 parts; parts of type text, input_text",
        ),
        ({"messages": [{"role": "user", "content": []}]}, "expected text, found none in its 0 parts"),
        (
            {"messages": [{"role": "narrator", "content": "x"}, {"role": "user", "content": "x"}]},
            r"messages\[0\]\.role: expected user, human, assistant, .* developer; found 'narrator'",
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
    assert Dialogue.from_row({"history": None, "utterance": "x"}) == Dialogue((), "x"), "as JSON has nothing"
    assert Dialogue.from_row({"messages": [{"role": "user", "content": "x"}]}) == Dialogue((), "x")


def test_messages_keep_who_said_a_turn() -> None:
    messages = [
        {"role": "system", "content": "be nice"},
        {"role": "Human", "content": "a"},
        {"role": "ai", "content": "b"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "c"},
    ]
    dialogue = Dialogue.from_messages(messages)
    assert dialogue.speakers == ("user", "assistant", "user")
    assert dialogue == Dialogue(("a", "b"), "c"), "equal by what was said"
    assert hash(dialogue) == hash(Dialogue(("a", "b"), "c"))
    assert Dialogue.from_turns(["a"], "b").speakers is None, "not known"
    with pytest.raises(InputError, match=r"speakers: expected one per turn and one for .* 2 in all, found 1"):
        Dialogue(("a",), "b", ("user",))
