"""A server as a process and over a socket: callers who leave, stopping, several workers, a worker killed."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_rewriter import FakeRewriter

BODY = {"history": ["I met Ada Lovelace."], "utterance": "is he here?"}
REWRITE = "is Ada Lovelace here?"


def until(condition: Callable[[], bool], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def waiting(url: str) -> int:
    with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
        return int(json.load(response)["queue"])


def test_a_caller_who_leaves_is_taken_out_of_the_queue(live_server: Callable[..., Any]) -> None:
    rewriter = FakeRewriter()
    rewriter.hold.clear()
    with live_server(rewriter) as url, concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(httpx.post, f"{url}/v1/rewrite", json=BODY, timeout=20)
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
        slow = pool.submit(httpx.post, f"{url}/v1/rewrite", json=BODY, timeout=20)
        assert until(lambda: len(rewriter.batches) == 1)
        started = time.monotonic()
        assert httpx.get(f"{url}/health", timeout=2).status_code == 200
        assert time.monotonic() - started < 1
        assert not slow.done()
        rewriter.hold.set()
        assert slow.result().status_code == 200


def test_a_sender_of_too_much_gets_to_read_why(live_server: Callable[..., Any]) -> None:
    with live_server(max_body=100_000) as url:
        body = {"utterance": "x" * 500_000}
        answer = httpx.post(f"{url}/v1/rewrite", json=body, timeout=20)
        assert answer.status_code == 413
        assert httpx.post(f"{url}/v1/rewrite", json=BODY, timeout=20).json()["rewrite"] == REWRITE


def test_a_server_told_to_stop_finishes_what_is_in_flight(process_server: Callable[..., Any]) -> None:
    with process_server(seconds=1.0, max_batch=2) as (url, process), concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(httpx.post, f"{url}/v1/rewrite", json=BODY, timeout=20) for _ in range(5)]
        assert until(lambda: waiting(url) >= 3), "all are in: at most two with the model, the others behind them"
        process.send_signal(signal.SIGTERM)
        assert [one.result().json().get("rewrite") for one in asked] == [REWRITE] * 5
        _, log = process.communicate(timeout=20)
        with pytest.raises(httpx.ConnectError):
            httpx.post(f"{url}/v1/rewrite", json=BODY)
    lines = [json.loads(line) for line in log.splitlines()]
    assert sum(line["event"] == "request" and line["status"] == 200 for line in lines) == 5, "and logs are JSON"


def children(pid: int) -> list[int]:
    own = Path(f"/proc/{pid}/task/{pid}/children")
    lines = {int(one): Path(f"/proc/{one}/cmdline") for one in own.read_text().split()}
    return [one for one, path in lines.items() if path.exists() and b"spawn_main" in path.read_bytes()]


def start_command(folder: Path, *arguments: str, stderr: int = subprocess.PIPE, **env: str) -> Any:
    """`teo serve` as a process: every process of the server, the workers too, loads the fake rewriter."""
    here = Path(__file__).parent
    (folder / "sitecustomize.py").write_text(
        "from fake_rewriter import FakeRewriter\nfrom teo.rewriter import Rewriter\n"
        "Rewriter.from_pretrained = classmethod(lambda cls, *args, **options: FakeRewriter())\n"
    )
    paths = [str(folder), str(here), str(here.parents[1] / "src")]
    return subprocess.Popen(
        [sys.executable, "-m", "teo", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **env},
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_one_plain_line_and_an_exit_status(tmp_path: Path, workers: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = start_command(tmp_path, "--port", str(port), "--workers", workers)
        out, log = process.communicate(timeout=30)
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
        assert until(lambda: is_up(url), 40)
        assert httpx.post(f"{url}/v1/rewrite", json=BODY).json()["rewrite"] == REWRITE
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    lines = os.read(reader, 65536).decode().splitlines()
    os.close(reader)
    assert lines[0] == f"teo is serving {url} (API: /docs; Ctrl+C stops it)"
    assert [json.loads(line)["event"] for line in lines[1:]] == ["request"], "and nothing about processes"


def test_the_command_serves_with_several_workers_that_share_token_and_counts(tmp_path: Path) -> None:
    port = free_port()
    process = start_command(tmp_path, "--port", str(port), "--workers", "2", TEO_TOKEN="secret")
    url, bearer = f"http://127.0.0.1:{port}", {"authorization": "Bearer secret"}
    try:
        assert until(lambda: is_up(url), 40)
        for _ in range(6):
            assert httpx.post(f"{url}/v1/rewrite", json=BODY).status_code == 401
            assert httpx.post(f"{url}/v1/rewrite", json=BODY, headers=bearer).json()["rewrite"] == REWRITE
        metrics = httpx.get(f"{url}/metrics", headers=bearer).text
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert 'teo_requests_total{path="/v1/rewrite",status="200"} 6.0' in metrics, "whichever worker is asked"
    lines = [json.loads(line) for line in log.splitlines()]
    assert sum(line.get("status") == 401 for line in lines) == 6
    assert "secret" not in log
    assert "Lovelace" not in log


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the workers are found in /proc, which is not here")
def test_a_killed_worker_comes_back_and_the_others_serve_and_count_together(
    process_server: Callable[..., Any], tmp_path: Path
) -> None:
    with process_server(workers=2, PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) as (url, process):
        assert until(lambda: len(children(process.pid)) == 2)
        before = children(process.pid)

        def ask() -> bool:
            try:
                return httpx.post(f"{url}/v1/rewrite", json=BODY, timeout=5).json()["rewrite"] == REWRITE
            except httpx.TransportError:
                return False

        assert until(lambda: all(ask() for _ in range(5)))
        os.kill(before[0], signal.SIGKILL)
        assert until(ask, 3), "the other worker serves"
        assert until(lambda: len(set(children(process.pid)) - {before[0]}) == 2), "another took its place"
        assert until(lambda: all(ask() for _ in range(10)))
        metrics = httpx.get(f"{url}/metrics").text
    counted = next(line for line in metrics.splitlines() if 'path="/v1/rewrite",status="200"' in line)
    assert float(counted.rpartition(" ")[2]) >= 16, "the counts of all workers, also of the one that died"
