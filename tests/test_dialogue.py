from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from teo import Dialogue
from teo.errors import InputError


def test_turns_become_an_immutable_dialogue() -> None:
    dialogue = Dialogue.from_turns(["a", "b"], "c")
    assert dialogue == Dialogue(("a", "b"), "c")
    assert hash(dialogue) == hash(Dialogue(("a", "b"), "c"))


def test_lists_become_tuples() -> None:
    dialogue = Dialogue(["a"], "b", ["assistant", "user"])  # type: ignore[arg-type]
    assert dialogue == Dialogue(("a",), "b", ("assistant", "user"))
    assert hash(dialogue) == hash(Dialogue(("a",), "b", ("assistant", "user")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a string", "x"), "history: expected a list of strings, found a string; pass one string per turn"),
        ((None, "x"), "history: expected a list of strings, found nothing; pass one string per turn"),
        (({"a"}, "x"), "history: expected a list of strings, found a set; pass one string per turn"),
        ((("a", 3), "x"), r"history\[1\]: expected a string, found a number"),
        ((("a",), None), "utterance: expected a string, found nothing"),
        ((("a",), ["x"]), "utterance: expected a string, found a list"),
        ((("a",), "x", "user"), "speakers: expected a list of strings, found a string"),
        ((("a",), "x", (None, "user")), r"speakers\[0\]: expected a string, found nothing"),
        ((("a",), "x", ("user",)), "speakers: expected one per turn and one for the utterance, 2 in all, found 1"),
    ],
)
def test_what_is_no_dialogue_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Dialogue(*arguments)


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
        (
            [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
                {"role": "assistant", "content": "A cat."},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "black"}]},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "no"},
                {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
                {"role": "assistant", "tool_calls": [{"id": "1"}]},
                {"role": "assistant", "refusal": "no"},
                {"role": "assistant", "content": []},
                {"role": "user", "content": None},
                {"role": "user", "content": " \n"},
                {"role": "user", "content": "Is it black?"},
            ],
            Dialogue(("A cat.",), "Is it black?"),
            "pictures, tool results, refusals, calls and empty texts of the history are skipped",
        ),
        (
            [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"type": "reasoning", "summary": []},
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "function_call", "name": "f", "call_id": "1", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "42"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
                {"role": "user", "content": "c"},
            ],
            Dialogue(("a", "b"), "c"),
            "OpenAI's responses: items that nobody said have no role",
        ),
        (
            [
                {"type": "human", "content": "a"},
                {"role": "assistant", "content": [{"type": "text", "text": {"value": "b", "annotations": []}}]},
                {"type": "HumanMessageChunk", "content": ["c", {"type": "text", "text": "d"}]},
            ],
            Dialogue(("a", "b"), "c d"),
            "LangChain's types, the texts of OpenAI's assistants, and parts that are strings",
        ),
        ([{"role": "user", "content": ""}], Dialogue((), ""), "an empty text is an empty utterance"),
    ],
)
def test_messages(messages: list[dict[str, object]], expected: Dialogue, reason: str) -> None:
    found = Dialogue.from_messages(messages)
    assert (found.history, found.utterance) == (expected.history, expected.utterance), reason


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
        (
            {"messages": [{"role": "user", "content": None}]},
            r"messages\[0\]\.content: expected a string, found nothing",
        ),
        ({"messages": [{"role": "user"}]}, r"messages\[0\]\.content: expected a string, found nothing"),
        (
            {"messages": [{"role": "model", "parts": [{"text": "x"}]}, {"role": "user", "content": "x"}]},
            r"messages\[0\]\.content: missing; found role, parts; a message is",
        ),
        (
            {"messages": [{"type": "human", "data": {"content": "x"}}, {"role": "user", "content": "x"}]},
            r"messages\[0\]\.content: missing; found type, data; a message is",
        ),
        ({"messages": [{"role": "user", "content": [3]}]}, r"messages\[0\]\.content\[0\]: expected an object"),
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
        (
            {"messages": [{"role": "user", "content": "x"}], "history": ["y"]},
            "either messages or history and utterance",
        ),
        ({"messages": [{"role": "user", "content": {"text": "x"}}]}, "content: expected a string, found an object"),
        ({"messages": [{"type": "message", "content": "x"}]}, r"messages\[0\]\.role: expected user"),
        (
            {"history": [{"role": "user", "content": "x"}], "utterance": "y"},
            r"history\[0\]: expected a string, found a chat message; use messages=",
        ),
        ({"question": "x", "id": 1}, r"utterance: missing; found question, id; a row is \{\"history\": \["),
        ({"context": ["x"], "utterance": "y"}, "history: missing; found context, utterance; a row is"),
        (dict.fromkeys("abcdefghij"), "utterance: missing; found a, b, c, d, e, f, g, h, ...; a row"),
    ],
)
def test_a_bad_row_names_its_field(row: object, wording: str) -> None:
    with pytest.raises(InputError, match=wording):
        Dialogue.from_row(row)


