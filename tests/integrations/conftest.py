"""The fake rewriter of the server's tests, here and behind a server."""

from __future__ import annotations

import http.server
import importlib.util
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when the library is imported
sys.path.insert(0, str(ROOT / "tests" / "server"))

from fake_rewriter import FakeRewriter  # noqa: E402


@pytest.fixture
def rewriter() -> FakeRewriter:
    return FakeRewriter()


@pytest.fixture(scope="session")
def live_server() -> Callable[..., Any]:
    """Start a server of the fake rewriter; see tests/server/conftest.py."""
    pytest.importorskip("fastapi", reason="the server's libraries are not installed")
    shared = load_file("tests/server/conftest.py")

    def start(rewriter: FakeRewriter | None = None, **settings: Any) -> Any:
        app = shared.create_app(rewriter or FakeRewriter(), shared.ServerSettings(**settings))
        return shared.running_server(app)

    return start


def load_file(path: str) -> Any:
    """The module that a file is."""
    specification = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), ROOT / path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def example() -> Callable[[str], Any]:
    """Load a file of examples/ by its name."""
    return lambda name: load_file(f"examples/{name}.py")


@pytest.fixture
def scripted() -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
    """A server that gives the answers of a list, in order."""
    answers: list[tuple[int, bytes]] = []
    released = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.headers["Content-Length"] = self.headers.get("Content-Length", "0")
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body, *location = answers.pop(0)
            if status < 0:  # the worker hangs
                released.wait(60)
            if status <= 0:  # the worker dies
                self.close_connection = True
                return
            self.send_response(status)
            for address in location:
                self.send_header("Location", address)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def down_server() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"
