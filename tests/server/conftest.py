"""Servers of the fake rewriter: inside the test, and as a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fake_rewriter import FakeRewriter  # noqa: E402
from waiting import PATIENCE, free_port, is_up, until  # noqa: E402

from teo.server.app import create_app  # noqa: E402
from teo.server.settings import ServerSettings  # noqa: E402


@contextlib.asynccontextmanager
async def serving(rewriter: FakeRewriter, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application whose lifespan runs."""
    app = create_app(rewriter, ServerSettings(**settings))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://teo") as client,
    ):
        yield client


Talk = Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]


@pytest.fixture
def rewriter() -> FakeRewriter:
    return FakeRewriter()


@pytest.fixture
def talk(rewriter: FakeRewriter) -> Callable[..., Any]:
    """Run a coroutine function with a client of the fake rewriter's server, and return what it returns."""

    def run(conversation: Talk, **settings: Any) -> Any:
        async def whole() -> Any:
            async with serving(rewriter, **settings) as client:
                return await asyncio.wait_for(conversation(client), PATIENCE)

        return asyncio.run(whole())

    return run


@pytest.fixture
def ask(talk: Callable[..., Any]) -> Callable[..., httpx.Response]:
    """Send one request and return its answer."""

    def run(method: str, path: str, *, server: dict[str, Any] | None = None, **request: Any) -> httpx.Response:
        return talk(lambda client: client.request(method, path, **request), **(server or {}))

    return run


@contextlib.contextmanager
def running_server(app: Any) -> Iterator[str]:
    """The address of an application that runs in a thread."""
    import uvicorn

    from teo.server.connections import LimitedProtocol

    server = uvicorn.Server(
        uvicorn.Config(app, port=free_port(), log_config=None, access_log=False, http=LimitedProtocol)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.config.port}"
    try:
        assert until(lambda: is_up(url)), "the server is up"
        yield url
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@contextlib.contextmanager
def server_process(
    workers: int = 1, seconds: float = 0.0, max_batch: int = 32, files: int | None = None, **settings: Any
) -> Iterator[tuple[str, Any]]:
    """The address and the process of a server of the fake rewriter; `files`: how many it may open."""
    port = free_port()
    command = [sys.executable, str(HERE / "fake_server.py"), str(port), str(workers), str(seconds), str(max_batch)]
    if files is not None:
        command = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "bash", *command]
    with tempfile.TemporaryFile("a+") as log:
        process = subprocess.Popen(
            [*command, json.dumps(settings)],
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")},
        )
        process.read_log = lambda: read_lines(log)  # type: ignore[attr-defined]
        url = f"http://127.0.0.1:{port}"
        try:
            assert until(lambda: is_up(url)), "the server is up"
            yield url, process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


def read_lines(log: Any) -> list[dict[str, Any]]:
    """The whole lines of a server's log, which are JSON; the server goes on writing at its end meanwhile."""
    log.seek(0)
    return [json.loads(line) for line in log.read().splitlines(keepends=True) if line.endswith("\n")]


@pytest.fixture
def live_server() -> Callable[..., Any]:
    """`running_server`, for tests that speak to a real socket."""

    def start(rewriter: FakeRewriter | None = None, **settings: Any) -> Any:
        return running_server(create_app(rewriter or FakeRewriter(), ServerSettings(**settings)))

    return start


@pytest.fixture
def process_server() -> Callable[..., Any]:
    """`server_process`, for tests that need a process."""
    return server_process