def test_a_history_may_be_empty() -> None:
    assert Dialogue.from_row({"history": [], "utterance": "x", "id": 7}) == Dialogue((), "x")
    assert Dialogue.from_row({"history": None, "utterance": "x"}) == Dialogue((), "x"), "as JSON has nothing"
    assert Dialogue.from_row({"messages": None, "history": ["a"], "utterance": "x"}) == Dialogue(("a",), "x")
    row = {"messages": [{"role": "user", "content": "x"}], "history": None, "utterance": None}
    assert Dialogue.from_row(row) == Dialogue((), "x", ("user",)), "as tables have nothing in a column"


@pytest.mark.parametrize("role", ["assistant", "system", "developer", "tool"])
def test_the_last_message_is_the_users(role: str) -> None:
    messages = [{"role": "user", "content": "Who wrote Dune?"}, {"role": role, "content": "Frank Herbert"}]
    wording = rf"messages\[1\]: expected the user's message at the end, which is rewritten; found '{role}'"
    with pytest.raises(InputError, match=wording):
        Dialogue.from_messages(messages)
    with pytest.raises(InputError, match="found 'tool'"):
        Dialogue.from_messages([*messages[:1], {"type": "function_call_output", "output": "42"}])


@dataclass
class Part:
    type: str
    text: str | None = None


@dataclass
class Speaker:
    role: str


@dataclass
class Message:
    content: object
    role: str | None = None
    type: str | None = None


def test_objects_are_read_like_dictionaries() -> None:
    messages = [
        Message("be nice", role="system"),
        Message("a", role="user"),
        Message([Part("text", "b"), Part("tool_use")], role="assistant"),
        Message([Part("thinking")], role="assistant"),
        Message("c", type="ai"),
        Message([{"type": "input_text", "text": "d"}], type="human"),
    ]
    assert Dialogue.from_messages(messages) == Dialogue(
        ("a", "b", "c"), "d", ("user", "assistant", "assistant", "user")
    )
    with pytest.raises(InputError, match=r"messages\[0\]: expected an object with role and content, found a object"):
        Dialogue.from_messages([object()])
    with pytest.raises(InputError, match=r"messages\[0\]: expected an object with role and content, found a Speaker"):
        Dialogue.from_messages([Speaker("user"), *messages])
    with pytest.raises(InputError, match=r"messages\[0\].content: expected a string, found a Part"):
        Dialogue.from_messages([Message(Part("text", "x"), role="user")])


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
    assert dialogue != Dialogue(("a", "b"), "c"), "a layout may read who said a turn"
    assert dialogue == Dialogue(("a", "b"), "c", dialogue.speakers)
    assert Dialogue.from_turns(["a"], "b").speakers is None, "not known"
    with pytest.raises(InputError, match=r"speakers: expected one per turn and one for .* 2 in all, found 1"):
        Dialogue(("a",), "b", ("user",))
