"""When the rewriter is down or slow: utterances go through as they are, are counted, and are logged; or errors are."""

from __future__ import annotations

import json
import logging
import pickle
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.integrations.guard import MOST_ABANDONED, Guard, SlowError
from teo.integrations.remote import RemoteError, RemoteRewriter

HISTORY = ["I met Ada Lovelace."]
QUESTION = "is he here?"


def langchain_adapter(rewriter: Any, **options: Any) -> tuple[Any, Callable[[str], str]]:
    module = pytest.importorskip("teo.integrations.langchain", exc_type=InputError)
    adapter = module.RewriteQuery(rewriter, **options)
    return adapter, lambda question: str(adapter.invoke({"input": question, "chat_history": HISTORY}))


def llama_index_adapter(rewriter: Any, **options: Any) -> tuple[Any, Callable[[str], str]]:
    module = pytest.importorskip("teo.integrations.llama_index", exc_type=InputError)
    adapter = module.RewriteTransform(rewriter, lambda: HISTORY, **options)
    return adapter, lambda question: str(adapter.run(question).query_str)


def haystack_adapter(rewriter: Any, **options: Any) -> tuple[Any, Callable[[str], str]]:
    module = pytest.importorskip("teo.integrations.haystack", exc_type=InputError)
    adapter = module.QueryRewriter(rewriter=rewriter, **options)
    return adapter, lambda question: str(adapter.run(question, HISTORY)["query"])


def remote_itself(rewriter: RemoteRewriter, **options: Any) -> tuple[Any, Callable[[str], str]]:
    adapter = RemoteRewriter(rewriter._url, **{"on_error": "keep", "timeout": 0.3, **options})
    return adapter, lambda question: adapter.rewrite(HISTORY, question).rewrite


