"""Every verb with only its own extra installed: it works, or it says which extra to install."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
import urllib.request
from pathlib import Path

import pytest
import typer

from checkout import ROOT
from installed import needs_libraries, run, start
from teo.cli.app import app
from teo.loading import DEFAULT_MODEL, ModelFolder, Role, has_default

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model"),
]
MAIN = "from teo.cli.app import main; main()"
WORKS = ""
TABLE = [
    # The verb and its arguments; the extra; which extra it says to install, if it does not work.
    ("rewrite Ben_is_here. Is_he?", "", WORKS),
    ("rewrite --input ROWS --output OUT", "", WORKS),
    ("rewrite --runtime torch --model TRAINED Ben_is_here. Is_he?", "", "train"),
    ("demo", "", WORKS),
    ("batch ROWS OUT --processes 1", "", WORKS),
    ("batch ROWS OUT --processes 1 --engine ray", "", "scale"),
    ("batch rows.parquet OUT", "", "scale"),
    ("batch s3://bucket/rows.jsonl OUT", "", "scale"),
    ("serve --port 0", "", "serve"),
    ("mcp", "", "mcp"),
    ("mcp", "mcp", WORKS),
    ("data list", "", WORKS),
    ("data stats jsonl ROWS", "", WORKS),
    ("data convert jsonl ROWS OUT", "", WORKS),
    ("data edits jsonl ROWS OUT", "", WORKS),
    ("data download task OUT --help", "", WORKS),
    ("train CONFIG", "", "train"),
    ("train CONFIG --dry-run", "", WORKS),
    ("train --keys", "", WORKS),
    ("calibrate EXPORTED ROWS --out OUT", "", WORKS),
    ("calibrate EXPORTED ROWS --out OUT", "plots", WORKS),
    ("calibrate TRAINED ROWS", "", "train"),
    ("export TRAINED OUT", "", "train"),
    ("evaluate --data jsonl --path ROWS --out OUT --limit 2", "", WORKS),
    ("evaluate --data jsonl --path ROWS --out OUT --limit 2", "plots", WORKS),
    ("evaluate --data jsonl --path ROWS --out OUT --model TRAINED", "", "train"),
    ("score SCORED", "", WORKS),
]
CONFIG = """
output = "MODEL"
roles = ["direct"]
device = "cpu"
[model]
base = "random"
random = {width = 16, layers = 1, heads = 2, vocabulary = 300}
source_limit = 64
target_limit = 32
[data]
name = "synthetic"
rows = 16
dev_rows = 4
[optimisation]
epochs = 1
batch_size = 8
[writing]
plots = false
"""


def requirement(extra: str) -> str:
    return f"teo-rewriter[{extra}]" if extra else "teo-rewriter"


@pytest.fixture
def words(tmp_path: Path) -> dict[str, object]:
    """What the capitals of the table stand for."""
    people = ["Ben", "Anna", "Tom", "Lucy", "Frank", "Maria", "Jack", "Emma", "Paul", "Rosa", "Karl", "Nina"]
    rows = [
        {"id": f"{person}-{number}", "history": [f"{person} met my {friend}."], "utterance": asked, "rewrite": full}
        for person in people
        for number, (friend, asked, full) in enumerate(
            [("aunt", "Where?", f"Where did {person} meet my aunt?"), ("dog", "The dog is old.", "The dog is old.")] * 4
        )
    ]
    scored = {"current": "is he", "reference": "is ben", "prediction": "is ben"}
    exported, trained = tmp_path / "exported", tmp_path / "trained"
    shutil.copytree(DEFAULT_MODEL, exported)
    ModelFolder({"direct": Role("weights")}).save(trained)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "scored.jsonl").write_text(json.dumps(scored), encoding="utf-8")
    (tmp_path / "run.toml").write_text(CONFIG.replace("MODEL", str(tmp_path / "model")), encoding="utf-8")
    return {
        "ROWS": tmp_path / "rows.jsonl",
        "SCORED": tmp_path / "scored.jsonl",
        "CONFIG": tmp_path / "run.toml",
        "EXPORTED": exported,
        "TRAINED": trained,
        "OUT": tmp_path / "out",
    }


@pytest.mark.parametrize(("line", "extra", "named"), TABLE, ids=[f"{row[0]} [{row[1]}]" for row in TABLE])
def test_a_verb_works_or_names_its_extra(line: str, extra: str, named: str, words: dict[str, object]) -> None:
    needs_libraries(requirement(extra))
    done = run(requirement(extra), MAIN, *(words.get(word, word.replace("_", " ")) for word in line.split()))
    if named == WORKS:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2, done.stderr
        assert re.fullmatch(
            rf"teo: .+ needs the library '[\w.-]+', which is not installed: pip install 'teo-rewriter\[{named}\]'\n",
            done.stderr,
        ), done.stderr


def test_every_verb_is_in_the_table() -> None:
    command = typer.main.get_command(app)
    verbs = {
        f"{name} {sub}".strip() for name, verb in command.commands.items() for sub in getattr(verb, "commands", {"": 0})
    }
    assert {verb for verb in verbs if not any(f"{row[0]} ".startswith(f"{verb} ") for row in TABLE)} == set()


def test_the_server_starts_with_its_extra_alone() -> None:
    needs_libraries("teo-rewriter[serve]")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with start("teo-rewriter[serve]", MAIN, "serve", "--port", port) as process:
        end, answer = time.monotonic() + 60, None
        while answer is None and process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
                    answer = response.status
            except OSError:
                time.sleep(0.1)
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert answer == 200, log


@pytest.mark.train
def test_a_model_is_trained_exported_and_evaluated_with_the_extra_train_alone(words: dict[str, object]) -> None:
    needs_libraries("teo-rewriter[train]")
    out = Path(str(words["OUT"]))
    lines = [
        ["train", words["CONFIG"]],
        ["export", out.with_name("model"), out.with_name("graphs")],
        ["evaluate", "--data", "jsonl", "--path", words["ROWS"], "--model", out.with_name("graphs"), "--out", out],
    ]
    for line in lines:
        done = run("teo-rewriter[train]", MAIN, *line)
        assert done.returncode == 0, done.stderr


def test_the_blocker_blocks() -> None:
    child = "import subprocess, sys; import typer, numpy; subprocess.call([sys.executable, '-c', 'import pytest'])"
    done = run("teo-rewriter", child)
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of pytest halted")


LAB = """
import importlib, pkgutil, teo_lab
for module in pkgutil.walk_packages(teo_lab.__path__, "teo_lab."):
    importlib.import_module(module.name)
"""


def test_the_lab_imports_what_its_dependencies_bring() -> None:
    if not (ROOT / "lab" / "src").is_dir():
        pytest.skip("this is no checkout of the lab")
    needs_libraries("teo-lab")
    done = run("teo-lab", LAB)
    assert done.returncode == 0, done.stderr
