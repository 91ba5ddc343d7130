"""`teo-lab pages`: every figure comes from stored results, a stale page is named, prose stays."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from teo.errors import InputError
from teo_lab.cli.pages import pages
from teo_lab.pages.blocks import fill
from teo_lab.pages.make import PAGES, ROOT, find_stale, make_pages, write_pages
from teo_lab.pages.readme import CHINESE, ENGLISH, make_figures
from teo_lab.paths import RESULTS
from verbs import app_of


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the pages of the repository."""
    for name in PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_pages_of_the_repository_are_what_its_results_make() -> None:
    assert find_stale() == [], "run teo-lab pages"


def test_a_changed_figure_makes_its_pages_stale_until_they_are_written(checkout: Path) -> None:
    results = checkout / "results"
    shutil.copytree(RESULTS, results)
    file = results / "default" / "task-test-fused+threshold.json"
    metrics = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**metrics, "em": 0.3881}), encoding="utf-8")
    stale = ["README.md", "README.zh-CN.md", "lab/docs/results.md"]
    assert find_stale(checkout, results) == stale
    assert write_pages(checkout, results) == stale
    assert [name for name in PAGES if "38.8" in (checkout / name).read_text(encoding="utf-8")] == stale
    assert write_pages(checkout, results) == [], "written once"


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_changed_by_hand_is_noticed(name: str, checkout: Path) -> None:
    page = checkout / name
    text = page.read_text(encoding="utf-8")
    generated = text[text.find("<!-- figures: begin") :] if "<!-- figures: begin" in text else text
    figure = re.search(r"\| ([\d.,]+) \|", generated)
    assert figure, name
    page.write_text(text.replace(figure[0], "| 98765 |", 1), encoding="utf-8")
    assert find_stale(checkout) == [name]
    assert write_pages(checkout) == [name]
    assert page.read_text(encoding="utf-8") == text


def test_the_command_names_stale_pages_and_writes_them(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_stale, "__defaults__", (checkout, RESULTS))
    monkeypatch.setattr(write_pages, "__defaults__", (checkout, RESULTS))
    command = app_of(pages)
    clean = CliRunner().invoke(command, ["pages", "--check"])
    assert (clean.exit_code, clean.output) == (0, "")
    page = checkout / "docs" / "performance.md"
    before = page.read_text(encoding="utf-8")
    page.write_text("stale", encoding="utf-8")
    found = CliRunner().invoke(command, ["pages", "--check"])
    assert (found.exit_code, found.stdout) == (1, "docs/performance.md\n")
    assert "run teo-lab pages" in found.stderr
    assert page.read_text(encoding="utf-8") == "stale", "a check writes nothing"
    written = CliRunner().invoke(command, ["pages"])
    assert (written.exit_code, written.stdout) == (0, "docs/performance.md\n")
    assert page.read_text(encoding="utf-8") == before


def test_no_page_is_written_if_one_cannot_be_made(checkout: Path) -> None:
    (checkout / "docs" / "performance.md").write_text("stale", encoding="utf-8")
    (checkout / "docs" / "scale.md").write_text("no marks", encoding="utf-8")
    with pytest.raises(InputError, match=r"docs/scale\.md: expected blocks between .* without a name; found none"):
        write_pages(checkout)
    assert (checkout / "docs" / "performance.md").read_text(encoding="utf-8") == "stale"
    (checkout / "docs" / "scale.md").unlink()
    with pytest.raises(InputError, match=r"docs/scale\.md: expected the page in .*, found none"):
        make_pages(checkout)
    with pytest.raises(InputError, match=r"README\.md: .*everyday\.json: no such file"):
        make_pages(checkout, checkout)


def test_blocks_are_filled_by_name_and_prose_stays() -> None:
    blocks = [
        f"<!-- figures: begin {name} -->\n{body}<!-- figures: end -->" for name, body in (("x", "old\n"), ("y", ""))
    ]
    page = f"a\n{blocks[0]}\nb\n{blocks[1]}"
    filled = fill(page, {"x": "1", "y": "2"})
    assert filled == page.replace("old", "1").replace("y -->\n", "y -->\n2\n")
    assert fill(filled, {"x": "1", "y": "2"}) == filled
    with pytest.raises(InputError, match=r"expected blocks .*: x; found x, y"):
        fill(page, {"x": "1"})


def cells_of(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def test_both_readmes_have_the_same_figures_in_their_own_words() -> None:
    english, chinese = (cells_of(make_figures(RESULTS, wording)) for wording in (ENGLISH, CHINESE))
    heads = (0, 8, 14, 18)
    assert len(english) == len(chinese) == (2 + 6) + (2 + 4) + (2 + 2) + (2 + 1)
    for row in range(len(english)):
        if row in heads or row - 1 in heads:
            continue
        assert english[row][1:] == chinese[row][1:]
        assert english[row][0] != chinese[row][0]
    assert [len(row) for row in english] == [8] * 8 + [6] * 10 + [7] * 3


def test_the_readmes_rows_are_those_of_the_stored_files() -> None:
    rows = {row[0]: row[1:] for row in cells_of(make_figures(RESULTS, ENGLISH))}
    metrics = json.loads((RESULTS / "default" / "task-test-fused+threshold.json").read_text(encoding="utf-8"))
    task = rows["TASK, English restaurant search"]
    assert task[0].startswith(f"{100 * metrics['em']:.1f} [")
    assert task[-1] == "78.1", "the paper's TEO"
    everyday = json.loads((RESULTS / "default" / "everyday.json").read_text(encoding="utf-8"))["languages"]["zh"]
    careful = next(row for row in cells_of(make_figures(RESULTS, ENGLISH)) if row[:2] == ["Chinese", "`careful`"])
    rates = everyday["careful"]["meaning"]["rates"]
    assert careful[2:7] == [f"{100 * rates[name]:.1f}" for name in ("right", "partly", "wrong", "missed", "kept")]
    bench = json.loads((RESULTS / "performance" / "task" / "bench.json").read_text(encoding="utf-8"))
    times = {speed["name"]: f"{speed['latency_ms']:.0f}" for speed in bench["speeds"]}
    assert rows["teo, 8 bits"][1] == times["teo fused, int8, 1 thread"]