ADAPTERS = [langchain_adapter, llama_index_adapter, haystack_adapter]
EVERY_DOOR = [*ADAPTERS, remote_itself]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.process
@pytest.mark.parametrize("make", EVERY_DOOR)
@pytest.mark.parametrize(
    ("server", "reason"),
    [("down_server", "the server cannot be reached"), ("hanging_server", "no answer within 0.3 s|timed out")],
)
def test_a_server_that_is_down_or_hangs_lets_the_question_through(
    make: Callable[..., Any], server: str, reason: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    url = request.getfixturevalue(server)
    adapter, ask = make(RemoteRewriter(url), timeout=0.3)
    start = time.monotonic()
    assert ask(QUESTION) == QUESTION
    assert time.monotonic() - start < 20, "far less than the client's own 30 s"
    assert adapter.failures == 1
    (warning,) = warnings_in(caplog)
    assert "the utterance is left unchanged, the rewriter failed: " in warning
    assert re.search(reason, warning), "the client's own time limit and the guard's end at the same time"
    assert QUESTION not in warning, "logs hold no text of users"
    ask(QUESTION)
    assert adapter.failures == 2


@pytest.mark.process
@pytest.mark.parametrize("make", EVERY_DOOR)
@pytest.mark.parametrize("server", ["down_server", "hanging_server"])
def test_or_the_error_is_raised_where_that_is_the_setting(
    make: Callable[..., Any], server: str, request: pytest.FixtureRequest
) -> None:
    adapter, ask = make(RemoteRewriter(request.getfixturevalue(server)), on_error="raise", timeout=0.3)
    with pytest.raises((RemoteError, SlowError)):
        ask(QUESTION)
    assert adapter.failures == 0


@pytest.mark.process
@pytest.mark.parametrize("make", ADAPTERS)
def test_a_connection_that_ends_before_the_answer_costs_no_question(make: Callable[..., Any], scripted: Any) -> None:
    url, answers = scripted
    record = FakeRewriter().rewrite(HISTORY, QUESTION).to_dict()
    answers += [(0, b""), (200, json.dumps({"items": [record]}).encode())]
    adapter, ask = make(RemoteRewriter(url), timeout=60)
    assert ask(QUESTION) == "is Ada Lovelace here?"
    assert (adapter.failures, answers) == (0, [])


@pytest.mark.parametrize("make", ADAPTERS)
def test_adapters_keep_by_default_whatever_the_rewriter_raises(
    make: Callable[..., Any], rewriter: FakeRewriter, caplog: pytest.LogCaptureFixture
) -> None:
    adapter, ask = make(rewriter)
    assert ask(QUESTION) == "is Ada Lovelace here?"
    assert (adapter.failures, warnings_in(caplog)) == (0, [])
    assert ask("he may explode") == "he may explode"
    assert adapter.failures == 1
    (warning,) = warnings_in(caplog)
    assert warning.endswith("the rewriter failed: RuntimeError"), "what a foreign error says may quote a user"


@pytest.mark.parametrize("make", ADAPTERS)
def test_a_slow_rewriter_in_this_process_is_not_waited_for(make: Callable[..., Any], rewriter: FakeRewriter) -> None:
    adapter, ask = make(rewriter, timeout=0.1)
    rewriter.hold.clear()
    try:
        assert ask(QUESTION) == QUESTION
    finally:
        rewriter.hold.set()
    assert adapter.failures == 1
    assert ask(QUESTION) == "is Ada Lovelace here?", "it is asked again as soon as it answers"


def test_a_remote_rewriter_raises_by_default(down_server: str) -> None:
    with pytest.raises(RemoteError, match="is teo serve running"):
        RemoteRewriter(down_server).rewrite(HISTORY, QUESTION)
    with pytest.raises(RemoteError, match="is teo serve running"):
        _ = RemoteRewriter(down_server, on_error="keep").threshold


def test_a_remote_rewriter_that_keeps_still_names_the_callers_mistakes(down_server: str) -> None:
    remote = RemoteRewriter(down_server, on_error="keep")
    with pytest.raises(InputError, match=r"history: expected a list of strings"):
        remote.rewrite("one turn", QUESTION)  # type: ignore[arg-type]
    kept, wrong = remote.try_many([{"history": [], "utterance": QUESTION}, {"utterance": 3}])
    assert str(kept) == QUESTION
    assert isinstance(wrong, InputError)
    assert remote.failures == 1


@pytest.mark.parametrize("make", ADAPTERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error: expected 'keep' or 'raise', found 'ignore'"),
        ({"timeout": 0}, "timeout: expected seconds above 0, or None for no limit, found 0"),
        ({"timeout": "2"}, "timeout: expected seconds above 0, or None for no limit, found '2'"),
        ({"min_confidence": 5}, "min_confidence: expected 0 to 1, found 5"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(
    make: Callable[..., Any], rewriter: FakeRewriter, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        make(rewriter, **options)
    assert str(caught.value) == message


def test_a_rewriter_of_another_kind_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="rewriter: expected a Rewriter or a RemoteRewriter, found a str"):
        langchain_adapter("http://127.0.0.1:8000")


def test_of_a_batch_only_what_fails_is_kept() -> None:
    guard = Guard("test", "keep", None)
    dialogues = [Dialogue(tuple(HISTORY), f"is he {k}?") for k in range(3)]

    def ask(asked: Any) -> list[Any]:
        answers: list[Any] = FakeRewriter().try_many(asked)
        answers[1] = InputError("history: too long")
        return answers

    assert [str(answer) for answer in guard.answer(dialogues, ask)] == [
        "is Ada Lovelace 0?",
        "is he 1?",
        "is Ada Lovelace 2?",
    ]
    assert guard.failures == 1


def test_calls_that_hang_do_not_pile_up() -> None:
    guard, release, started = Guard("test", "raise", 0.02), threading.Event(), []

    def hang() -> None:
        started.append(1)
        release.wait(20)

    for _ in range(MOST_ABANDONED):
        with pytest.raises(SlowError, match=r"no answer within 0\.02 s"):
            guard.within(hang)
    with pytest.raises(SlowError, match="earlier calls have not come back yet; the rewriter is not called"):
        guard.within(hang)
    assert len(started) == MOST_ABANDONED
    release.set()
    end = time.monotonic() + 10
    while guard._abandoned and time.monotonic() < end:
        time.sleep(0.01)
    assert guard.within(lambda: "again") == "again"


def test_a_call_in_time_returns_and_raises_as_it_does_alone() -> None:
    guard = Guard("test", "raise", 20.0)
    assert guard.within(lambda: 7) == 7

    def late() -> None:
        raise TimeoutError("the call's own")

    with pytest.raises(TimeoutError, match="the call's own"):
        guard.within(late)


def test_a_guard_travels_to_another_process(down_server: str) -> None:
    remote = pickle.loads(pickle.dumps(RemoteRewriter(down_server, on_error="keep", token="secret")))
    assert str(remote.rewrite(HISTORY, QUESTION)) == QUESTION
    assert remote.failures == 1
    assert "secret" not in repr(remote._connection)
