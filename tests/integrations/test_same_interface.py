"""One list of calls, made of the rewriter in this process and of the same rewriter behind a server."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.remote import RemoteRewriter
from teo.result import Rewrite
from teo.rewriter import Rewriter

CURIE = ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."]
DUNE = ["Who wrote Dune?", "Frank Herbert."]
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "你喜欢周杰伦吗"},
    {"role": "assistant", "content": "喜欢"},
    {"role": "user", "content": [{"type": "text", "text": "他哪年出生的"}]},
]
LONG = ["It was a long and rainy evening in the old town by the sea. " * 3] * 40
ROWS: list[Any] = [
    {"history": CURIE, "utterance": "When did he die?"},
    Dialogue(tuple(DUNE), "When was he born?"),
    {"messages": CHAT, "id": "a row's other keys do no harm"},
    {"history": None, "utterance": "When was he born?"},
    {"history": LONG, "utterance": "Was he there?"},
]
BAD_ROWS: list[Any] = [
    ROWS[0],
    {"history": "not a list", "utterance": "x"},
    {"messages": []},
    {"history": ["x"]},
    {"context": ["x"], "utterance": "y"},
    [],
    ROWS[1],
]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of either rewriter."""

    make: Callable[[Any], Any]
    needs: str = ""
    """The part of the HTTP interface without which the call cannot work."""
    own_words: bool = False
    """The server says in words of its own what is wrong; the field is the same."""


CALLS = {
    "history and utterance": Call(lambda r: r.rewrite(CURIE, "When did he die?")),
    "by keyword": Call(lambda r: r.rewrite(history=DUNE, utterance="When was he born?")),
    "tuples": Call(lambda r: r.rewrite(tuple(DUNE), "When was he born?")),
    "messages": Call(lambda r: r.rewrite(messages=CHAT)),
    "no history": Call(lambda r: r.rewrite(None, "When was he born?")),
    "empty utterance": Call(lambda r: r.rewrite(DUNE, "")),
    "a greeting": Call(lambda r: r.rewrite(DUNE, "Thanks!")),
    "lone surrogate": Call(lambda r: r.rewrite(DUNE, "When was he born \ud800?")),
    "nothing is sure enough": Call(lambda r: r.rewrite(CURIE, "When did he die?", min_confidence=1)),
    "everything is": Call(lambda r: r.rewrite(CURIE, "When did he die?", min_confidence=0.0)),
    "too long": Call(lambda r: r.rewrite(LONG, "Was he there?")),
    "too long is refused": Call(lambda r: r.rewrite(LONG, "Was he there?", truncation="error")),
    "short enough is not": Call(lambda r: r.rewrite(DUNE, "When was he born?", truncation="error")),
    "both forms": Call(lambda r: r.rewrite(DUNE, "x", messages=CHAT)),
    "neither form": Call(lambda r: r.rewrite()),
    "a string for a list": Call(lambda r: r.rewrite("Who wrote Dune?", "When was he born?")),
    "many of every form": Call(lambda r: r.rewrite_many(ROWS)),
    "many from a generator": Call(lambda r: r.rewrite_many((row for row in ROWS), batch_size=2)),
    "many, a batch by position": Call(lambda r: r.rewrite_many(ROWS, 3, min_confidence=0.0, truncation="oldest")),
    "none": Call(lambda r: r.rewrite_many([])),
    "many with bad rows": Call(lambda r: r.rewrite_many(BAD_ROWS)),
    "many with one too long": Call(lambda r: r.rewrite_many(ROWS, truncation="error")),
    "errors in their places": Call(lambda r: r.try_many(BAD_ROWS)),
    "too long in their places": Call(lambda r: r.try_many(ROWS, 2, truncation="error")),
    "batch size": Call(lambda r: r.rewrite_many(ROWS, 0)),
    "batch size in words": Call(lambda r: r.rewrite_many(ROWS, "3")),
    "no list": Call(lambda r: r.rewrite_many(None)),
    "preference": Call(lambda r: r.try_many([], prefer="zz")),
    "confidence and preference": Call(lambda r: r.try_many([], prefer="search", min_confidence=0.5)),
    "confidence": Call(lambda r: r.rewrite(DUNE, "When was he born?", min_confidence=-0.5)),
    "truncation": Call(lambda r: r.rewrite(DUNE, "When was he born?", truncation="newest")),
    "name": Call(lambda r: r.name),
    "variant": Call(lambda r: r.variant),
    "threshold": Call(lambda r: r.threshold),
    "source limit": Call(lambda r: r.source_limit, needs="source_limit"),
    "n best": Call(lambda r: r.rewrite(CURIE, "When did he die?", n_best=3), needs="n_best"),
    "n best of many": Call(lambda r: r.rewrite_many(ROWS, n_best=2), needs="n_best"),
    "n best of none": Call(lambda r: r.rewrite(None, "x", n_best=2), needs="n_best"),
    "n best beyond measure": Call(lambda r: r.rewrite(DUNE, "x", n_best=99), needs="n_best", own_words=True),
}


