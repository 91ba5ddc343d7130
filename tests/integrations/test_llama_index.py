"""LlamaIndex's own library against the adapter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.errors import InputError, MissingExtraError

pytest.importorskip("llama_index.core", reason="pip install 'teo-rewriter[llama-index]'")

from llama_index.core.llms import ChatMessage
from llama_index.core.query_engine import CustomQueryEngine, TransformQueryEngine
from llama_index.core.schema import QueryBundle

from teo.integrations.llama_index import RewriteTransform

HISTORY = [
    ChatMessage(role="system", content="Speak of Grace Hopper."),
    ChatMessage(role="user", content="I met Ada Lovelace."),
    ChatMessage(role="tool", content="Alan Turing"),
    ChatMessage(role="assistant", content=None),
]


def test_the_history_comes_from_metadata(rewriter: FakeRewriter) -> None:
    found = RewriteTransform(rewriter).run("is he here?", metadata={"chat_history": HISTORY})
    assert found.query_str == "is Ada Lovelace here?"
    assert found.embedding_strs == ["is Ada Lovelace here?"]


def test_or_from_a_function_that_is_asked_every_time(rewriter: FakeRewriter) -> None:
    talk = ["I met Ada Lovelace."]
    transform = RewriteTransform(rewriter, history=lambda: talk)
    assert transform("is he?").query_str == "is Ada Lovelace?"
    talk.append("And Alan Turing.")
    assert "Turing" in transform("is he?").query_str
    assert transform("is he?", metadata={"chat_history": ["Grace Hopper"]}).query_str == "is Grace Hopper?"


def test_a_question_that_stays_keeps_its_bundle(rewriter: FakeRewriter) -> None:
    bundle = QueryBundle("is it?", custom_embedding_strs=["other"], embedding=[1.0])
    assert RewriteTransform(rewriter).run(bundle, metadata={"chat_history": HISTORY}) is bundle
    assert RewriteTransform(rewriter).run("is he?").query_str == "is he?", "no history at all"


def test_an_embedding_of_the_question_as_asked_is_not_kept(rewriter: FakeRewriter) -> None:
    bundle = QueryBundle("is he?", custom_embedding_strs=["is he?"], embedding=[1.0])
    found = RewriteTransform(rewriter).run(bundle, metadata={"chat_history": HISTORY})
    assert (found.embedding, found.embedding_strs) == (None, ["is Ada Lovelace?"])


def test_it_stands_before_a_query_engine(rewriter: FakeRewriter) -> None:
    class Echo(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            return f"asked: {query_str}"

    seen: list[str] = []
    transform = RewriteTransform(
        rewriter, min_confidence=0.1, on_rewrite=lambda dialogue, result: seen.append(result.operations)
    )
    engine = TransformQueryEngine(Echo(), transform, transform_metadata={"chat_history": HISTORY})
    assert str(engine.query("maybe he")) == "asked: maybe Ada Lovelace"
    assert seen == ["[D] he [R] Ada Lovelace"]
    assert transform.get_prompts() == {}


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("user: hi", "chat_history: expected a list of messages, found a str"),
        (["ok", {"role": "user"}], "chat_history[1]: expected a ChatMessage or a string, found a dict"),
    ],
)
def test_bad_input_is_named(rewriter: FakeRewriter, history: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        RewriteTransform(rewriter).run("is he?", metadata={"chat_history": history})
    assert str(caught.value) == message


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index.core.llms", None)
    monkeypatch.delitem(sys.modules, "teo.integrations.llama_index")
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("teo.integrations.llama_index")
    assert str(caught.value).endswith("which is not installed: pip install 'teo-rewriter[llama-index]'")


def test_the_example_finds_what_was_meant(example: Callable[[str], Any], rewriter: FakeRewriter) -> None:
    assert example("llama_index_transform").main(rewriter)[0].text.startswith("Pierre Curie died in Paris")
