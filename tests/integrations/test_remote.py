"""The rewriter of a server: the same answers as the one in this process, and errors in the same words."""

from __future__ import annotations

import http.server
import json
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.errors import ConfigError, InputError
from teo.integrations.remote import RemoteError, RemoteRewriter
from teo.integrations.wire import Connection, RefusedError, encode_body, read_item, read_record
from teo.server.settings import ServerSettings

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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "http://[::1"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://[::1'"),
        ({"url": "http://"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://'"),
        ({"url": "http://a:b"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://a:b'"),
        ({"url": "http://a b"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://a b'"),
        ({"url": "http://a\n"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://a\\n'"),
        ({"url": "http://a?b"}, "url: expected a server's address such as http://127.0.0.1:8000, found 'http://a?b'"),
        (
            {"url": "http://me:my-secret@a:b"},
            "url: expected no name and password before the host, found some; pass token instead",
        ),
        ({"retries": "x"}, "retries: expected a whole number, at least 0; found 'x' (str)"),
        ({"retries": -1}, "retries: expected at least 0, found -1"),
        ({"timeout": "x"}, "timeout: expected seconds above 0, or None for no limit, found 'x'"),
        ({"timeout": True}, "timeout: expected seconds above 0, or None for no limit, found True"),
        ({"timeout": float("inf")}, "timeout: expected seconds above 0, or None for no limit, found inf"),
        ({"token": b"my-secret"}, "token: expected a string, found a bytes"),
    ],
)
def test_settings_that_would_fail_on_every_call_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        RemoteRewriter(**{"url": "http://127.0.0.1:1", **settings})
    assert str(caught.value) == message


@pytest.mark.parametrize("token", ["my-secret\n", " my-secret", "my-secret\x00", "my-sécret", "\n"])
def test_a_token_that_no_header_holds_is_refused_in_the_servers_words_and_not_quoted(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteRewriter("http://127.0.0.1:1", token=token)
    with pytest.raises(ConfigError) as expected:
        ServerSettings(token=token)
    assert str(caught.value) == str(expected.value)
    assert "secret" not in str(caught.value)


def test_whatever_a_request_is_made_of_stays_out_of_its_error(down_server: str) -> None:
    connection = Connection(down_server, "my-secret\n", 1.0, 0)  # what RemoteRewriter would refuse
    with pytest.raises(RemoteError, match="health: expected an address and a token of which a request") as caught:
        connection.request("/health")
    assert "my-secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": "3"}, "batch_size: expected a whole number, at least 1; found '3' (str)"),
        ({"batch_size": None}, "batch_size: expected a whole number, at least 1; found None (NoneType)"),
        ({"n_best": True}, "n_best: expected a whole number, at least 1; found True (bool)"),
        ({"prefer": "zz"}, "prefer: expected search, balanced, careful; found 'zz'"),
        ({"min_confidence": 2}, "min_confidence: expected 0 to 1, found 2"),
        ({"truncation": "newest"}, "truncation: expected oldest or error, found 'newest'"),
        ({"dialogues": None}, "dialogues: expected a list of dialogues, found None (NoneType)"),
        ({"dialogues": {}}, "dialogues: expected a list of dialogues, found {} (dict)"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_without_a_server(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        RemoteRewriter("http://127.0.0.1:1").try_many(**{"dialogues": [], **options})
    assert str(caught.value) == message


def test_without_a_time_limit_an_answer_is_waited_for(live_server: Callable[..., Any]) -> None:
    with live_server() as url:
        assert str(RemoteRewriter(url, timeout=None).rewrite(HISTORY, "is he?")) == "is Ben Affleck?"


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
    for message in ("expected 1 records", "expected 1 records", "expected JSON", "status 502: Bad Gateway"):
        with pytest.raises(RemoteError, match=message):
            RemoteRewriter(url).rewrite(HISTORY, "is he?")
    with pytest.raises(RemoteError, match="expected a rewrite's record, found one without 'changed'"):
        read_record({"rewrite": "x"})


def test_of_a_batch_only_what_the_server_refuses_is_an_error(live_server: Callable[..., Any]) -> None:
    rows = [
        {"history": [*HISTORY, *turns], "utterance": text}
        for text, turns in (("is he?", []), ("is he?", ["he " * 40]), ("is she?", []), ("is she?", ["she " * 40]))
    ]
    with live_server(max_characters=150) as url:
        answers = RemoteRewriter(url).try_many(rows)
        with pytest.raises(
            InputError, match=r"^dialogues\[1\]: history: expected a dialogue of at most 150 characters"
        ):
            RemoteRewriter(url).rewrite_many(rows)
    assert [str(answer) for answer in answers[::2]] == ["is Ben Affleck?", "is Ben Affleck?"]
    assert [str(answer).split(":")[0] for answer in answers[1::2]] == ["history", "history"]
    for answer in answers[1::2]:
        assert isinstance(answer, RefusedError)
        assert (answer.status, pickle.loads(pickle.dumps(answer)).status) == (413, 413)


def test_an_item_without_a_status_is_refused_as_bad_input() -> None:
    refused = read_item({"error": {"message": "utterance: missing"}})
    assert isinstance(refused, RefusedError)
    assert (str(refused), refused.status) == ("utterance: missing", 422)
    with pytest.raises(RemoteError, match="expected an item's error, found one without 'message'"):
        read_item({"error": {}})


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


def test_a_batch_of_many_bytes_is_sent_in_parts(
    live_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []
    request = Connection.request

    def measure(self: Connection, path: str, body: Any = None) -> dict[str, Any]:
        sizes.append((len(body["items"]), len(encode_body(body))))
        return request(self, path, body)

    monkeypatch.setattr(Connection, "request", measure)
    rows = [
        {"history": [*HISTORY, "她" * length], "utterance": f"is he {k}?"} for k, length in enumerate([90_000] * 32)
    ]
    with live_server() as url:
        answers = RemoteRewriter(url).rewrite_many(rows, prefer="search")
    assert [str(answer) for answer in answers] == [f"is Ben Affleck {k}?" for k in range(32)]
    assert sum(count for count, _ in sizes) == 32
    assert {count for count, _ in sizes} == {3, 2}, "as many as fit: 270 kB each"
    assert max(size for _, size in sizes) <= ServerSettings().max_body


@pytest.mark.process
def test_a_dialogue_larger_than_a_request_goes_alone(scripted: Any) -> None:
    url, answers = scripted
    record = FakeRewriter().rewrite(HISTORY, "is he?").to_dict()
    answers += [(200, json.dumps({"items": [record]}).encode()), (413, b'{"detail": "body: too large"}')]
    rows = [{"history": HISTORY, "utterance": "is he?"}, {"history": ["long " * 300_000], "utterance": "is he?"}]
    found, refused = RemoteRewriter(url).try_many(rows)
    assert (str(found), str(refused), answers) == ("is Ben Affleck?", "body: too large", [])


@pytest.mark.parametrize("text", ["是他吗", "\ud800", "\\ud800 \ud800 \\\udfff", '"\n\u2028', "😀"])
def test_a_body_holds_the_text_as_it_is(text: str) -> None:
    body = encode_body({"utterance": text})
    assert json.loads(body) == {"utterance": text}
    assert len(body) <= len(json.dumps({"utterance": text}))


def test_a_refusal_of_an_option_is_raised_for_all(live_server: Callable[..., Any]) -> None:
    with live_server() as url, pytest.raises(InputError, match="n_best: "):
        RemoteRewriter(url).try_many([{"history": [], "utterance": "is he?"}] * 2, n_best=99)


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
