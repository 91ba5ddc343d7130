"""What tests of server processes share: waiting for a condition, asking with patience, finding workers."""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

PATIENCE = 60.0
"""Seconds that anything may take on a machine that does much else."""
get = functools.partial(httpx.get, timeout=PATIENCE)
post = functools.partial(httpx.post, timeout=PATIENCE)
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> bool:
    """Whether a condition comes to hold."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def status_of(url: str) -> int:
    """The status of the health check; 0 if there is no answer."""
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code
    except httpx.TransportError:
        return 0


def is_up(url: str) -> bool:
    return status_of(url) == 200


def workers_of(pid: int) -> list[int]:
    """The workers of a server's first process."""
    found = []
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        try:
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
        except FileNotFoundError:
            continue  # it ended just now
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
