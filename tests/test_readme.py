"""The READMEs are true beyond what test_docs.py runs: HTTP calls, confidences, figures, and both languages alike."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teo.evaluation.markdown import percent
from teo.loading import has_default

ROOT = Path(__file__).resolve().parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
QUALITY = {"README.md": "## Quality\n", "README.zh-CN.md": "## 效果\n"}
STORED = tuple((data, "direct+threshold") for data in ("rewrite", "task", "res200k", "canard"))
"""The published test sets of the quality table, in its order, and the stored variant: `teo rewrite` has thresholds."""
MOST_LINES = 180
"""A reader with two minutes reads no more."""
CLOSE = 0.1
"""How far a confidence may be from the printed one: 8-bit sums are rounded differently by other processors."""

_BLOCK = re.compile(r"^(?:<!-- ([^\n]+?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)\)")
_CONFIDENCE = re.compile(r'(?<="confidence": )[\d.]+|(?<="confidence":)[\d.]+|(?<=^    )\d\.\d\d(?=  )', re.MULTILINE)

each_readme = pytest.mark.parametrize("page", READMES, ids=lambda page: page.name)
with_model = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")


def blocks_of(page: Path, mark: str) -> list[str]:
    found = [body for said, _, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if said == mark]
    assert found, f"{page.name}: expected a block marked <!-- {mark} -->, found none"
    return found


def sessions_of(body: str) -> list[tuple[str, str]]:
    """Return each command of a console block and what is printed under it."""
    return re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", body, re.MULTILINE)


def assert_same_but_for_confidence(found: str, expected: str) -> None:
    assert _CONFIDENCE.sub("?", found) == _CONFIDENCE.sub("?", expected)
    values = [[float(one) for one in _CONFIDENCE.findall(text)] for text in (found, expected)]
    assert values[1], "a confidence is printed"
    assert values[0] == pytest.approx(values[1], abs=CLOSE)


def test_other_words_and_far_confidences_are_noticed():
    printed = '{"rewrite": "a", "confidence": 0.5}\n    0.20  b\n'
    assert_same_but_for_confidence('{"rewrite": "a", "confidence": 0.5312}\n    0.22  b\n', printed)
    for other in (printed.replace('"a"', '"c"'), printed.replace("0.5", "0.9"), printed.replace("0.20", "0.90")):
        with pytest.raises(AssertionError):
            assert_same_but_for_confidence(other, printed)


@with_model
@each_readme
def test_records_are_as_printed(page, tmp_path):
    for said, _, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if said.startswith("file: "):
            (tmp_path / said.removeprefix("file: ")).write_text(body, encoding="utf-8")
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


def table_of(page: Path) -> list[list[str]]:
    """Return the cells of the quality table's rows, without its head."""
    section = page.read_text(encoding="utf-8").partition(QUALITY[page.name])[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]


def read_result(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


def published_cells(data: str, variant: str) -> list[str]:
    """Return the row of a published test set: ours, by kind, then the paper's."""
    metrics = read_result(f"default/{data}-test-{variant}.json")
    low, high = metrics["intervals"]["em"]
    kinds = metrics["breakdown"]
    shares = (kinds["incomplete"]["em"], kinds["under_rewrite_rate"], kinds["complete"]["em"])
    rows = read_result("published.json")["rows"]
    paper = [str(row["metrics"]["em"]) for row in rows if (row["system"], row["dataset"]) == ("TEO", data)]
    interval = f"{percent(metrics['em'])} [{percent(low)}, {percent(high)}]"
    return [interval, *("-" if share is None else percent(share) for share in shares), *(paper or "-")]


def everyday_cells(counts: dict[str, Any]) -> list[str]:
    """Return the row of the everyday dialogues in one language."""
    incomplete, complete = counts["incomplete"], counts["complete"]
    return [
        percent((counts["right"] + counts["kept"]) / (incomplete + complete)),
        percent(counts["right"] / incomplete),
        percent(counts["missed"] / incomplete),
        percent(counts["kept"] / complete),
        "-",
    ]


@each_readme
def test_the_quality_table_is_that_of_the_stored_results(page):
    everyday = read_result("default/everyday.json")["languages"]
    expected = [published_cells(*stored) for stored in STORED]
    expected += [everyday_cells(everyday[language]) for language in ("en", "zh")]
    rows = table_of(page)
    assert [row[1:] for row in rows] == expected
    assert [row[0].lower().startswith(data) for row, (data, _) in zip(rows, STORED, strict=False)] == [True] * 4


@each_readme
def test_the_models_own_facts(page):
    text = page.read_text(encoding="utf-8")
    described = json.loads((ROOT / "src" / "teo" / "default" / "teo.json").read_text(encoding="utf-8"))
    calibration = described["extra"]["calibration"][described["variant"]]
    for fact in (*calibration["thresholds"].values(), described["source_limit"]):
        assert str(fact) in text
    assert described["variant"] == "direct", "the READMEs say that the rewrite is written in one step"


def test_both_languages_have_the_same_sections_figures_and_links():
    english, chinese = (page.read_text(encoding="utf-8") for page in READMES)
    for pattern in (r"^#+(?= )", r"^<!-- .+ -->$", r"^```\w*$"):
        assert set(re.findall(pattern, english, re.MULTILINE)) == set(re.findall(pattern, chinese, re.MULTILINE))
    assert len(re.findall(r"^## ", english, re.MULTILINE)) == len(re.findall(r"^## ", chinese, re.MULTILINE))
    links = [set(_LINK.findall(_BLOCK.sub("", text))) for text in (english, chinese)]
    assert links[0] - {"README.zh-CN.md"} == links[1] - {"README.md"}
    assert "README.zh-CN.md" in links[0]
    assert "README.md" in links[1]
    assert [row[1:] for row in table_of(READMES[0])] == [row[1:] for row in table_of(READMES[1])]
