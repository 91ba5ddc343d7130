"""Two files of predictions, studies drawn from them, and the command as a process."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judged_files import make_lines, write_lines
from teo_lab.judging.items import JudgingStudy, draw_study

ROOT = Path(__file__).resolve().parents[3]
SOURCES = os.pathsep.join(map(str, (ROOT / "src", ROOT / "lab" / "src")))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Predictions of two systems: 24 rows, of which 20 differ; `up` and `down` tell the test whose rewrite it is."""
    return (
        write_lines(tmp_path / "sys-alpha" / "predictions.jsonl", make_lines("up")),
        write_lines(tmp_path / "sys-beta" / "predictions.jsonl", make_lines("down")),
    )


@pytest.fixture
def study(files: tuple[Path, Path]) -> JudgingStudy:
    return draw_study(*files, sample=20, raters=2, seed=7)


def wait_until_up(url: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


@contextlib.contextmanager
def judging_process(*arguments: object) -> Iterator[tuple[str, Any]]:
    """The address and the process of `teo-lab judge`."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from teo_lab.cli.app import main; main()", "judge", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )
    try:
        line = process.stderr.readline() if process.stderr else ""
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        wait_until_up(found[0])
        yield found[0], process
    finally:
        process.kill()
        process.communicate(timeout=30)


@pytest.fixture
def start_judging() -> Callable[..., Any]:
    return judging_process
