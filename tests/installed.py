"""An environment with part of what is installed here: only a requirement and what it needs can be imported."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checkout import ROOT

OWN = {"teo-rewriter": "teo", "teo-lab": "teo_lab"}
"""The two distributions of this repository, and the package of each."""
_PATH = os.pathsep.join(str(ROOT / folder) for folder in ("tests/blocker", "src", "lab/src"))


@cache
def read_project(name: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the dependencies and the extras of a distribution of this repository."""
    folder = ROOT if name == "teo-rewriter" else ROOT / "lab"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["dependencies"], project.get("optional-dependencies", {})


def needs_of(requirement: Requirement) -> Iterable[Requirement]:
    """Return what a requirement needs at once, in this environment; nothing if it is not installed."""
    if requirement.name in OWN:
        dependencies, extras = read_project(requirement.name)
        texts = [*dependencies, *(text for extra in requirement.extras for text in extras[extra])]
    else:
        try:
            texts = importlib.metadata.requires(requirement.name) or []
        except importlib.metadata.PackageNotFoundError:
            return []
    needs = [Requirement(text) for text in texts]
    contexts = [{"extra": extra} for extra in ("", *requirement.extras)]
    return [need for need in needs if not need.marker or any(need.marker.evaluate(context) for context in contexts)]


@cache
def closure(requirement: str) -> frozenset[str]:
    """Return the names of all distributions that installing a requirement brings."""
    waiting, seen = [Requirement(requirement)], set[tuple[str, frozenset[str]]]()
    while waiting:
        one = waiting.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key not in seen:
            seen.add(key)
            waiting.extend(needs_of(one))
    return frozenset(name for name, _ in seen)


@cache
def blocked(requirement: str) -> str:
    """Return the packages that are missing if only this requirement is installed, joined by commas."""
    present = closure(requirement)
    owners = {
        package: {canonicalize_name(name) for name in names}
        for package, names in importlib.metadata.packages_distributions().items()
        if package not in OWN.values() and package.isidentifier()
    }
    missing = {package for package, names in owners.items() if not names & present}
    return ",".join(sorted(missing | {package for name, package in OWN.items() if name not in present}))


def start(requirement: str, code: str, *words: object) -> subprocess.Popen[str]:
    """Start Python code where only this requirement is installed; the words are its arguments."""
    command = [sys.executable, "-c", code, *map(str, words)]
    env = {**os.environ, "PYTHONPATH": _PATH, "TEO_BLOCKED": blocked(requirement)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def run(requirement: str, code: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Return how Python code ends where only this requirement is installed."""
    with start(requirement, code, *words) as process:
        out, log = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, out, log)


def needs_libraries(requirement: str) -> None:
    """Skip the test if something that the requirement asks for is not installed here."""
    installed = {canonicalize_name(one.name) for one in importlib.metadata.distributions()} | OWN.keys()
    missing = sorted({canonicalize_name(one.name) for one in needs_of(Requirement(requirement))} - installed)
    if missing:
        pytest.skip(f"{requirement} needs {', '.join(missing)}: make test installs it")
