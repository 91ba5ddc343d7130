"""The READMEs are true beyond what test_docs.py runs: records, HTTP calls, and the same structure in both languages.

The figures of the tables come from stored results, and the lab checks them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from teo.loading import has_default

ROOT = Path(__file__).resolve().parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
MOST_LINES = 180
"""More than that takes longer than two minutes."""
CLOSE = 0.03
"""How far a confidence may be from the printed one: 8-bit sums are rounded differently by other processors."""

_BLOCK = re.compile(r"^(?:<!-- ([^\n]+?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)\)")
_CONFIDENCE = re.compile(r'(?<="confidence": )[\d.]+|(?<="confidence":)[\d.]+|(?<=^    )\d\.\d\d(?=  )', re.MULTILINE)

each_readme = pytest.mark.parametrize("page", READMES, ids=lambda page: page.name)
with_model = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")


def blocks_of(page: Path, mark: str) -> list[str]:
    found = [body for kind, _, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == mark]
    assert found, f"{page.name}: expected a block marked <!-- {mark} -->, found none"
    return found


def sessions_of(body: str) -> list[tuple[str, str]]:
    """Return each command of a console block and what is printed under it."""
    return re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", body, re.MULTILINE)


def assert_same_but_for_confidence(found: str, expected: str) -> None:
    assert _CONFIDENCE.sub("?", found) == _CONFIDENCE.sub("?", expected)
    values = [[float(value) for value in _CONFIDENCE.findall(text)] for text in (found, expected)]
    assert values[1], "a confidence is printed"
    assert values[0] == pytest.approx(values[1], abs=CLOSE)


def test_other_words_and_far_confidences_are_noticed():
    printed = '{"rewrite": "a", "confidence": 0.5}\n    0.20  b\n'
    assert_same_but_for_confidence('{"rewrite": "a", "confidence": 0.5212}\n    0.22  b\n', printed)
    for other in (printed.replace('"a"', '"c"'), printed.replace("0.5", "0.54"), printed.replace("0.20", "0.90")):
        with pytest.raises(AssertionError):
            assert_same_but_for_confidence(other, printed)


@pytest.mark.process
@with_model
@each_readme
def test_records_are_as_printed(page, tmp_path):
    for mark, _, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if mark.startswith("file: "):
            (tmp_path / mark.removeprefix("file: ")).write_text(body, encoding="utf-8")
    (tmp_path / "teo").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m teo "$@"\n', encoding="utf-8")
    (tmp_path / "teo").chmod(0o755)
    search = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    for body in blocks_of(page, "confidence varies"):
        for command, expected in sessions_of(body):
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120
            )
            assert done.returncode == 0, done.stderr
            assert_same_but_for_confidence(done.stdout, expected)


@with_model
@each_readme
def test_the_server_answers_as_printed(page):
    calls = [call for body in blocks_of(page, "served") for call in sessions_of(body) if call[0].startswith("curl ")]
    assert calls
    for command, expected in calls:
        assert_same_but_for_confidence(ask(shlex.split(command)) + "\n", expected)


def ask(words: list[str]) -> str:
    """Return what the server of the embedded model answers to a curl command."""
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    from teo import Rewriter
    from teo.server.app import create_app
    from teo.server.settings import ServerSettings

    url = next(word for word in words if word.startswith("http"))
    body = words[words.index("-d") + 1].encode()
    headers = dict([words[words.index("-H") + 1].split(": ")])

    async def call() -> str:
        app = create_app(Rewriter.from_pretrained(), ServerSettings())
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client,
        ):
            answer = await client.post(url, content=body, headers=headers)
            assert answer.status_code == 200, answer.text
            return str(answer.text)

    return asyncio.run(call())


@each_readme
def test_a_reader_with_two_minutes_gets_through(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@each_readme
def test_both_commands_of_a_checkout_are_named(page):
    text = page.read_text(encoding="utf-8")
    assert all(command in text for command in ("`make run`", "`make test`", "`git clone --depth 1`", "pip install ."))
    assert "`teo-rewriter`" in text


@each_readme
def test_the_models_own_facts(page):
    described = json.loads((ROOT / "src" / "teo" / "default" / "teo.json").read_text(encoding="utf-8"))
    assert str(described["source_limit"]) in page.read_text(encoding="utf-8")
    assert described["variant"] == "fused", "the paper's way: operations, then the rewrite"


def outline(text: str) -> list[str]:
    """Return headings, marks, fences, lists and tables in order, without their words."""
    kinds = re.compile(r"^(#+(?= )|<!-- .+ -->$|```\w*$|- (?=\*\*)|\|(?= ))", re.MULTILINE)
    return [found for found in kinds.findall(text) if found]


def test_both_languages_have_the_same_structure_and_links():
    english, chinese = (page.read_text(encoding="utf-8") for page in READMES)
    assert outline(english) == outline(chinese)
    links = [set(_LINK.findall(_BLOCK.sub("", text))) for text in (english, chinese)]
    assert links[0] - {"README.zh-CN.md"} == links[1] - {"README.md"}
    assert "README.zh-CN.md" in links[0]
    assert "README.md" in links[1]


def test_another_structure_is_noticed():
    assert outline("# a\n- **b**\n") != outline("# a\n")
    assert outline("| a |\n") == outline("| b |\n") != outline("| a |\n| a |\n")
