"""The part of lab/docs/results.md on the two stages: what is stored is shown, what is missing is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from teo_lab.pages.two_stages import PAGES, Mending, embed, read_mending, render_two_stages

PAGE = "# Title\n\nIn percent.\n\n## Runs\n\n| a |\n| --- |\n\n![EM](figure3.png)\n\nMade by `teo-lab reproduce all`.\n"
FLOW = {"n": 10, "right_right": 5, "right_wrong": 1, "wrong_right": 1, "wrong_wrong": 3}


def store(folder: Path, name: str, metrics: object, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True)
    (folder / f"{name}.json").write_text(json.dumps(metrics), encoding="utf-8")
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (folder / f"{name}.rows.jsonl.gz").write_bytes(packed)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return a study of TASK in which four of ten rows have wrong operations."""
    folder = tmp_path / "reproduce" / "teo-base"
    rows = [{"id": str(k), "right": k < 6, "operations_right": k < 6} for k in range(10)]
    flow = {**FLOW, "wrong_followed": 2, "wrong_harmless": 1}
    store(folder / "task-teo-seed0", "task-test-teo", {"stage_flow": flow}, rows)
    store(folder / "task-direct-seed0", "task-test-direct", {}, [{"id": str(k), "right": k > 6} for k in range(10)])
    for name in PAGES:
        (folder / f"{name}.md").write_text(PAGE, encoding="utf-8")
    return folder


def test_what_becomes_of_wrong_operations(study: Path) -> None:
    assert read_mending(study, "task") == Mending("TASK", 0.25, 0.5, 0.25, 0.1, 0.75)
    assert read_mending(study, "rewrite") is None
    (study / "task-direct-seed0" / "task-test-direct.json").unlink()
    found = read_mending(study, "task")
    assert found is not None
    assert found.direct is None, "without direct nothing is said of it"


def test_the_pages_of_a_study_are_shown_under_their_headings(study: Path) -> None:
    page = "\n\n".join(render_two_stages(study.parent))
    assert "### Models that start from teo-base" in page
    assert "TASK: 10.0% of all rows, which is 25.0% of those with wrong operations." in page
    assert "It follows wrong operations in 50.0%, and in 25.0% they are harmless; direct has 75.0% of these" in page
    assert [f"#### {heading}".replace("_", "\\_") in page for heading in PAGES.values()] == [True] * len(PAGES)
    assert "![EM](../results/reproduce/teo-base/figure3.png)" in page
    assert "# Title" not in page
    assert "\n## Runs" not in page, "headings of a page would break the order of those around it"


def test_runs_and_command_stand_once(study: Path) -> None:
    page = "\n\n".join(render_two_stages(study.parent))
    assert page.count("**Runs**") == 1
    assert page.count("Made by `teo-lab reproduce all`.") == 1
    assert page.index("**Runs**") < page.index("#### Table 5")


def test_what_a_person_read_from_the_figures_is_shown(study: Path) -> None:
    (study / "note.md").write_text("It holds ([table 2](table2.md), [paper](https://a.org/b)).\n", encoding="utf-8")
    page = "\n\n".join(render_two_stages(study.parent))
    assert "It holds ([table 2](../results/reproduce/teo-base/table2.md), [paper](https://a.org/b))." in page


def test_what_is_missing_is_named(study: Path) -> None:
    (study / "cases.md").unlink()
    (study / "task-teo-seed0" / "task-test-teo.json").unlink()
    page = "\n\n".join(render_two_stages(study.parent))
    assert "Not stored: `teo-base/cases.md`." in page
    assert "cannot be said yet: no evaluation of separate stages is stored" in page
    assert "Nothing is stored yet." in render_two_stages(study / "elsewhere")[-1]


def test_a_page_is_embedded_without_its_title() -> None:
    shown = embed(PAGE, Path("results/reproduce/teo-base/figure3.md"))
    assert shown.startswith("In percent.\n\n**Runs**")
