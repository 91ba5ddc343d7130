"""Both engines as processes: the same files from each, and from a job that was killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batch_jobs import SITE, contents, make_rows, write_rows

pytestmark = pytest.mark.process

TESTS = Path(__file__).parents[1]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", make_rows(200))


def start(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    """`teo batch` as a process, each of whose processes loads the rewriter by rule."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    paths = [str(folder / "site"), str(TESTS), str(TESTS.parent / "src")]
    return subprocess.Popen(
        [sys.executable, "-m", "teo", "batch", str(folder / "in.jsonl"), *arguments, "--part-rows", "10"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **env},
    )


def finish(process: subprocess.Popen[str]) -> str:
    _, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    return log


def test_a_job_killed_at_any_moment_goes_on(tmp_path: Path, source: Path) -> None:
    finish(start(tmp_path, str(tmp_path / "whole"), "--processes", "1"))
    stopped = tmp_path / "stopped"
    for parts in (0, 2, 5, 9):
        process = start(tmp_path, str(stopped), "--processes", "2", SHOUTING_SECONDS="0.01")
        end = time.monotonic() + 60
        while len(list(stopped.glob("part-*"))) <= parts and time.monotonic() < end:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    log = finish(start(tmp_path, str(stopped), "--processes", "2"))
    assert "were done before" in log
    assert contents(tmp_path / "whole") == contents(stopped)


def test_a_process_that_is_killed_costs_no_row(tmp_path: Path, source: Path) -> None:
    finish(start(tmp_path, str(tmp_path / "whole"), "--processes", "1"))
    mark = tmp_path / "killed"
    finish(start(tmp_path, str(tmp_path / "out"), "--processes", "2", SHOUTING_KILL=str(mark)))
    assert mark.exists(), "one was killed"
    assert contents(tmp_path / "whole") == contents(tmp_path / "out")


def test_an_interrupt_ends_every_process_and_says_how_to_go_on(tmp_path: Path, source: Path) -> None:
    process = start(tmp_path, str(tmp_path / "out"), "--processes", "2", SHOUTING_SECONDS="0.02")
    end = time.monotonic() + 60
    while not list((tmp_path / "out").glob("part-*")) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 130
    assert log == "teo: stopped; to resume, run the same command again\n"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_an_interrupt_of_a_process_that_is_just_starting_shows_no_traceback(
    tmp_path: Path, source: Path, seconds: float
) -> None:
    process = start(tmp_path, str(tmp_path / "out"), "--processes", "2", SHOUTING_SECONDS="0.02")
    end = time.monotonic() + 60
    while not (workers := find_workers(process.pid)) and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(seconds)
    for pid in [*workers, process.pid]:  # a terminal interrupts all of them
        os.kill(pid, signal.SIGINT)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 130
    assert log == "teo: stopped; to resume, run the same command again\n"


def find_workers(pid: int) -> list[int]:
    """Return the processes that a job has started so far."""
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


@pytest.mark.ray
def test_ray_gives_the_same_files(tmp_path: Path, source: Path) -> None:
    pytest.importorskip("ray.data")
    finish(start(tmp_path, str(tmp_path / "local"), "--processes", "2"))
    log = finish(start(tmp_path, str(tmp_path / "ray"), "--engine", "ray", "--processes", "2"))
    assert log.splitlines()[-1].startswith("teo: 200 rows: 200 changed, 0 bad, 0 repeated; 200 in ")
    assert "INFO" not in log, "Ray's own log stays where Ray keeps it"
    assert contents(tmp_path / "local") == contents(tmp_path / "ray")


@pytest.mark.ray
@pytest.mark.slow
def test_a_part_that_kills_every_actor_is_reported_after_three(tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    write_rows(tmp_path / "in.jsonl", [*make_rows(20), {"history": ["a"], "utterance": "always dies"}])
    options = ("--engine", "ray", "--processes", "1")
    process = start(tmp_path, str(tmp_path / "out"), *options, SHOUTING_ABORT="always dies")
    _, log = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "the process that rewrote rows 21 and on ended without a word, 3 times" in log.splitlines()[-1]
