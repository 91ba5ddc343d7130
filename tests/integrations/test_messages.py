"""Messages of the usual libraries, as they come."""

from __future__ import annotations

import pytest

from teo import Dialogue
from teo.errors import InputError


def test_messages_of_the_usual_libraries_are_read() -> None:
    expected = Dialogue(("a", "b"), "c", ("user", "assistant", "user"))
    openai = pytest.importorskip("openai.types.chat")
    answer = openai.ChatCompletionMessage(role="assistant", content="b")
    refusal = openai.ChatCompletionMessage(role="assistant", content=None, refusal="no")
    asked, last = {"role": "user", "content": "a"}, {"role": "user", "content": "c"}
    assert Dialogue.from_messages([asked, answer, refusal, last]) == expected
    responses = pytest.importorskip("openai.types.responses")
    text = responses.ResponseOutputText(type="output_text", text="b", annotations=[])
    call = responses.ResponseFunctionToolCall(type="function_call", name="f", call_id="1", arguments="{}")
    output = responses.ResponseOutputMessage(
        id="1", type="message", role="assistant", status="completed", content=[text]
    )
    thought = responses.ResponseReasoningItem(
        id="2", type="reasoning", summary=[], content=[{"type": "reasoning_text", "text": "hm"}]
    )
    assert Dialogue.from_messages([asked, thought, call, output, last]) == expected


def test_anthropics_blocks_are_read() -> None:
    call = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "42"}]},
        {"role": "user", "content": [{"type": "image", "source": {}}, {"type": "text", "text": "c"}]},
    ]
    assert Dialogue.from_messages(messages) == Dialogue(("a", "b"), "c", ("user", "assistant", "user"))
    with pytest.raises(InputError, match=r"messages\[2\]\.content: expected text, found none in its 1 parts"):
        Dialogue.from_messages(messages[:3])


def test_langchains_messages_are_read() -> None:
    library = pytest.importorskip("langchain_core.messages")
    call = {"name": "f", "args": {}, "id": "1"}
    messages = [
        library.SystemMessage("be nice"),
        library.HumanMessage("a"),
        library.AIMessage("", tool_calls=[call]),
        library.ToolMessage("42", tool_call_id="1"),
        library.AIMessageChunk([{"type": "text", "text": "b"}]),
        library.ChatMessage("c", role="user"),
    ]
    assert Dialogue.from_messages(messages) == Dialogue(("a", "b"), "c", ("user", "assistant", "user"))


def test_llama_indexs_messages_are_read() -> None:
    library = pytest.importorskip("llama_index.core.llms")
    message, picture = library.ChatMessage, library.ImageBlock(url="https://a.b/c.png")
    messages = [
        message(role="system", content="x"),
        message("a"),
        message(role="assistant", blocks=[picture]),
        message(role="chatbot", blocks=[library.TextBlock(text="b"), picture]),
        message(role="tool", content="42"),
        message("c"),
    ]
    assert Dialogue.from_messages(messages) == Dialogue(("a", "b"), "c", ("user", "assistant", "user"))
    with pytest.raises(InputError, match=r"messages\[0\]\.content: expected a string, found nothing"):
        Dialogue.from_messages([message(role="user", blocks=[picture])])
    with pytest.raises(InputError, match=r"expected the user's message at the end, which is rewritten; found 'tool'"):
        Dialogue.from_messages(messages[:-1])


def test_haystacks_messages_are_read() -> None:
    library = pytest.importorskip("haystack.dataclasses")
    message, call = library.ChatMessage, library.ToolCall(tool_name="f", arguments={}, id="1")
    messages = [
        message.from_system("x"),
        message.from_user("a"),
        message.from_assistant(tool_calls=[call]),
        message.from_tool("42", origin=call),
        message.from_assistant("b"),
        message.from_user("c"),
    ]
    expected = Dialogue(("a", "b"), "c", ("user", "assistant", "user"))
    assert Dialogue.from_messages(messages) == expected
    assert Dialogue.from_messages([one.to_dict() for one in messages]) == expected, "as they are saved"
    with pytest.raises(InputError, match=r"expected the user's message at the end, which is rewritten; found 'tool'"):
        Dialogue.from_messages(messages[:4])
