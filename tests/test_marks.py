"""`make quick` leaves out what it says, and a test that belongs to the rest cannot slip in without a mark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from checkout import ROOT

MARKS = {"browser", "process", "ray", "slow", "train"}
TESTS = """
import multiprocessing, socket, subprocess, sys
import pytest

def start():
    subprocess.run([sys.executable, "-c", ""], check=True)

def serve():
    with socket.create_server(("127.0.0.1", 0)):
        pass

def fork():
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    process.join()

def fit():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    torch.optim.SGD([weight], lr=0.1).step()

@pytest.fixture
def live_server():
    serve()

pytest.importorskip("torch")  # tests of training have it loaded
starters = pytest.mark.parametrize("starter", [start, serve, fork, fit])

@starters
def test_without_a_mark(starter): starter()

@pytest.mark.process
@starters
def test_with_a_mark(starter): starter()

def test_with_a_marked_fixture(live_server): pass

def test_of_nothing(): subprocess.run(["git", "--version"], check=True)
"""


def test_one_list_of_marks() -> None:
    registered = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    deselected = re.search(r'^quick:.*\n.* -m "not \((.*)\)"$', (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split(":")[0] for line in registered} == MARKS
    assert deselected is not None
    assert set(deselected[1].split(" or ")) == MARKS


@pytest.mark.process
def test_a_process_a_server_and_training_need_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "test_starters.py"
    file.write_text(TESTS, encoding="utf-8")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    settings = (
        "--confcutdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-rA",
        "-q",
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", *settings, str(file)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    outcomes = re.findall(r"^(PASSED|FAILED) \S*::(\w+)", done.stdout, re.MULTILINE)
    assert sorted(set(outcomes)) == [
        ("FAILED", "test_without_a_mark"),
        ("PASSED", "test_of_nothing"),
        ("PASSED", "test_with_a_mark"),
        ("PASSED", "test_with_a_marked_fixture"),
    ], done.stdout
    assert len(outcomes) == 10
    for what in ("the process ", "a server", "to train a model"):
        assert f"this test starts {what}" in done.stdout
