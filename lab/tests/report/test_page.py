"""The report in a browser, opened from disk: filters, markup in texts, a phone, paper, and no request at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from judged_files import write_lines
from teo_lab.paths import RESULTS
from teo_lab.report.make import ReportRequest, write_report

NASTY = "</script><script>document.title='bad'</script><img src=x onerror=\"document.title='bad'\">"
ROWS = 60


def predicted(number: int) -> dict[str, Any]:
    """Every third rewrite is wrong, every sixth has wrong operations too; a quarter of the utterances is complete."""
    complete, wrong = number % 4 == 0, number % 3 == 0
    reference = "he" if complete else "Ben"
    gold = "" if complete else "[D] he [R] Ben"
    return {
        "id": f"row-{number}",
        "history": [NASTY, "Ben is here."],
        "current": "he " + "so " * (number % 5) + "spoke",
        "reference": f"{reference} " + "so " * (number % 5) + "spoke",
        "prediction": f"{'Tom' if wrong else reference} " + "so " * (number % 5) + "spoke",
        "operations": "[D] he [R] Tom" if number % 6 == 0 else gold,
        "gold_operations": gold,
        "well_formed": True,
        "scores": {"stage1": -0.01 if number % 2 else -2.0},
        "truncated": {"turns": 0, "characters": 0},
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    first = write_lines(folder / "first" / "predictions.jsonl", [predicted(number) for number in range(ROWS)])
    second = write_lines(folder / "second" / "predictions.jsonl", [predicted(1)])
    return write_report(ReportRequest(RESULTS, folder / "out", (first, second))).page.as_uri()


@pytest.fixture
def open_page(browser: Any, report: str) -> Iterator[Callable[..., Any]]:
    """Open the page; what it complains about and what it asks for is checked at the end."""
    complaints, asked, contexts = list[str](), list[str](), []

    def start(width: int = 1200) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report)
        page.wait_for_selector("#count:not(:empty)")
        return page

    yield start
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in asked if not url.startswith("data:")} == {report}, "nothing but the file itself"


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, lambda number: True),
        ({"right": "true"}, lambda number: number % 3 != 0),
        ({"right": "false", "stage1": "true"}, lambda number: number % 3 == 0 and number % 6 != 0),
        ({"stage1": "false"}, lambda number: number % 6 == 0),
        ({"kind": "complete"}, lambda number: number % 4 == 0),
        ({"shortest": "3", "longest": "4"}, lambda number: number % 5 in (1, 2)),
        ({"least": "0.5"}, lambda number: number % 2 == 1),
        ({"most": "0.5", "right": "true"}, lambda number: number % 2 == 0 and number % 3 != 0),
        ({"words": "ROW-7"}, lambda number: number == 7),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_filters(open_page: Callable[..., Any], fields: dict[str, str], wanted: Callable[[int], bool]) -> None:
    page = open_page()
    for name, value in fields.items():
        if page.evaluate(f"document.getElementById('{name}').tagName") == "SELECT":
            page.select_option(f"#{name}", value)
        else:
            page.fill(f"#{name}", value)
    rows = [number for number in range(ROWS) if wanted(number)]
    right = sum(number % 3 != 0 for number in rows)
    assert page.inner_text("#count") == f"{len(rows)} of {ROWS} rows, {100 * right / len(rows):.1f}% right"
    assert page.locator("#rows .case").count() == min(len(rows), 50)
    page.click("#filters button[type=reset]")
    page.wait_for_selector(f"#count:has-text('{ROWS} of {ROWS} rows')")


def test_more_rows_and_another_system(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click("#more")
    assert page.locator("#rows .case").count() == ROWS
    assert page.is_hidden("#more")
    page.select_option("#system", "1")
    assert page.inner_text("#count") == "1 of 1 rows, 100.0% right"
    row = page.locator("#rows .case")
    assert row.locator("del").inner_text() == "he"
    assert row.locator("ins").inner_text() == "Ben"


def test_text_is_not_markup(open_page: Callable[..., Any]) -> None:
    page = open_page()
    assert page.inner_text("#rows .case >> nth=0 >> li >> nth=0").endswith(NASTY)
    assert page.inner_text("#cases .case >> nth=0 >> li >> nth=0").endswith(NASTY)
    assert page.title() != "bad"


def test_a_phone_scrolls_tables_not_the_page(open_page: Callable[..., Any]) -> None:
    page = open_page(360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_every_picture_is_drawn_and_named(open_page: Callable[..., Any]) -> None:
    page = open_page()
    pictures = page.evaluate("[...document.images].map((image) => [image.naturalWidth, image.alt])")
    assert len(pictures) >= 6
    assert all(width > 100 and alt for width, alt in pictures)


def test_paper_has_no_filters_and_few_rows(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.emulate_media(media="print")
    assert page.is_hidden("#filters")
    assert page.locator("#rows .case:visible").count() == 20
    assert page.locator("#cases .case:visible").count() == page.locator("#cases .case").count() > 0
