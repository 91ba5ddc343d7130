"""Jobs over a rewriter by rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import Shouting
from teo.scale.job import Job
from teo.scale.worker import BatchTask, ModelChoice


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> Shouting:
    """The rewriter that every job of the test loads."""
    rewriter = Shouting()
    monkeypatch.setattr(ModelChoice, "load", lambda self, number=0: rewriter)
    return rewriter


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    def make(source: Path | str, target: Path | str = tmp_path / "out", **settings: Any) -> Job:
        own = {name: settings.pop(name) for name in ("engine", "part_rows", "processes") if name in settings}
        task = BatchTask(str(source), str(target), "jsonl", **settings)
        return Job(task, **{"part_rows": 10, "processes": 1} | own)

    return make
