"""Haystack's own library against the component."""

# No `from __future__ import annotations`: older versions of Haystack 2 do not resolve annotations that are strings.
import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.errors import InputError, MissingExtraError

pytest.importorskip("haystack", reason="pip install 'teo-rewriter[haystack]'")

from haystack import Pipeline, component
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from teo.integrations.haystack import QueryRewriter

HISTORY = [
    ChatMessage.from_system("Speak of Grace Hopper."),
    ChatMessage.from_user("I met Ada Lovelace."),
    ChatMessage.from_assistant("Good for you."),
]


@component
class Conversation:
    """A component that gives the messages so far."""

    @component.output_types(messages=list[ChatMessage])
    def run(self, user: str) -> dict[str, Any]:
        return {"messages": [*HISTORY, ChatMessage.from_user(f"{user} asks.")]}


@component
class Echo:
    """A component that gives what it is asked."""

    @component.output_types(asked=str)
    def run(self, query: str) -> dict[str, Any]:
        return {"asked": query}


def build(rewrite: QueryRewriter) -> Pipeline:
    pipeline = Pipeline()
    for name, part in {"conversation": Conversation(), "rewrite": rewrite, "echo": Echo()}.items():
        pipeline.add_component(name, part)
    pipeline.connect("conversation.messages", "rewrite.history")
    pipeline.connect("rewrite.query", "echo.query")
    return pipeline


def test_it_stands_in_a_pipeline_between_a_conversation_and_a_retriever(rewriter: FakeRewriter) -> None:
    found = build(QueryRewriter(rewriter=rewriter)).run(
        {"conversation": {"user": "Someone"}, "rewrite": {"query": "is he here?"}}, include_outputs_from={"rewrite"}
    )
    assert found["echo"]["asked"] == found["rewrite"]["query"] == "is Ada Lovelace here?"
    assert found["rewrite"]["record"] == rewriter.rewrite(["I met Ada Lovelace."], "is he here?").to_dict()
    assert rewriter.batches[0][0].history == ("I met Ada Lovelace.", "Good for you.", "Someone asks.")


@pytest.mark.parametrize(
    "history", [HISTORY, ["I met Ada Lovelace."], ["Hm.", HISTORY[1]]], ids=["messages", "strings", "both"]
)
def test_messages_and_strings_are_turns(rewriter: FakeRewriter, history: list[Any]) -> None:
    assert QueryRewriter(rewriter=rewriter).run("is he?", history)["query"] == "is Ada Lovelace?"


def test_without_a_history_the_question_stays(rewriter: FakeRewriter) -> None:
    assert QueryRewriter(rewriter=rewriter).run("is he?")["query"] == "is he?"


def test_it_runs_without_blocking_the_event_loop(rewriter: FakeRewriter) -> None:
    found = asyncio.run(QueryRewriter(rewriter=rewriter).run_async("is he?", HISTORY))
    assert found["query"] == "is Ada Lovelace?"
    assert "MainThread" not in rewriter.threads


def test_the_threshold_and_the_view_of_each_rewrite_are_options(rewriter: FakeRewriter) -> None:
    seen: list[str] = []
    adapter = QueryRewriter(
        rewriter=rewriter, min_confidence=0.1, on_rewrite=lambda dialogue, result: seen.append(result.operations)
    )
    assert adapter.run("maybe he", HISTORY)["query"] == "maybe Ada Lovelace"
    assert seen == ["[D] he [R] Ada Lovelace"]


def test_a_pipeline_is_saved_and_loaded(live_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEO_TEST_TOKEN", "secret")
    with live_server(token="secret") as url:
        pipeline = Pipeline()
        token = Secret.from_env_var("TEO_TEST_TOKEN")
        pipeline.add_component("rewrite", QueryRewriter(url=url, token=token, min_confidence=0.1, timeout=20.0))
        saved = pipeline.dumps()
        assert "secret" not in saved
        # From version 3 on, Haystack loads components of others only where the caller allows it.
        allows = "allowed_modules" in inspect.signature(Pipeline.loads).parameters
        options = {"allowed_modules": ["teo.integrations.haystack"]} if allows else {}
        loaded = Pipeline.loads(saved, **options)
        assert loaded.dumps() == saved
        found = loaded.run({"rewrite": {"query": "maybe he", "history": HISTORY}})
    assert found["rewrite"]["query"] == "maybe Ada Lovelace"


def test_the_embedded_model_is_loaded_when_the_pipeline_is() -> None:
    adapter = QueryRewriter()
    assert adapter.to_dict()["init_parameters"]["model"] is None
    history = ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."]
    assert adapter.run("When did he die?", history)["query"] == "When did Pierre Curie die?"
    assert adapter.failures == 0


def test_what_cannot_be_saved_is_said(rewriter: FakeRewriter) -> None:
    with pytest.raises(InputError, match="rewriter, on_rewrite: cannot be saved with a pipeline; give the component"):
        QueryRewriter(rewriter=rewriter).to_dict()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda adapter: adapter.run(3), "query: expected a string, found a int"),
        (lambda adapter: adapter.run("x", "user: hi"), "history: expected a list of messages, found a str"),
        (lambda adapter: adapter.run("x", [{}]), "history[0]: expected a ChatMessage or a string, found a dict"),
        (lambda _: QueryRewriter("m", url="http://x"), "model: expected at most one of model, url and rewriter"),
    ],
)
def test_bad_input_is_named(rewriter: FakeRewriter, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        call(QueryRewriter(rewriter=rewriter))
    assert str(caught.value).startswith(message)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "haystack.dataclasses", None)
    monkeypatch.delitem(sys.modules, "teo.integrations.haystack")
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("teo.integrations.haystack")
    assert str(caught.value).endswith("which is not installed: pip install 'teo-rewriter[haystack]'")


def test_the_example_finds_what_was_meant(example: Callable[[str], Any], rewriter: FakeRewriter, capsys: Any) -> None:
    module = example("haystack_pipeline")
    assert module.main(QueryRewriter(rewriter=rewriter))[0].content.startswith("Pierre Curie died in Paris")
    assert "'When did he die?' -> 'When did Pierre Curie die?'" in capsys.readouterr().out
