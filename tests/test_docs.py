"""The documentation is true: links resolve, the code it names exists, its commands and sessions give what it says."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import typer

from checkout import ROOT, find_data, needs_data
from teo.cli.app import app
from teo.metrics.scorer import make_suite
from teo.metrics.significance import bootstrap_signature, paired_signature

FOLDERS = ("docs", "examples", "benchmarks", "results", "configs", "src", "tests", "weights")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
PAPER = ROOT / "docs" / "paper.md"

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]+?) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")
_NAME = re.compile(r"`(teo(?:_lab)?(?:\.\w+)+)`")
_FILE = re.compile(r"`((?:benchmarks|configs|docs|lab|src|tests)/[\w./-]+)`")
_SIGNATURE = re.compile(r"`([\w-]+\\?\|[^`]+)`")
_OWN_MACHINE = re.compile(r"(?:/home/|/Users/|/root/|/work/|/tmp/|[A-Za-z]:\\Users\\|\.\./shared)")


@dataclass(frozen=True)
class Block:
    """A fenced block, and what the comment before it says: `run`, `run with data`, `file: NAME`, or nothing."""

    mark: str
    kind: str
    body: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path) -> list[Block]:
    found = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(one["mark"] or "", one["kind"], one["body"]) for one in found]


def prose_of(page: Path) -> str:
    """Return the page without its fenced blocks, where brackets are not links."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def sessions_of(body: str) -> list[tuple[str, list[str]]]:
    """Return (command, lines that it should print) for each `$` line of a console block."""
    sessions: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            sessions.append((line[2:], []))
        else:
            sessions[-1][1].append(line)
    return sessions


def matches(expected: list[str], found: list[str]) -> bool:
    """Tell whether the lines are those expected, where a line `...` stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolve(name: str) -> object:
    """Return what a dotted name means: a module, or an attribute of the longest module in it."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("teo"):
                pytest.skip(f"{name} needs {error.name}, which is not installed")
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def names_of(page: Path) -> list[str]:
    return sorted(set(_NAME.findall(page.read_text(encoding="utf-8"))))


@pytest.fixture
def shell(tmp_path):
    """Run a command in a folder of its own, where `teo` and `python` are those of the tests."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, call in (("teo", '-m teo "$@"'), ("python", '"$@"')):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call}\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir()
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    environment = {**os.environ, **path, "PYTHONIOENCODING": "utf-8"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    run.folder = folder
    return run


def test_the_pages_are_found():
    names = {name_of(page) for page in PAGES}
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/paper.md", "docs/data.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_resolve(page):
    broken = []
    for link in _LINK.findall(prose_of(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_path_of_a_developers_machine(page):
    assert _OWN_MACHINE.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", sorted({name for page in PAGES for name in names_of(page)}))
def test_code_that_is_named_exists(name):
    found = resolve(name)
    assert isinstance(found, ModuleType) or callable(found), (
        f"{name} is {found!r}: expected a module, class or function"
    )


def test_the_paper_page_names_code_and_files_that_exist():
    assert len(names_of(PAPER)) > 40, "the map of the paper is there"
    files = _FILE.findall(PAPER.read_text(encoding="utf-8"))
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert "lab/configs/paper/rewrite.toml" in files


def test_a_name_that_does_not_exist_is_noticed():
    with pytest.raises(AttributeError):
        resolve("teo.alignment.derive_nothing")
    with pytest.raises(AttributeError):
        resolve("teo.no_such_module")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_sessions(page):
    text = "\n".join(block.body for block in blocks_of(page) if block.kind == "python" and ">>>" in block.body)
    session = doctest.DocTestParser().get_doctest(text, {}, name_of(page), str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert report == []


def pages_with(mark: str) -> list[Path]:
    return [page for page in PAGES if any(block.mark == mark for block in blocks_of(page))]


def check_commands(page: Path, mark: str, shell) -> None:
    """Write the files that a page shows, and run its blocks with the mark, in order."""
    for block in blocks_of(page):
        if block.mark.startswith("file: "):
            (shell.folder / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
        elif block.mark == mark:
            for command, expected in sessions_of(block.body):
                done = shell(command)
                assert done.returncode == 0, f"{command}\n{done.stdout}"
                assert matches(expected, done.stdout.splitlines()), f"{command}\n{done.stdout}"


@pytest.mark.process
@pytest.mark.parametrize("page", pages_with("run"), ids=name_of)
def test_commands_print_what_the_page_says(page, shell):
    check_commands(page, "run", shell)


@pytest.mark.process
@needs_data("data")
@pytest.mark.parametrize("page", pages_with("run with data"), ids=name_of)
def test_commands_on_the_datasets_print_what_the_page_says(page, shell):
    (shell.folder / "data").symlink_to(find_data("data"))
    check_commands(page, "run with data", shell)


def test_pages_have_commands_and_sessions_that_are_run():
    blocks = {
        name: blocks_of(ROOT / name) for name in ("README.md", "docs/python.md", "docs/metrics.md", "docs/data.md")
    }
    marks = {name: {block.mark for block in found} for name, found in blocks.items()}
    assert "run" in marks["README.md"]
    assert {"run", "file: predictions.jsonl"} <= marks["docs/metrics.md"]
    assert "run with data" in marks["docs/data.md"]
    assert all(any(">>>" in block.body for block in blocks[name]) for name in ("README.md", "docs/python.md"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_is_not_left_out_by_a_misspelt_mark(page):
    marks = {block.mark for block in blocks_of(page) if block.mark.startswith("run")}
    assert marks <= {"run", "run with data"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_that_are_not_run_exist(page):
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"^(?:    |\$ )(teo [^\n]+)$", text, re.MULTILINE)
    for line in lines:
        command = typer.main.get_command(app)
        words = shlex.split(re.sub(r"[\[\]|]", " ", line), comments=True)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}), f"{line}: no such command"
        known = {name for parameter in command.params for name in parameter.opts}
        assert [word for word in words if word.startswith("--") and word not in known] == [], line


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a", "c"], False),
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["a", "..."], ["a"], True),
        (["a"], ["a", "b"], False),
        (["...", "d"], ["a", "b"], False),
    ],
)
def test_dots_stand_for_any_lines(expected, found, same):
    assert matches(expected, found) is same


def test_the_metrics_page_has_every_signature_and_no_other():
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    said = {one.replace("\\|", "|") for one in _SIGNATURE.findall(page) if "version:" not in one}
    recipes = (*make_suite().signatures("teo"), bootstrap_signature(), paired_signature())
    assert said == {str(one).rpartition("|version:")[0] for one in recipes}
