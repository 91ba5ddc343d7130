"""The rewriter of a server: the same answers as the one in this process, and errors in the same words."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.integrations.remote import RemoteError, RemoteRewriter
from teo.integrations.wire import read_record

HISTORY = ["I think Bruce Wayne is handsome.", "It looks like Ben Affleck."]


def test_it_answers_as_the_rewriter_behind_the_server(live_server: Callable[..., Any], rewriter: FakeRewriter) -> None:
    dialogues = [Dialogue(tuple(HISTORY), f"It is he who acted {k} \ud800") for k in range(7)]
    with live_server(rewriter, token="secret") as url:
        remote = RemoteRewriter(url + "/", token="secret")
        assert remote.rewrite(HISTORY, "is he?") == FakeRewriter().rewrite(HISTORY, "is he?")
        turns = [{"role": "user", "content": HISTORY[1]}, {"role": "user", "content": "is he?"}]
        assert remote.rewrite(messages=turns) == FakeRewriter().rewrite(messages=turns)
        assert remote.rewrite_many(dialogues, 3) == FakeRewriter().rewrite_many(dialogues)
        assert remote.rewrite(HISTORY, "maybe he", min_confidence=0.1).changed
        assert not remote.rewrite(HISTORY, "maybe he").changed
        assert remote.rewrite_many([]) == []


def test_a_servers_refusal_is_an_error_with_its_sentence(live_server: Callable[..., Any]) -> None:
    with live_server(token="secret", max_characters=10) as url:
        with pytest.raises(RemoteError) as caught:
            RemoteRewriter(url).rewrite([], "x")
        assert str(caught.value) == ("status 401: Authorization: expected 'Bearer' and the server's token, found none")
        with pytest.raises(InputError) as refused:
            RemoteRewriter(url, token="secret").rewrite(["12345678"], "12345678")
        assert str(refused.value) == (
            "history: expected a dialogue of at most 10 characters, found 16; send the latest turns"
        )


def test_no_server_is_said_in_a_sentence() -> None:
    with pytest.raises(RemoteError, match=r"v1/rewrite: the server cannot be reached \(.*\); is teo serve running\?"):
        RemoteRewriter("http://127.0.0.1:1", timeout=1).rewrite([], "x")
    with pytest.raises(InputError, match="url: expected http:// or https://, found 'file:///etc/passwd'"):
        RemoteRewriter("file:///etc/passwd")
    with pytest.raises(InputError, match="utterance: missing; call rewrite"):
        RemoteRewriter("http://127.0.0.1:1").rewrite(["x"])


@pytest.mark.process
def test_a_busy_server_is_asked_again(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url, answers = scripted
    waits: list[float] = []
    record = FakeRewriter().rewrite(HISTORY, "is he?").to_dict()
    monkeypatch.setattr("teo.integrations.wire.time.sleep", waits.append)
    answers += [(429, b"{}"), (503, b"{}"), (200, json.dumps({"items": [record]}).encode())]
    assert RemoteRewriter(url).rewrite(HISTORY, "is he?").rewrite == "is Ben Affleck?"
    assert waits == [0.25, 0.5]
    answers += [(429, b'{"detail": "queue: full"}')] * 2
    with pytest.raises(RemoteError, match="status 429: queue: full"):
        RemoteRewriter(url, retries=1).rewrite(HISTORY, "is he?")
    assert answers == []


@pytest.mark.process
def test_a_connection_that_ends_before_the_answer_is_tried_once_more(scripted: Any) -> None:
    url, answers = scripted
    record = json.dumps({"items": [FakeRewriter().rewrite(HISTORY, "is he?").to_dict()]}).encode()
    answers += [(0, b""), (200, record)]
    assert RemoteRewriter(url).rewrite(HISTORY, "is he?").rewrite == "is Ben Affleck?"
    answers += [(0, b""), (0, b""), (200, record)]
    with pytest.raises(RemoteError, match="cannot be reached"):
        RemoteRewriter(url).rewrite(HISTORY, "is he?")
    assert len(answers) == 1, "once, not for ever"


@pytest.mark.process
def test_the_second_try_is_within_the_time_limit(scripted: Any) -> None:
    url, answers = scripted
    answers += [(0, b""), (-1, b"")]
    with pytest.raises(RemoteError, match=r"no answer within 0\.5 s|timed out"):
        RemoteRewriter(url, timeout=0.5).rewrite(HISTORY, "is he?")


@pytest.mark.process
def test_a_redirect_is_refused_and_the_token_goes_nowhere_else(scripted: Any) -> None:
    url, answers = scripted
    evil = json.dumps({"items": [FakeRewriter().rewrite(HISTORY, "is he?").to_dict()]}).encode()
    for status in (301, 302, 303, 307, 308):
        answers += [(status, b"", f"{url}/elsewhere"), (200, evil)]
        with pytest.raises(RemoteError, match=f"status {status}: the server redirects elsewhere"):
            RemoteRewriter(url, token="secret").rewrite(HISTORY, "is he?")
        assert answers.pop() == (200, evil), "nothing was sent there"


def test_speakers_travel(live_server: Callable[..., Any], rewriter: FakeRewriter) -> None:
    turns = [
        {"role": "user", "content": HISTORY[0]},
        {"role": "assistant", "content": HISTORY[1]},
        {"role": "user", "content": "is he?"},
    ]
    with live_server(rewriter) as url:
        RemoteRewriter(url).rewrite(messages=turns)
        RemoteRewriter(url).rewrite(HISTORY, "is he?")
    assert [batch[0].speakers for batch in rewriter.batches] == [("user", "assistant", "user"), None]


def test_a_batch_with_refused_dialogues_is_sent_once(live_server: Callable[..., Any], rewriter: FakeRewriter) -> None:
    rows = [{"history": ["x"] * (60 if k % 2 else 3), "utterance": f"is he {k}?"} for k in range(32)]
    with live_server(rewriter, window_ms=200) as url:
        answers = RemoteRewriter(url).try_many(rows, 32, truncation="error")
    assert sum(map(len, rewriter.batches)) == 32, "each dialogue was rewritten once"
    assert [isinstance(answer, InputError) for answer in answers] == [False, True] * 16


@pytest.mark.process
def test_an_answer_of_another_kind_is_refused(scripted: Any) -> None:
    url, answers = scripted
    answers += [(200, b'{"items": []}'), (200, b"[]"), (200, b"no json"), (502, b"<html>")]
    for message in ("expected 1 records", "expected 1 records", "cannot be reached", "status 502: Bad Gateway"):
        with pytest.raises(RemoteError, match=message):
            RemoteRewriter(url).rewrite(HISTORY, "is he?")
    with pytest.raises(RemoteError, match="expected a rewrite's record, found one without 'changed'"):
        read_record({"rewrite": "x"})


def test_of_a_batch_only_what_the_server_refuses_is_an_error(live_server: Callable[..., Any]) -> None:
    rows = [{"history": HISTORY, "utterance": text} for text in ("is he?", "he " * 40, "is she?", "she " * 40)]
    with live_server(max_characters=150) as url:
        answers = RemoteRewriter(url).try_many(rows)
        with pytest.raises(
            InputError, match=r"^dialogues\[1\]: history: expected a dialogue of at most 150 characters"
        ):
            RemoteRewriter(url).rewrite_many(rows)
    assert [str(answer) for answer in answers[::2]] == ["is Ben Affleck?", "is Ben Affleck?"]
    assert [str(answer).split(":")[0] for answer in answers[1::2]] == ["history", "history"]
    assert all(isinstance(answer, InputError) for answer in answers[1::2])


def test_a_batch_too_large_for_one_request_is_sent_in_parts(live_server: Callable[..., Any]) -> None:
    rows = [{"history": HISTORY, "utterance": f"is he {k}?"} for k in range(7)]
    with live_server(max_items=2) as url:
        assert [str(answer) for answer in RemoteRewriter(url).rewrite_many(rows)] == [
            f"is Ben Affleck {k}?" for k in range(7)
        ]
    with live_server(max_body=100) as url:
        (answer,) = RemoteRewriter(url).try_many([{"history": ["long " * 40], "utterance": "is he?"}])
    assert isinstance(answer, InputError)
    assert "100" in str(answer)


def test_a_refusal_of_an_option_is_raised_for_all(live_server: Callable[..., Any]) -> None:
    with live_server() as url, pytest.raises(InputError, match="min_confidence: "):
        RemoteRewriter(url).try_many([{"history": [], "utterance": "is he?"}] * 2, min_confidence=-1)


@pytest.mark.process
def test_a_server_without_a_field_says_which(scripted_state: Any) -> None:
    url, state = scripted_state
    state |= {"model": "m", "source_limit": 512}
    assert (RemoteRewriter(url).name, RemoteRewriter(url).source_limit) == ("m", 512)
    with pytest.raises(
        RemoteError, match="health: expected 'threshold' in the answer, found none; is the server older"
    ):
        _ = RemoteRewriter(url).threshold


@pytest.fixture
def scripted_state() -> Iterator[tuple[str, dict[str, Any]]]:
    """A server that tells of itself what a dictionary holds."""
    state: dict[str, Any] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(state).encode()
            self.send_response(200 if self.path == "/health" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", state
    server.shutdown()
    server.server_close()
