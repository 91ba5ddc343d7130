"""The READMEs are true beyond what test_docs.py runs: HTTP calls, confidences, figures, and both languages alike."""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teo.errors import MissingExtraError
from teo.evaluation.report import percent
from teo.loading import has_default

ROOT = Path(__file__).resolve().parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
QUALITY = {"README.md": "## Quality\n", "README.zh-CN.md": "## 效果\n"}
DATASETS = ("rewrite", "task", "res200k")
PUBLISHED = ("RUN", "RUN + BERT", "BART-base", "TEO")
OURS = [("default", "fast"), ("default", "fast+threshold"), ("default", "fused"), ("", "fused"), ("", "direct")]
"""The rows of the quality table: a model's folder in results (none: the dataset's own) and the variant."""
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
def test_snippets_import_what_exists(page):
    """Those that are no sessions cannot run, for want of a retriever; what they import must be there."""
    code = [body for _, kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == "python"]
    trees = [ast.parse(body) for body in code if ">>>" not in body]
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert (len(trees), len(imports)) == (3, 2)
    for node in imports:
        try:
            module = importlib.import_module(str(node.module))
        except MissingExtraError as error:
            pytest.skip(str(error))
        assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def table_of(page: Path) -> list[list[str]]:
    """Return the cells of the quality table's rows, without its head."""
    section = section_of(page)
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return rows[2:]


def section_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition(QUALITY[page.name])[2].partition("\n## ")[0]


def read_metrics(model: str, data: str, variant: str) -> dict[str, Any] | None:
    file = ROOT / "results" / (model or data) / f"{data}-test-{variant}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def with_interval(metrics: dict[str, Any] | None) -> str:
    if metrics is None:
        return "-"
    low, high = metrics["intervals"]["em"]
    return f"{percent(metrics['em'])} [{percent(low)}, {percent(high)}]"


@each_readme
def test_the_quality_table_is_that_of_the_stored_results(page):
    stored = json.loads((ROOT / "results" / "published.json").read_text(encoding="utf-8"))["rows"]
    published = {(row["system"], row["dataset"]): str(row["metrics"]["em"]) for row in stored}
    expected = [[published.get((system, data), "-") for data in DATASETS] for system in PUBLISHED]
    expected += [[with_interval(read_metrics(model, data, name)) for data in DATASETS] for model, name in OURS]
    rows = table_of(page)
    assert [row[-len(DATASETS) :] for row in rows] == expected
    assert all(row[0].startswith(system) for row, system in zip(rows, PUBLISHED, strict=False))
    assert all(
        f"`{name.partition('+')[0]}`" in row[0] for row, (_, name) in zip(rows[len(PUBLISHED) :], OURS, strict=True)
    )


@each_readme
def test_shares_in_the_text_are_those_of_the_stored_results(page):
    known = set()
    for data in DATASETS:
        for variant in ("fast", "fast+threshold"):
            kinds = (read_metrics("default", data, variant) or {}).get("breakdown", {})
            known |= {percent(kinds[key]) for key in ("over_rewrite_rate", "under_rewrite_rate") if kinds.get(key)}
            known |= {percent(kinds["complete"]["em"])} if kinds.get("complete", {}).get("em") else set()
    before, _, after = page.read_text(encoding="utf-8").partition("<!-- speed table -->")
    said = re.findall(r"(\d+\.\d)%", before + after.partition("\n## ")[2])
    assert len(said) == 9
    assert set(said) <= known


@each_readme
def test_the_models_own_facts(page):
    text = page.read_text(encoding="utf-8")
    described = json.loads((ROOT / "src" / "teo" / "models" / "default" / "teo.json").read_text(encoding="utf-8"))
    calibration = described["extra"]["calibration"][described["variant"]]
    report = json.loads((ROOT / "results" / "default" / "calibration" / "calibration.json").read_text(encoding="utf-8"))
    for fact in (*calibration["thresholds"].values(), described["source_limit"]):
        assert str(fact) in text
    assert f"{report['calibration_error']:.3f}" in text
    assert described["variant"] == report["variant"] == "fast"


def test_both_languages_have_the_same_sections_figures_and_links():
    english, chinese = (page.read_text(encoding="utf-8") for page in READMES)
    for pattern in (r"^#+(?= )", r"^<!-- .+ -->$", r"^```\w*$"):
        assert set(re.findall(pattern, english, re.MULTILINE)) == set(re.findall(pattern, chinese, re.MULTILINE))
    assert len(re.findall(r"^## ", english, re.MULTILINE)) == len(re.findall(r"^## ", chinese, re.MULTILINE))
    links = [set(_LINK.findall(_BLOCK.sub("", text))) for text in (english, chinese)]
    assert links[0] - {"README.zh-CN.md"} == links[1] - {"README.md"}
    assert "README.zh-CN.md" in links[0]
    assert "README.md" in links[1]
    assert [row[-3:] for row in table_of(READMES[0])] == [row[-3:] for row in table_of(READMES[1])]
