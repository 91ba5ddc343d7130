"""The fallback: only unsure utterances are asked for, edits give the rewrite, a failing model changes nothing."""

from __future__ import annotations

import gc
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from scripted import ScriptedGenerator, rewriter_of
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.fallback import FallbackRewriter
from teo.rewriter import Rewriter


class FakeModel:
    """Answers every dialogue alike, or fails, and remembers what it was asked."""

    def __init__(self, text: str | Exception) -> None:
        self.text, self.dialogues = text, list[Dialogue]()

    def __call__(self, dialogue: Dialogue) -> str:
        self.dialogues.append(dialogue)
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


def local_of(sure: bool = False) -> Rewriter:
    scores = (0.0, 0.0) if sure else (-3.0, -3.0)
    return rewriter_of(ScriptedGenerator(lambda _source, _prompt: ("is ben here",), lambda _source: scores))


def fallback_of(text: str | Exception, sure: bool = False) -> tuple[FallbackRewriter, FakeModel]:
    model = FakeModel(text)
    return FallbackRewriter(local_of(sure), model), model


def test_an_unsure_utterance_is_taken_over() -> None:
    rewriter, model = fallback_of(" is tom here\n")
    record = rewriter.rewrite(["tom came"], "is he here")
    assert (record.rewrite, record.changed, record.reason, record.confidence) == ("is tom here", True, None, None)
    assert record.edits.apply("is he here") == record.rewrite
    assert record.operations == "[D] he [R] tom"
    assert (rewriter.asked, model.dialogues) == (1, [Dialogue(("tom came",), "is he here")])


@pytest.mark.parametrize(
    ("text", "reason", "why"),
    [
        (TeoError("nobody there"), "unsure", "the model fails"),
        (RuntimeError("a stranger's error"), "unsure", "it fails in a way of its own"),
        ("", "unsure", "no text"),
        ("tom " * 200, "unsure", "a text that ran away"),
        ("is he here", "complete", "the model sees nothing to change"),
    ],
)
def test_the_utterance_stays_unchanged(text: str | Exception, reason: str, why: str) -> None:
    rewriter, _ = fallback_of(text)
    record = rewriter.rewrite(["tom came"], "is he here")
    assert (record.rewrite, record.changed, record.reason) == ("is he here", False, reason), why
    assert (rewriter.asked, rewriter.failures) == (1, isinstance(text, Exception))


def test_the_log_quotes_no_user(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        fallback_of(ValueError("is he here"))[0].rewrite(["tom came"], "is he here")
        fallback_of(TeoError("nobody there"))[0].rewrite(["tom came"], "is he here")
    said = [record.getMessage() for record in caplog.records if record.name == FallbackRewriter.__module__]
    assert [text.rpartition(": ")[2] for text in said] == ["ValueError", "nobody there"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["coroutine", "nothing", "object", "SimpleNamespace"])
def test_an_answer_that_is_no_string_is_a_failure_of_its_dialogue_alone(
    kind: str, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    async def answer() -> str:
        return "is tom here"

    others: dict[str, Any] = {"nothing": None, "object": {}, "SimpleNamespace": SimpleNamespace(content="is tom here")}

    def ask(dialogue: Dialogue) -> Any:
        if dialogue.utterance == "is he here":
            return "is tom here"
        return answer() if kind == "coroutine" else others[kind]

    rewriter = FallbackRewriter(local_of(), ask)
    turns = [Dialogue(("tom came",), text) for text in ("is he here", "was he here")]
    found, kept = rewriter.rewrite_many(turns)
    gc.collect()
    assert (found.rewrite, kept.rewrite, kept.reason) == ("is tom here", "was he here", "unsure")
    assert (rewriter.asked, rewriter.failures, recwarn.list) == (2, 1, [])
    (warning,) = [record.getMessage() for record in caplog.records if record.name == FallbackRewriter.__module__]
    assert "ask: expected a function that returns a string, found one that returned " in warning
    assert warning.endswith(kind)


def test_nothing_else_reaches_the_model() -> None:
    rewriter, model = fallback_of("is tom here", sure=True)
    assert rewriter.rewrite(["tom came"], "is he here").rewrite == "is ben here"
    assert rewriter.rewrite([], "is he here").reason == "no-history"
    assert model.dialogues == []


def test_many_keep_their_order_and_their_errors() -> None:
    """Two wait for each other: they are asked at once. A bad row has its error in its place."""
    both = threading.Barrier(2, timeout=20)

    def ask(dialogue: Dialogue) -> str:
        both.wait()
        return f"is {dialogue.history[0].split()[0]} here"

    rewriter = FallbackRewriter(local_of(), ask)
    rows = [
        {"history": ["tom came"], "utterance": "is he here"},
        {"utterance": 3},
        {"messages": [{"role": "assistant", "content": "ann came"}, {"role": "user", "content": "is he here"}]},
    ]
    first, bad, last = rewriter.try_many(rows, n_best=2)
    assert isinstance(bad, InputError)
    assert [record.rewrite for record in (first, last)] == ["is tom here", "is ann here"]
    assert first.alternatives == (), "those of the rewriter do not hold the answer"
    assert (rewriter.asked, rewriter.failures) == (2, 0)


def test_no_thread_is_a_mistake() -> None:
    with pytest.raises(InputError, match="concurrency: expected"):
        FallbackRewriter(local_of(), str, concurrency=0)
