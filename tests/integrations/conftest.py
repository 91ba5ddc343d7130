"""The fake rewriter of the server's tests, here and behind a server."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
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
def hanging_server() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def down_server() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"
