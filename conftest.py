"""What the tests of both packages share: a browser, settings of hypothesis, and the marks that `make quick` reads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from checkout import find_data

settings.register_profile("teo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("teo")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NOT_QUICK = ("browser", "process", "ray", "slow", "train")
"""The marks that `make quick` deselects; pyproject.toml says what each means."""
MARK_OF_FIXTURE = {
    "browser": "browser",
    "down_server": "process",
    "hanging_server": "process",
    "live_server": "process",
    "process_server": "process",
    "start_judging": "process",
}
"""Every test that uses one of these fixtures gets its mark."""
_HEAVY = ("python", "teo", "pip", "chrom", "ray", "node")
"""What the names of processes start with that a quick test must not start; libraries run small ones (fc-list, git)."""
_started: list[str] = []


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published datasets; tests that need it are skipped if it is absent."""
    return find_data("data")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium; tests that need it are skipped if it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test installs it")
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, before `-m` deselects."""
    for item in items:
        for name in MARK_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARK_OF_FIXTURE[name])


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note each process and each server; Python calls this for every event that it audits."""
    if event == "subprocess.Popen" and Path(str(arguments[0])).name.startswith(_HEAVY):
        _started.append(f"the process {arguments[0]}")
    elif event in {"os.fork", "os.forkpty"}:
        _started.append("a process by fork")
    elif event == "socket.bind" and isinstance(arguments[1], tuple):
        _started.append("a server")


def _watch_start(self: BaseProcess) -> None:
    _started.append(f"the process {self.name}")
    _start(self)


sys.addaudithook(_watch)
_start, BaseProcess.start = BaseProcess.start, _watch_start  # type: ignore[method-assign]


@cache
def _watch_training() -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(lambda *_: _started.append("to train a model"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Forget what earlier tests started."""
    _started.clear()
    if "torch" in sys.modules:
        _watch_training()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that starts a process or a server, or trains a model, without a mark that says so."""
    result = yield
    if _started and not any(item.get_closest_marker(name) for name in NOT_QUICK):
        pytest.fail(f"this test starts {_started[0]}: mark it with one of {', '.join(NOT_QUICK)}", pytrace=False)
    return result
