"""What a server must survive: floods of heads, connections and lists, workers that stop, hang or cannot be started."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import PATIENCE, get, is_up, needs_proc, post, status_of, until, workers_of

from teo.server.connections import KEEP_ALIVE, LONGEST_HEAD, LimitedProtocol, raise_file_limit
from teo.server.settings import ServerSettings

BODY = {"history": ["I met Ada Lovelace."], "utterance": "is he here?"}
REWRITE = "is Ada Lovelace here?"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def memory_mb(pid: int) -> int:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) // 1024


def connect(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=PATIENCE)


def ends(connection: socket.socket) -> bool:
    """Whether the server closes the connection, whatever it says first."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


def read_status(connection: socket.socket) -> int:
    """The status of the next answer, which is read to its end."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


@needs_proc
@pytest.mark.parametrize("line", [b"A: b\r\n", b"x"], ids=["many headers", "one endless header"])
def test_a_flood_of_headers_is_refused_and_costs_no_memory(process_server: Callable[..., Any], line: bytes) -> None:
    with process_server() as (url, process):
        (worker,) = workers_of(process.pid)
        before = memory_mb(worker)
        for _ in range(3):
            with connect(url) as flood, contextlib.suppress(ConnectionError):
                flood.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"B: ")
                for _ in range(1000):  # 10 MB, were they all taken
                    flood.sendall(line * (10_000 // len(line)))
                pytest.fail("the server read all of it")
        assert is_up(url)
        assert memory_mb(worker) - before < 30


def test_a_head_within_the_limit_is_read(process_server: Callable[..., Any]) -> None:
    with process_server() as (url, _), connect(url) as caller:
        assert get(f"{url}/health", headers={"x-long": "x" * (LONGEST_HEAD - 2000)}).status_code == 200
        caller.sendall(HEALTH[:-2] + b"X-Long: " + b"x" * LONGEST_HEAD)
        assert read_status(caller) == 400


@pytest.mark.parametrize("sent", [b"", b"GET /hea", HEALTH[:-2]], ids=["nothing", "half a line", "half a head"])
def test_a_head_that_does_not_end_ends_its_connection(
    live_server: Callable[..., Any], limits: Any, sent: bytes
) -> None:
    limits(head_timeout=0.3)
    with live_server() as url, connect(url) as slow:
        slow.sendall(sent)
        assert ends(slow)


def test_an_idle_connection_outlives_the_limit_of_a_head_and_the_next_head_has_it_again(
    live_server: Callable[..., Any], limits: Any
) -> None:
    limits(head_timeout=0.3)
    with live_server() as url, connect(url) as kept:
        for _ in range(3):
            kept.sendall(HEALTH)
            assert read_status(kept) == 200
            time.sleep(0.4)  # longer than a head may take, shorter than a connection may idle
        kept.sendall(HEALTH[:10])
        assert ends(kept)
    assert KEEP_ALIVE > 60, "load balancers close idle connections after 60 s: they must be the first to"


@pytest.fixture
def limits() -> Iterator[Callable[..., None]]:
    before = LimitedProtocol.head_timeout, LimitedProtocol.max_connections
    yield lambda **settings: LimitedProtocol.configure(ServerSettings(**settings))
    LimitedProtocol.head_timeout, LimitedProtocol.max_connections = before


def test_silent_connections_keep_nobody_out_and_the_longest_idle_goes_first(
    live_server: Callable[..., Any], limits: Any
) -> None:
    limits(max_connections=10)
    with live_server() as url, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(url)) for _ in range(30)]
        for _ in range(5):
            assert get(f"{url}/health").status_code == 200
        assert all(ends(one) for one in silent[:20])
        silent[-1].sendall(HEALTH)
        assert read_status(silent[-1]) == 200, "the newest is still there"


@needs_proc
@pytest.mark.parametrize("workers", [1, 2])
def test_more_connections_than_files_leave_the_server_up(process_server: Callable[..., Any], workers: int) -> None:
    with process_server(workers, files=128) as (url, process), contextlib.ExitStack() as stack:
        kept = stack.enter_context(httpx.Client(timeout=PATIENCE))
        assert kept.get(f"{url}/health").status_code == 200
        for number in range(300):
            with contextlib.suppress(OSError):
                connection = stack.enter_context(connect(url))
                connection.sendall(HEALTH[: number % 2 * 10])
        assert until(lambda: is_up(url)), "during the flood"
        assert post(f"{url}/v1/rewrite", json=BODY).json()["rewrite"] == REWRITE
        stack.close()
        assert until(lambda: is_up(url)), "after it"
        assert len(workers_of(process.pid)) == workers
        assert not [line for line in process.read_log() if line["event"] == "worker-ended"]


def test_the_limit_of_files_is_raised_to_what_the_system_allows() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert raise_file_limit() == min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_callers_who_take_no_answer_keep_nobody_out(live_server: Callable[..., Any], limits: Any) -> None:
    limits(max_connections=4)
    with live_server() as url, contextlib.ExitStack() as stack:
        for _ in range(4):
            deaf = stack.enter_context(connect(url))
            deaf.settimeout(1)
            with contextlib.suppress(TimeoutError):
                while True:  # until the server stops reading, since nobody takes its answers
                    deaf.sendall(HEALTH.replace(b"/health", b"/openapi.json") * 1000)
        for _ in range(5):
            assert get(f"{url}/health").status_code == 200


def test_nonsense_after_an_answer_ends_the_connection_without_a_traceback(process_server: Callable[..., Any]) -> None:
    with process_server(token="secret") as (url, process), connect(url) as caller:
        caller.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert read_status(caller) == 401
        caller.sendall(b"no chunk\r\n")
        assert ends(caller)
        assert is_up(url)
        events = {line["event"] for line in process.read_log()}  # each line is JSON
        assert events == {"serving", "request", "Invalid HTTP request received."}


# ---- workers ----


@needs_proc
def test_workers_share_the_connections(process_server: Callable[..., Any]) -> None:
    with process_server(2) as (url, process), contextlib.ExitStack() as stack:
        assert until(lambda: len(workers_of(process.pid)) == 2)
        before = {worker: sockets_of(worker) for worker in workers_of(process.pid)}

        def have_shares() -> bool:
            clients = [stack.enter_context(connect(url)) for _ in range(20)]
            for client in clients:
                client.sendall(HEALTH)
            assert all(read_status(client) == 200 for client in clients)
            return all(sockets_of(worker) - count >= 15 for worker, count in before.items())

        assert until(have_shares, 20), "each has accepted some"


def sockets_of(pid: int) -> int:
    links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return sum(str(link).startswith("socket:") for link in links)


@needs_proc
def test_a_stopped_worker_gets_no_request_and_is_replaced(
    process_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with process_server(2) as (url, process):
        assert until(lambda: len(workers_of(process.pid)) == 2)
        assert until(lambda: all_listen(process.pid, url)), "both accept"
        victim = workers_of(process.pid)[0]
        os.kill(victim, signal.SIGSTOP)
        for _ in range(6):
            assert get(f"{url}/health").status_code == 200
        assert until(lambda: victim not in workers_of(process.pid)), "and replaced"
        assert until(lambda: ended_workers(process)), "the line is written after the end"
        assert [(line["pid"], line["hung"]) for line in ended_workers(process)] == [(victim, True)]


def ended_workers(process: Any) -> list[Any]:
    return [line for line in process.read_log() if line["event"] == "worker-ended"]


def all_listen(pid: int, url: str) -> bool:
    """Whether every worker is past its start: it has the file of its counts."""
    found = get(f"{url}/metrics").status_code == 200
    return found and all(
        any("counter_" in str(link.readlink()) for link in Path(f"/proc/{one}/fd").iterdir() if link.is_symlink())
        for one in workers_of(pid)
    )


@needs_proc
def test_a_model_that_never_returns_fails_the_health_check_and_ends_its_worker(
    process_server: Callable[..., Any],
) -> None:
    with process_server(model_timeout=4.0, request_timeout=1.0) as (url, process):
        (stuck,) = workers_of(process.pid)
        answer = post(f"{url}/v1/rewrite", json=BODY | {"utterance": "he may hang"})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:teo:problem:timeout")
        assert until(lambda: status_of(url) == 503), "the health check fails meanwhile"
        assert until(lambda: stuck not in workers_of(process.pid) and is_up(url))
        assert post(f"{url}/v1/rewrite", json=BODY).json()["rewrite"] == REWRITE
        events = {line["event"]: line for line in process.read_log()}
        assert (events["model-stuck"]["pid"], events["worker-ended"]["status"]) == (stuck, 70)


def test_a_worker_that_cannot_be_started_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, started = fake_pool(monkeypatch, failures=3)
    pool.init_processes()
    assert until(lambda: pool.keep_subprocess_alive() or len(started) == 1), "after three failures"
    started[0].alive = False
    assert until(lambda: pool.keep_subprocess_alive() or len(started) == 2), "and replaced when it ends"


def test_a_worker_that_stops_answering_is_killed_but_one_that_starts_slowly_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, started = fake_pool(monkeypatch, failures=0, hung_after=0.2)
    pool.init_processes()
    started[0].answers = False
    time.sleep(0.3)
    pool.keep_subprocess_alive()
    assert len(started) == 1, "it has not answered yet: it is starting"
    started[0].answers = True
    pool.keep_subprocess_alive()
    started[0].answers = False
    assert until(lambda: pool.keep_subprocess_alive() or len(started) == 2)
    assert started[0].killed


def test_a_worker_that_ends_because_the_server_stops_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool, started = fake_pool(monkeypatch, failures=0)
    monkeypatch.setattr("teo.server.supervisor.LOGGER.propagate", True)
    pool.init_processes()
    pool.handle_term()
    started[0].alive = False  # a signal to the whole group of processes reaches it too
    pool.keep_subprocess_alive()
    assert (len(started), caplog.messages) == (1, [])


def fake_pool(monkeypatch: pytest.MonkeyPatch, *, failures: int, hung_after: float = 60.0) -> tuple[Any, list[Any]]:
    """A pool whose processes are objects, the first of which cannot be started."""
    from teo.server import supervisor

    started: list[Any] = []
    left = [failures]

    class FakeProcess:
        def __init__(self, *_: Any) -> None:
            self.alive, self.answers, self.killed, self.pid, self.exitcode = True, True, False, None, -9
            self.process = self.parent_conn = self

        def start(self) -> None:
            if left[0]:
                left[0] -= 1
                raise OSError(11, "Resource temporarily unavailable")
            started.append(self)

        def is_alive(self) -> bool:
            return self.alive

        def poll(self) -> bool:
            return self.answers

        def recv(self) -> bool:
            return True

        def send(self, _: bytes) -> None:
            pass

        def kill(self) -> None:
            self.alive, self.killed = False, True

        def join(self) -> None:
            assert not self.alive

    class FakeConfig:
        workers = 1

    monkeypatch.setattr(supervisor, "Process", FakeProcess)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return supervisor.WorkerPool(FakeConfig(), [], hung_after=hung_after, stop_within=1.0), started


# ---- who may ask ----


def test_without_a_token_a_name_from_the_web_is_refused(ask: Callable[..., httpx.Response]) -> None:
    for name, status in (
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("rebound.example:8000", 421),
        ("", 421),
    ):
        answer = ask("GET", "/health", server={"local_only": True}, headers={"host": name})
        assert answer.status_code == status, name
    assert ask("GET", "/health", headers={"host": "teo.example"}).status_code == 200, "behind a token or a proxy"


@pytest.mark.parametrize(("token", "status"), [(None, 421), ("secret", 200)])
def test_a_server_on_loopback_checks_names_if_it_has_no_token(
    process_server: Callable[..., Any], token: str | None, status: int
) -> None:
    with process_server(token=token) as (url, _):
        assert get(f"{url}/health", headers={"host": "rebound.example"}).status_code == status


def test_the_token_comes_before_the_body(process_server: Callable[..., Any]) -> None:
    with process_server(token="secret") as (url, _), connect(url) as caller:
        head = (
            b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
        )
        caller.sendall(head)  # and no byte of the body
        assert read_status(caller) == 401
