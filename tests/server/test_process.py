"""A server as a process and over a socket: callers who leave, stopping, several workers, a worker killed."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_rewriter import FakeRewriter
from waiting import PATIENCE, free_port, get, is_up, needs_proc, post, until, workers_of

from teo.server.run import bind

pytestmark = pytest.mark.process

BODY = {"history": ["I met Ada Lovelace."], "utterance": "is he here?"}
REWRITE = "is Ada Lovelace here?"


def waiting(url: str) -> int:
    with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE) as response:
        return int(json.load(response)["queue"])


def test_a_caller_who_leaves_is_taken_out_of_the_queue(live_server: Callable[..., Any]) -> None:
    rewriter = FakeRewriter()
    rewriter.hold.clear()
    with live_server(rewriter) as url, concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(post, f"{url}/v1/rewrite", json=BODY)
        assert until(lambda: len(rewriter.batches) == 1)
        content = json.dumps(BODY | {"utterance": "he left"}).encode()
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as leaving:
            leaving.sendall(
                b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
            )
            assert until(lambda: waiting(url) == 1), "it waits behind the first"
        assert until(lambda: waiting(url) == 0), "it left, and so did its dialogue"
        rewriter.hold.set()
        assert first.result().json()["rewrite"] == REWRITE
    assert [one.utterance for batch in rewriter.batches for one in batch] == ["is he here?"]


def test_the_event_loop_goes_on_while_the_model_works(live_server: Callable[..., Any]) -> None:
    rewriter = FakeRewriter()
    rewriter.hold.clear()
    with live_server(rewriter) as url, concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(post, f"{url}/v1/rewrite", json=BODY)
        assert until(lambda: len(rewriter.batches) == 1)
        assert get(f"{url}/health").status_code == 200
        assert not slow.done(), "the model has the first still"
        rewriter.hold.set()
        assert slow.result().status_code == 200


def test_a_sender_of_too_much_gets_to_read_why(live_server: Callable[..., Any]) -> None:
    with live_server(max_body=100_000) as url:
        body = {"utterance": "x" * 500_000}
        answer = post(f"{url}/v1/rewrite", json=body)
        assert answer.status_code == 413
        assert post(f"{url}/v1/rewrite", json=BODY).json()["rewrite"] == REWRITE


def test_a_server_told_to_stop_finishes_what_is_in_flight(process_server: Callable[..., Any]) -> None:
    with process_server(seconds=3.0, max_batch=2) as (url, process), concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(post, f"{url}/v1/rewrite", json=BODY) for _ in range(5)]
        assert until(lambda: waiting(url) >= 3), "all are in: at most two with the model, the others behind them"
        process.send_signal(signal.SIGTERM)
        assert [one.result().json().get("rewrite") for one in asked] == [REWRITE] * 5
        assert process.wait(timeout=60) == 0
        with pytest.raises(httpx.ConnectError):
            post(f"{url}/v1/rewrite", json=BODY)
        lines = process.read_log()
    assert sum(line["event"] == "request" and line["status"] == 200 for line in lines) == 5, "and logs are JSON"


def start_command(folder: Path, *arguments: str, stderr: int = subprocess.PIPE, **env: str) -> Any:
    """`teo serve` as a process: every process of the server, the workers too, loads the fake rewriter."""
    here = Path(__file__).parent
    paths = [str(here / "fake_site"), str(here), str(here.parents[1] / "src")]
    env = {"FAKE_SECONDS": "0", "TMPDIR": str(folder), **env}
    return subprocess.Popen(
        [sys.executable, "-m", "teo", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **env},
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_one_plain_line_and_an_exit_status(tmp_path: Path, workers: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = start_command(tmp_path, "--port", str(port), "--workers", workers)
        out, log = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (2, "")
    assert log == (
        f"teo: port: {port} on 127.0.0.1 is in use already; stop what uses it, or choose another with --port\n"
    )


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals here")
def test_on_a_terminal_a_plain_line_says_where_to_look(tmp_path: Path) -> None:
    port, (reader, terminal) = free_port(), os.openpty()
    url = f"http://127.0.0.1:{port}"
    process = start_command(tmp_path, "--port", str(port), stderr=terminal)
    os.close(terminal)
    try:
        assert until(lambda: is_up(url))
        assert post(f"{url}/v1/rewrite", json=BODY).json()["rewrite"] == REWRITE
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    lines = b"".join(iter(lambda: read_some(reader), b"")).decode().splitlines()
    os.close(reader)
    assert lines[0] == f"teo is serving {url} (API: /docs; Ctrl+C stops it)"
    assert [json.loads(line)["event"] for line in lines[1:]] == ["request"], "and nothing about processes"


def test_off_a_terminal_the_first_line_of_the_log_has_the_address(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as log:
        process = start_command(tmp_path, "--port", "0", stderr=log.fileno())
    try:
        assert until(lambda: path.read_text().endswith("\n"), 20)
        first = json.loads(path.read_text().splitlines()[0])
        assert first | {"time": "", "address": ""} == {"time": "", "level": "info", "event": "serving", "address": ""}
        assert get(f"{first['address']}/health").status_code == 200, "who reads it may connect at once"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # all is read, and nobody writes any more
        return b""


def test_the_command_serves_with_several_workers_that_share_token_and_counts(tmp_path: Path) -> None:
    port = free_port()
    process = start_command(tmp_path, "--port", str(port), "--workers", "2", TEO_TOKEN="secret")
    url, bearer = f"http://127.0.0.1:{port}", {"authorization": "Bearer secret"}
    try:
        assert until(lambda: is_up(url))
        for _ in range(6):
            assert post(f"{url}/v1/rewrite", json=BODY).status_code == 401
            assert post(f"{url}/v1/rewrite", json=BODY, headers=bearer).json()["rewrite"] == REWRITE
        metrics = get(f"{url}/metrics", headers=bearer).text
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert 'teo_requests_total{path="/v1/rewrite",status="200"} 6.0' in metrics, "whichever worker is asked"
    lines = [json.loads(line) for line in log.splitlines()]
    assert sum(line.get("status") == 401 for line in lines) == 6
    assert "secret" not in log
    assert "Lovelace" not in log


@contextmanager
def several_workers(folder: Path, *arguments: str, **env: str) -> Iterator[tuple[str, Any]]:
    """The address and the process of a server with two workers, both of which have answered."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_command(folder, "--port", str(port), "--workers", "2", *arguments, stderr=subprocess.DEVNULL, **env)
    try:
        assert until(lambda: is_up(url))
        assert until(lambda: len(workers_of(process.pid)) == 2)
        yield url, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)


