"""LangChain's own library against the adapter."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.errors import InputError, MissingExtraError

pytest.importorskip("langchain_core", reason="pip install 'teo-rewriter[langchain]'")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from teo.integrations.langchain import RewriteQuery, rewriting_retriever

HISTORY = [HumanMessage("I met Ada Lovelace."), AIMessage("Good for you.")]


@pytest.mark.parametrize(
    "history",
    [
        HISTORY,
        ["I met Ada Lovelace."],
        [("human", "I met Ada Lovelace."), ("ai", "Good.")],
        [{"role": "user", "content": "I met Ada Lovelace."}],
        [HumanMessage([{"type": "text", "text": "I met Ada Lovelace."}, {"type": "image_url", "image_url": "x"}])],
        [*HISTORY, SystemMessage("Speak of Grace Hopper."), ToolMessage("Alan Turing", tool_call_id="1")],
    ],
    ids=["messages", "strings", "pairs", "dictionaries", "parts", "other roles are no turns"],
)
def test_every_form_of_a_chat_history_is_read(rewriter: FakeRewriter, history: list[Any]) -> None:
    found = RewriteQuery(rewriter).invoke({"input": "is he here?", "chat_history": history})
    assert found == "is Ada Lovelace here?"


PARTS = AIMessage([{"type": "text", "text": "No, together with"}, {"type": "text", "text": "Pierre Curie."}])


@pytest.mark.parametrize(
    "given",
    [
        {"input": "When did he die?", "chat_history": [PARTS]},
        {"messages": [PARTS, HumanMessage("When did he die?")]},
    ],
    ids=["a question and its history", "messages"],
)
def test_the_parts_of_a_message_are_joined_with_a_space(rewriter: FakeRewriter, given: dict[str, Any]) -> None:
    RewriteQuery(rewriter).invoke(given)
    assert rewriter.batches[0][0].history == ("No, together with Pierre Curie.",)


@pytest.mark.parametrize("given", [{"input": "is he?"}, {"input": "is he?", "chat_history": []}])
def test_without_a_history_the_question_stays(rewriter: FakeRewriter, given: dict[str, Any]) -> None:
    assert RewriteQuery(rewriter).invoke(given) == "is he?"


PICTURE = HumanMessage([{"type": "image_url", "image_url": "x"}])
STATE = [PICTURE, *HISTORY, ToolMessage("Alan Turing", tool_call_id="1"), HumanMessage("is he here?")]


@pytest.mark.parametrize(
    "given",
    [
        {"messages": STATE},
        {"messages": [("human", "I met Ada Lovelace."), ("ai", "Good."), ("human", "is he here?")], "documents": []},
        STATE,
        tuple(STATE),
        ChatPromptValue(messages=STATE),
        {"input": "is he here?", "chat_history": HISTORY, "messages": []},
    ],
    ids=["a graph's state", "pairs", "a list", "a tuple", "a prompt", "the input comes first"],
)
def test_messages_are_a_question_and_its_history(rewriter: FakeRewriter, given: Any) -> None:
    assert RewriteQuery(rewriter).invoke(given) == "is Ada Lovelace here?"


def test_a_state_may_have_its_messages_under_another_name(rewriter: FakeRewriter) -> None:
    runnable = RewriteQuery(rewriter, messages_key="chat")
    assert runnable.invoke({"chat": STATE}) == "is Ada Lovelace here?"
    with pytest.raises(InputError, match=r"or \{'chat': \[...\]\}; found the keys messages"):
        runnable.invoke({"messages": STATE})


def test_a_batch_is_one_call_of_the_model_in_order(rewriter: FakeRewriter) -> None:
    inputs = [{"input": f"is he {k}?", "chat_history": HISTORY} for k in range(5)]
    expected = [f"is Ada Lovelace {k}?" for k in range(5)]
    runnable = RewriteQuery(rewriter)
    assert runnable.batch(inputs) == expected
    assert [len(batch) for batch in rewriter.batches] == [5]
    assert asyncio.run(runnable.abatch(inputs)) == expected
    assert [len(batch) for batch in rewriter.batches] == [5, 5]
    assert runnable.batch([]) == []


GOOD = {"input": "is he?", "chat_history": HISTORY}
BAD = {"question": "is he?"}


@pytest.mark.parametrize("awaited", [False, True])
def test_of_a_batch_only_a_bad_input_has_an_exception(rewriter: FakeRewriter, awaited: bool) -> None:
    runnable, collector = RewriteQuery(rewriter), RunCollectorCallbackHandler()
    settings: dict[str, Any] = {"config": {"callbacks": [collector]}, "return_exceptions": True}
    inputs = [GOOD, BAD, {"input": "x", "chat_history": [3]}, GOOD]
    found = asyncio.run(runnable.abatch(inputs, **settings)) if awaited else runnable.batch(inputs, **settings)
    assert found[::3] == ["is Ada Lovelace?"] * 2
    assert [type(each) for each in found[1:3]] == [InputError] * 2
    assert "found the keys question" in str(found[1])
    assert [len(batch) for batch in rewriter.batches] == [2], "one call of the model, for the good ones"
    assert [run.error is None for run in collector.traced_runs] == [True, False, False, True]
    with pytest.raises(InputError, match="found the keys question"):
        runnable.batch(inputs)
    assert len(rewriter.batches) == 1


def test_a_batch_of_bad_inputs_calls_no_model(rewriter: FakeRewriter) -> None:
    (found,) = RewriteQuery(rewriter).batch([BAD], return_exceptions=True)
    assert isinstance(found, InputError)
    assert rewriter.batches == []


def test_what_the_rewriter_refuses_or_fails_at_has_its_exception_in_its_place(rewriter: FakeRewriter) -> None:
    seen: list[str] = []
    runnable = RewriteQuery(rewriter, on_error="raise", on_rewrite=lambda _, result: seen.append(result.rewrite))
    refusal = InputError("history: too long")
    rewriter.try_many = lambda asked, **_: [*FakeRewriter().try_many(asked[:1]), refusal]  # type: ignore[method-assign]
    found = runnable.batch([GOOD, BAD, GOOD], return_exceptions=True)
    assert (found[0], found[2], seen) == ("is Ada Lovelace?", refusal, ["is Ada Lovelace?"])
    assert "found the keys question" in str(found[1])
    explode = {"input": "he may explode", "chat_history": HISTORY}
    down, bad = RewriteQuery(FakeRewriter(), on_error="raise").batch([explode, BAD], return_exceptions=True)
    assert (type(down), type(bad)) == (RuntimeError, InputError)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_retriever_searches_for_the_good_inputs_of_a_batch(rewriter: FakeRewriter, awaited: bool) -> None:
    retriever = rewriting_retriever(RunnableLambda(lambda query: [Document(query)]), rewriter)
    inputs, documents = [BAD, GOOD], [Document("is Ada Lovelace?")]
    if awaited:
        bad, found = asyncio.run(retriever.abatch(inputs, return_exceptions=True))
    else:
        bad, found = retriever.batch(inputs, return_exceptions=True)
    assert (type(bad), found) == (InputError, documents)


def test_it_runs_without_blocking_the_event_loop(rewriter: FakeRewriter) -> None:
    found = asyncio.run(RewriteQuery(rewriter).ainvoke({"input": "is he?", "chat_history": HISTORY}))
    assert found == "is Ada Lovelace?"
    assert "MainThread" not in rewriter.threads


def test_it_fits_into_chains_and_is_traced(rewriter: FakeRewriter) -> None:
    chain = RunnablePassthrough.assign(question=RewriteQuery(rewriter)) | RunnableLambda(lambda one: one["question"])
    collector = RunCollectorCallbackHandler()
    given = {"input": "is he?", "chat_history": HISTORY}
    assert chain.invoke(given, config={"callbacks": [collector]}) == "is Ada Lovelace?"
    names = {run.name for run in _all_runs(collector.traced_runs)}
    assert "RewriteQuery" in names


def _all_runs(runs: list[Any]) -> list[Any]:
    return [one for run in runs for one in (run, *_all_runs(run.child_runs))]


def test_the_threshold_the_keys_and_the_view_of_each_rewrite_are_options(rewriter: FakeRewriter) -> None:
    seen: list[tuple[str, str, float]] = []
    runnable = RewriteQuery(
        rewriter,
        input_key="question",
        history_key="history",
        min_confidence=0.1,
        on_rewrite=lambda dialogue, result: seen.append((dialogue.utterance, result.rewrite, result.confidence)),
    )
    assert runnable.invoke({"question": "maybe he", "history": HISTORY}) == "maybe Ada Lovelace"
    assert seen == [("maybe he", "maybe Ada Lovelace", 0.25)]


def test_a_retriever_is_asked_with_the_rewritten_question(rewriter: FakeRewriter) -> None:
    asked: list[str] = []

    def look_up(query: str) -> list[Document]:
        asked.append(query)
        return [Document(query)]

    retriever = rewriting_retriever(RunnableLambda(look_up), rewriter)
    assert retriever.invoke({"input": "is he?", "chat_history": HISTORY}) == [Document("is Ada Lovelace?")]
    retriever.batch([{"input": "is he?", "chat_history": HISTORY}] * 2)
    assert asked == ["is Ada Lovelace?"] * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("is he?", "input: expected a dictionary with a string here, such as {'input': '...'}, or messages: a list"),
        ({"chat_history": []}, "input: expected a dictionary with a string here"),
        ({"messages": "is he?"}, "messages: expected a list of messages, found a str"),
        ({"input": HumanMessage("x")}, "input: expected a dictionary with a string here, such as {'input': '...'}, or"),
        (
            {"messages": [{"role": "narrator", "content": "x"}, HumanMessage("y")]},
            "messages: expected messages that LangChain can read; found others: Unexpected message type: 'narrator'",
        ),
        (
            {"input": "x", "chat_history": [3]},
            "chat_history: expected messages that LangChain can read; found others: Unsupported message type",
        ),
        ({"messages": []}, "messages: expected at least one message, found none"),
        ([HumanMessage("a"), AIMessage("b")], "messages[1]: expected the user's message at the end"),
        (
            [HumanMessage([{"type": "image_url", "image_url": "x"}])],
            "messages[0].content: expected text, found none",
        ),
        ({"input": "x", "chat_history": "Human: hi"}, "chat_history: expected a list of messages, found a str"),
    ],
)
def test_bad_input_is_named(rewriter: FakeRewriter, given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        RewriteQuery(rewriter).invoke(given)
    assert str(caught.value).startswith(message)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.documents", None)
    monkeypatch.delitem(sys.modules, "teo.integrations.langchain")
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("teo.integrations.langchain")
    assert str(caught.value).endswith("which is not installed: pip install 'teo-rewriter[langchain]'")


def test_the_example_finds_what_was_meant(example: Callable[[str], Any], rewriter: FakeRewriter, capsys: Any) -> None:
    found = example("langchain_retriever").main(rewriter)
    assert found[0].page_content.startswith("Pierre Curie died in Paris")
    assert "'When did he die?' -> 'When did Pierre Curie die?'" in capsys.readouterr().out


def test_the_example_works_with_a_server(example: Callable[[str], Any], live_server: Callable[..., Any]) -> None:
    module = example("langchain_retriever")
    with live_server() as url:
        assert "1906" in module.main(module.RemoteRewriter(url))[0].page_content
