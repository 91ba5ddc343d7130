"""What reads stored results needs no torch: the verbs that only print and write pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teo_lab.paths import LAB, RESULTS

BLOCKED = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"accelerate", "onnx", "safetensors", "torch", "transformers"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Blocker())
sys.path[:0] = sys.argv.pop(1).split(",")
from teo.cli.shell import run_command
from verbs import app_of
from teo_lab.cli.%s import %s as verb
sys.exit(run_command(app_of(verb), "teo-lab"))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("report", ["--out", "OUT"]),
        ("pages", ["--check"]),
        ("reproduce", ["architectures", "--stored", "--out", "STORED"]),
        ("reproduce", ["all", "--dry-run", "--data", "DATA", "--out", "OUT"]),
        ("judge", ["--help"]),
        ("retrieval", ["--help"]),
        ("evaluate", ["--help"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_verb_runs_without_torch(verb: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "data" / "task").mkdir(parents=True)
    stored = tmp_path / "teo-base"
    if "STORED" in words:
        shutil.copytree(RESULTS / "reproduce" / "teo-base", stored)
    known = {"OUT": str(tmp_path / "out"), "DATA": str(tmp_path / "data"), "STORED": str(stored)}
    folders = ",".join(str(folder) for folder in (LAB.parent / "src", LAB / "src", LAB / "tests"))
    script = BLOCKED % (verb, verb)
    line = [sys.executable, "-c", script, folders, verb, *(known.get(word, word) for word in words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