def ask(url: str, utterance: str = "is he here?") -> Any:
    return post(f"{url}/v1/rewrite", json=BODY | {"utterance": utterance})


@needs_proc
def test_a_killed_worker_is_replaced_and_costs_a_client_that_retries_nothing(tmp_path: Path) -> None:
    from teo.integrations.remote import RemoteRewriter

    with (
        several_workers(tmp_path, "--max-batch", "2", FAKE_SECONDS="0.05") as (url, process),
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        remote, before = RemoteRewriter(url), workers_of(process.pid)
        asked = [pool.submit(remote.rewrite, BODY["history"], BODY["utterance"]) for _ in range(120)]
        for victim in before:
            assert until(lambda: sum(one.done() for one in asked) >= 20)
            os.kill(victim, signal.SIGKILL)
            assert until(lambda victim=victim: len(set(workers_of(process.pid)) - {victim}) == 2), (
                "another took its place"
            )
            assert until(lambda: is_up(url))
        assert {one.result().rewrite for one in asked} == {REWRITE}
        metrics = get(f"{url}/metrics").text
        assert not set(before) & set(workers_of(process.pid))
    counted = next(line for line in metrics.splitlines() if 'path="/v1/rewrite",status="200"' in line)
    assert float(counted.rpartition(" ")[2]) >= 120, "the counts of all workers, also of those that died"


@needs_proc
def test_a_request_that_ends_its_worker_leaves_a_server(tmp_path: Path) -> None:
    with several_workers(tmp_path) as (url, process):
        for _ in range(3):
            with pytest.raises(httpx.TransportError):
                ask(url, "he may abort")
        assert until(lambda: is_up(url) and len(workers_of(process.pid)) == 2 and answers(url))


def answers(url: str) -> bool:
    """Tell whether a worker answers; one that just ended may have had the connection."""
    try:
        return bool(ask(url).json()["rewrite"] == REWRITE)
    except httpx.TransportError:
        return False


@needs_proc
def test_stopping_drains_and_leaves_neither_process_nor_file(tmp_path: Path) -> None:
    with (
        several_workers(tmp_path, "--max-batch", "1", FAKE_SECONDS="0.3") as (url, process),
        concurrent.futures.ThreadPoolExecutor(8) as pool,
        httpx.Client(timeout=PATIENCE) as client,  # one for all: to make one takes as long as an answer
    ):
        workers = workers_of(process.pid)
        assert any(tmp_path.iterdir()), "the counts of the workers are there while it runs"
        asked = [pool.submit(client.post, f"{url}/v1/rewrite", json=BODY) for _ in range(8)]
        assert until(lambda: any(one.done() for one in asked)), "all are in, most of them wait"
        process.send_signal(signal.SIGTERM)
        assert [one.result().json()["rewrite"] for one in asked] == [REWRITE] * 8
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert list(tmp_path.iterdir()) == []


def test_many_may_wait_although_a_worker_accepts_one_at_a_time() -> None:
    with bind("127.0.0.1", 0) as bound, ExitStack() as open_until_the_end:
        bound.listen(1)  # as a worker that starts does
        for _ in range(40):
            open_until_the_end.enter_context(socket.create_connection(bound.getsockname(), timeout=PATIENCE / 4))
        bound.settimeout(PATIENCE)
        for _ in range(40):
            open_until_the_end.enter_context(bound.accept()[0])


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_server_stops_cleanly_while_its_model_loads(tmp_path: Path, number: signal.Signals) -> None:
    process = start_command(tmp_path, "--port", str(free_port()), FAKE_LOADING="2")
    assert until(lambda: workers_of(process.pid))
    process.send_signal(number)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["serving"]
    assert list(tmp_path.iterdir()) == []


def test_a_server_stops_cleanly_before_it_has_workers(tmp_path: Path) -> None:
    process = start_command(tmp_path, "--port", str(free_port()))
    assert until(lambda: any(tmp_path.iterdir())), "the folder of the counts is there before the pool"
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert {json.loads(line)["event"] for line in log.splitlines()} <= {"serving"}
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with several_workers(tmp_path) as (_, process):
        workers = workers_of(process.pid)
        process.kill()
        process.communicate(timeout=60)  # their ends of the pipes close when they end
        assert until(lambda: not any(Path(f"/proc/{worker}/cmdline").exists() for worker in workers))


def test_a_model_that_is_not_there_is_one_plain_line_and_an_exit_status(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-m", "teo", "serve", "--port", "0", "--model", str(tmp_path / "none")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.splitlines()[-1].startswith("teo: ")
    assert "Traceback" not in found.stderr


def test_every_address_answers_through_a_socket(tmp_path: Path) -> None:
    with several_workers(tmp_path, "--max-body", "1000", "--cors-origin", "https://a.example") as (url, _):
        origin = {"origin": "https://a.example"}
        large = post(f"{url}/v1/rewrite", json=BODY | {"utterance": "x" * 2000}, headers=origin)
        assert (large.status_code, large.headers["access-control-allow-origin"]) == (413, "https://a.example")
        found = post(f"{url}/v1/rewrite", json=BODY, headers={**origin, "x-request-id": "mine"})
        names = [name for name, _ in found.headers.multi_items()]
        assert len(names) == len(set(names)), "each header once"
        assert (found.headers["x-request-id"], found.headers["access-control-allow-origin"]) == (
            "mine",
            "https://a.example",
        )
        assert "queue;dur=" in found.headers["server-timing"]
        for path in ("/", "/docs", "/health", "/openapi.json", "/v1/models", "/v1/models/a%2Fb?x=1"):
            assert get(f"{url}{path}").status_code == (404 if "%" in path else 200), path
        chat = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
        streamed = post(f"{url}/v1/chat/completions", json=chat)
        assert streamed.text.endswith("data: [DONE]\n\n")
        for path in ("/", "/docs", "/health", "/openapi.json", "/metrics", "/v1/models", "/static/app.js"):
            head, whole = httpx.head(f"{url}{path}"), get(f"{url}{path}")
            assert (head.status_code, head.content) == (200, b""), path
            assert head.headers["content-type"] == whole.headers["content-type"], path
        assert httpx.head(f"{url}/v1/rewrite").status_code == 405
        assert httpx.put(f"{url}/v1/rewrite", content=b"x").status_code == 405