def outcome(call: Call, rewriter: Any) -> Any:
    """What a call gives, for comparison."""
    try:
        return plain(call.make(rewriter), call)
    except TeoError as error:
        return ["raised", plain(error, call)]


def plain(value: Any, call: Call) -> Any:
    if isinstance(value, list):
        return [plain(entry, call) for entry in value]
    if isinstance(value, Rewrite):
        return value.to_dict()
    if isinstance(value, TeoError):
        text = str(value).split(":")[0] if call.own_words else str(value)
        return ["input error" if isinstance(value, InputError) else type(value).__name__, text]
    return value


@pytest.fixture(scope="module")
def local() -> Rewriter:
    return Rewriter.from_pretrained(threads=1)


@pytest.fixture(scope="module")
def url(local: Rewriter, live_server: Callable[..., Any]) -> Iterator[str]:
    with live_server(local) as address:
        yield address


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_the_same_here_and_there(name: str, local: Rewriter, url: str) -> None:
    call = CALLS[name]
    if call.needs:
        with urllib.request.urlopen(f"{url}/openapi.json", timeout=20) as description:
            if f'"{call.needs}"'.encode() not in description.read():
                pytest.skip(f"the server's description has no {call.needs}")
    assert outcome(call, RemoteRewriter(url)) == outcome(call, local)


@pytest.mark.process
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.needs and not call.own_words])
def test_what_a_server_may_lack_is_spoken_as_the_interface_has_it(
    name: str, local: Rewriter, smallest_server: Callable[[Any], str]
) -> None:
    url = smallest_server(local)
    assert outcome(CALLS[name], RemoteRewriter(url)) == outcome(CALLS[name], local)


@pytest.fixture
def smallest_server() -> Iterator[Callable[[Any], str]]:
    """Start a server that knows the interface's fields and nothing else: items, options, records."""
    servers: list[ThreadingHTTPServer] = []

    def start(rewriter: Any) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply({"source_limit": rewriter.source_limit})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                items = body.pop("items")
                self.reply({"items": [result.to_dict() for result in rewriter.rewrite_many(items, **body)]})

            def reply(self, answer: Any) -> None:
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


INTERFACE = ["rewrite", "arewrite", "rewrite_many", "try_many", "name", "variant", "threshold"]


@pytest.mark.parametrize("name", [*INTERFACE, "source_limit"])
def test_every_part_of_the_interface_is_there_with_the_same_parameters(name: str) -> None:
    here, there = getattr(Rewriter, name, None), getattr(RemoteRewriter, name)
    if here is None:
        pytest.skip(f"Rewriter has no {name}")
    assert isinstance(here, property) == isinstance(there, property)
    if callable(here):
        mine, theirs = (inspect.signature(function).parameters for function in (here, there))
        assert {key: (each.default, each.kind) for key, each in mine.items()} == {
            key: (each.default, each.kind) for key, each in theirs.items()
        }


def test_the_event_loop_goes_on_while_a_server_is_asked(local: Rewriter, url: str) -> None:
    async def several() -> list[Rewrite]:
        remote = RemoteRewriter(url)
        return list(await asyncio.gather(*(remote.arewrite(CURIE, "When did he die?", min_confidence=0) for _ in "ab")))

    found = asyncio.run(several())
    assert found == [local.rewrite(CURIE, "When did he die?", min_confidence=0)] * 2
    assert found[0].changed
