"""The load test itself, for a second: what it counts is right."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "benchmarks" / "load_test.py"


@pytest.fixture(scope="module")
def load_test() -> Any:
    specification = importlib.util.spec_from_file_location("load_test", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["load_test"] = module
    specification.loader.exec_module(module)
    return module


def test_answers_and_failures_are_counted_apart(load_test: Any, live_server: Callable[..., Any]) -> None:
    with live_server() as url:
        good = asyncio.run(load_test.load(int(url.rpartition(":")[2]), 4, 1.0))
    assert set(good.statuses) == {"200"}
    assert good.statuses["200"] == len(good.latencies) > 4
    with live_server(FakeRewriter(), max_characters=3) as url:
        bad = asyncio.run(load_test.load(int(url.rpartition(":")[2]), 2, 0.5))
    assert set(bad.statuses) == {"413"}
    summary = bad.summary()
    assert (summary["failed"], summary["requests_per_second"]) == (summary["requests"], 0.0)


@pytest.mark.slow
def test_both_servers_are_compared(load_test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1] / "src")]))
    ports = (load_test.free_port(), load_test.free_port())
    command = [sys.executable, str(HERE / "fake_server.py")]
    result = load_test.compare(
        [*command, str(ports[0]), "1", "0.02", "32"],
        [*command, str(ports[1]), "1", "0.02", "1"],
        ports,
        clients=8,
        seconds=1.0,
        rounds=1,
    )
    assert result["batching"]["failed"] == result["one_at_a_time"]["failed"] == 0
    rates = [result[name]["requests_per_second"] for name in ("batching", "one_at_a_time")]
    assert result["gain"] == round(rates[0] / rates[1], 2) > 0
    assert result["memory_mb"][0] > 10
    assert result["batching"]["p50_ms"] <= result["batching"]["p99_ms"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
def test_clients_that_retry_see_no_failure_while_workers_are_killed(
    load_test: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1] / "src")]))
    port = load_test.free_port()
    command = [sys.executable, str(HERE / "fake_server.py"), str(port), "2", "0.01", "4"]
    found = load_test.kill_workers(command, port, clients=4, seconds=2.0, least=100, pause=1.0)
    assert (found["failed"], found["workers_after"], found["statuses"]) == (0, 2, {"200": found["requests"]})
    assert found["requests"] >= 100
    assert found["kills"] >= 1
