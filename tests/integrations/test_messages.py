"""Messages of the usual libraries, as they come."""

from __future__ import annotations

import pytest

from teo import Dialogue


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
    assert Dialogue.from_messages([asked, call, output, last]) == expected


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


def test_llama_indexs_and_haystacks_messages_are_read() -> None:
    expected = Dialogue(("a", "b"), "c", ("user", "assistant", "user"))
    llama = pytest.importorskip("llama_index.core.llms").ChatMessage
    assert (
        Dialogue.from_messages(
            [llama(role="system", content="x"), llama("a"), llama(role="chatbot", content="b"), llama("c")]
        )
        == expected
    )
    haystack = pytest.importorskip("haystack.dataclasses").ChatMessage
    assert (
        Dialogue.from_messages(
            [haystack.from_system("x"), haystack.from_user("a"), haystack.from_assistant("b"), haystack.from_user("c")]
        )
        == expected
    )
