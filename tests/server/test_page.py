"""The page in a browser: a rewrite, an edit explained, hostile text, errors, phone width, both languages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_rewriter import SCRIPT, FakeRewriter

import teo.server

PAGE = Path(teo.server.__file__).parent / "page"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = '<script>window.hacked = 1</script><img src=x onerror="window.hacked=2"> is he here?'


# ---- the files, without a browser ----


def test_nothing_in_the_page_is_inline_or_from_elsewhere() -> None:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.search(r"\son\w+=", html) is None, "no inline event handlers"
    assert re.search(r"\sstyle=|<style", html) is None, "no inline styles"
    assert re.search(r"<script(?![^>]*\bsrc=)", html) is None, "no inline scripts"
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.search(r"(?:https?:)?//\w+\.\w+", text) is None, f"{path.name} works offline"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name


def test_both_languages_say_everything() -> None:
    text = (PAGE / "i18n.js").read_text(encoding="utf-8")
    english, chinese = text.split("  zh: {")
    found = [dict(re.findall(r"^    (\w+): \"(.*)\",$", part, re.MULTILINE)) for part in (english, chinese)]
    assert len(found[0]) > 40
    assert found[0].keys() == found[1].keys()
    for key, sentence in found[0].items():
        assert set(re.findall(r"{\w+}", sentence)) == set(re.findall(r"{\w+}", found[1][key])), key
    used = set(re.findall(r'data-i18n(?:-label)?="(\w+)"', (PAGE / "index.html").read_text(encoding="utf-8")))
    assert used <= found[0].keys()


def test_the_samples_are_of_both_languages() -> None:
    found = re.findall(r'id: "(\w+)", lang: "(en|zh)"', (PAGE / "samples.js").read_text(encoding="utf-8"))
    assert [lang for _, lang in found].count("en") >= 3
    assert [lang for _, lang in found].count("zh") >= 3


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Any, live_server: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Open the page of a server of the fake rewriter; complaints of the browser fail the test."""
    closing: list[Callable[[], Any]] = []
    complaints: list[str] = []

    def start(width: int = 1200, language: str = "en-US", rewriter: Any = None, **settings: Any) -> Any:
        server = live_server(rewriter or FakeRewriter(), **settings)
        url = server.__enter__()
        context = browser.new_context(viewport={"width": width, "height": 800}, locale=language)
        context.set_default_timeout(10_000)
        closing.extend([context.close, lambda: server.__exit__(None, None, None)])
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        page.goto(url)
        page.wait_for_selector("[data-sample]")
        return page

    yield start
    for close in closing:
        close()
    assert complaints == []


def write(page: Any, *turns: str) -> None:
    for _ in turns[2:]:
        page.click("#add")
    for index, turn in enumerate(turns):
        page.fill(f"#turn-{index}", turn)


def test_a_dialogue_is_typed_and_rewritten(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I think Bruce Wayne is handsome.", "It looks like Ben Affleck.", "It is he who acted.")
    page.press("#turn-2", "Control+Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert page.locator("#text ins").all_text_contents() == ["Ben Affleck", "as Bruce Wayne"]
    assert page.locator("#text del").all_text_contents() == ["he"]
    colours = page.evaluate(
        "[...document.querySelectorAll('#text ins')].map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(colours)) == 2, "insertions and replacements differ in colour"
    operations = [" ".join(one.split()) for one in page.locator("#operations .operation").all_text_contents()]
    assert operations == ["[D] he [R] Ben Affleck", "[I] as Bruce Wayne"]
    assert page.inner_text("#confidence-value") == "0.88"
    assert re.fullmatch(r"[\d.]+ ms", page.inner_text("#latency"))
    assert re.fullmatch(r"queue [\d.]+ ms, model [\d.]+ ms", page.inner_text("#latency-parts"))
    assert page.inner_text("#verdict") == "2 edits; the rest is as it was written."
    assert page.text_content("#announce").startswith("It is Ben Affleck who acted as Bruce Wayne.")


def test_offsets_hold_after_signs_that_javascript_counts_twice(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "👩‍👩‍👧😀 is he 👍?")
    page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    kept = page.evaluate("[...document.querySelectorAll('#text del')].forEach((one) => one.remove())")
    assert kept is None
    assert page.text_content("#text") == "👩‍👩‍👧😀 is Ada Lovelace 👍?"


@pytest.mark.parametrize("reach", ["hover", "focus"])
def test_an_edit_explains_itself(open_page: Callable[..., Any], reach: str) -> None:
    page = open_page()
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#text .edit")
    assert page.is_hidden("#tip")
    edit = page.locator("#text .edit").first
    edit.hover() if reach == "hover" else edit.focus()
    page.wait_for_selector("#tip:not([hidden])")
    assert page.text_content("#tip") == "“he” became “Pierre Curie”.\nTurn 2 says it."
    assert edit.get_attribute("aria-label") == page.text_content("#tip")
    assert page.locator(".turn.source textarea").input_value() == "No, together with Pierre Curie."
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")
    assert page.locator(".turn.source").count() == 0


def test_hostile_text_stays_text(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace <b>there</b>.", HOSTILE)
    page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    page.locator("#text .edit").first.hover()
    for form in ("curl", "python", "json"):
        page.click(f"#tab-{form}")
        assert "script" in page.text_content("#snippet-text")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main b:not(.operation b), #result img").count() == 0
    assert page.text_content("#text").startswith("<script>window.hacked = 1</script><img src=x")


def test_an_error_of_the_server_is_shown_with_its_id(open_page: Callable[..., Any]) -> None:
    page = open_page(max_characters=20)
    write(page, "I met Ada Lovelace.", "is he here?")
    page.click("#rewrite")
    page.wait_for_selector("#error:not([hidden])")
    assert "history: expected a dialogue of at most 20 characters, found 30" in page.inner_text("#error")
    assert re.search(r"Request [0-9a-f]{32}", page.inner_text("#error"))
    assert page.get_attribute("#error", "role") == "alert"
    assert page.is_hidden("#answer")
    page.route("**/v1/rewrite", lambda route: route.abort())
    page.click("#rewrite")
    page.wait_for_selector("text=The server cannot be reached.")


def test_a_server_with_a_token_asks_for_it(open_page: Callable[..., Any]) -> None:
    page = open_page(token="secret")
    assert page.is_hidden("#token")
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#token", state="visible")
    page.fill("#token", "secret")
    page.press("#token", "Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert "$TEO_TOKEN" in page.text_content("#snippet-text")
    assert "secret" not in page.text_content("#snippet-text")


def test_the_language_switches_everything(open_page: Callable[..., Any]) -> None:
    page = open_page(language="zh-CN")
    assert page.inner_text("h2 >> nth=0") == "对话"
    page.click('[data-sample="zhou"]')
    page.wait_for_selector("#text ins")
    assert page.text_content("#text ins") == "周杰伦"
    page.locator("#text .edit").first.hover()
    assert page.text_content("#tip") == "“他”改为“周杰伦”。\n出自第 1 句。"
    page.click('[data-language="en"]')
    assert page.inner_text("h2 >> nth=0") == "Dialogue"
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.inner_text("#verdict") == "1 edit; the rest is as it was written."
    page.reload()
    page.wait_for_selector("[data-sample]")
    assert page.inner_text("h2 >> nth=0") == "Dialogue", "the choice is remembered"


def test_every_sample_is_answered(open_page: Callable[..., Any]) -> None:
    page = open_page()
    seen = {}
    for button in page.locator("[data-sample]").all():
        button.click()
        utterance = page.locator(".turn.last textarea").input_value()
        page.locator("#busy:text-is('')").wait_for(state="attached")
        page.locator("#text:not(.stale)").wait_for()
        page.evaluate("document.querySelectorAll('#text del').forEach((one) => one.remove())")
        seen[utterance] = page.text_content("#text")
    assert len(seen) == 8
    assert seen == {utterance: SCRIPT.get(utterance, utterance) for utterance in seen}
    assert page.inner_text("#verdict") == "Kept as it is: it can be understood on its own."


def test_the_threshold_is_the_users_to_move(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "maybe he did")
    page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    assert "confidence is below the threshold" in page.inner_text("#verdict")
    page.click(".options summary")
    assert "(zh 0.50)" in page.inner_text(".check")
    page.uncheck("#own-threshold")
    page.fill("#threshold", "0.2")
    assert page.inner_text("#verdict") == "The dialogue has changed since this rewrite."
    page.click("#rewrite")
    page.wait_for_selector("#text ins")
    assert '"min_confidence":0.2' in page.text_content("#snippet-text")


def test_snippets_are_the_request(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "It's Ada Lovelace's \"engine\" \\ $HOME `x`\nnew line", "is he here?")
    page.click("#tab-json")
    body = json.loads(page.text_content("#snippet-text"))
    assert body == {
        "history": ["It's Ada Lovelace's \"engine\" \\ $HOME `x`\nnew line"],
        "utterance": "is he here?",
    }
    page.click("#tab-python")
    code = page.text_content("#snippet-text")
    asked: dict[str, Any] = {}

    class Asked:
        rewrite = confidence = ""

        @classmethod
        def from_pretrained(cls) -> Any:
            return SimpleNamespace(rewrite=lambda **given: asked.update(given) or cls)

    exec(code.replace("from teo import Rewriter\n", ""), {"Rewriter": Asked})
    assert asked == body
    page.focus("#tab-python")
    page.keyboard.press("ArrowLeft")
    assert page.get_attribute("#tab-curl", "aria-selected") == "true"
    if shutil.which("curl"):
        command = page.text_content("#snippet-text").replace("curl ", "curl -s ", 1)
        found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20)
        assert json.loads(found.stdout)["rewrite"] == "is Ada Lovelace here?"


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (320, 1), (820, 1), (1200, 2)])
def test_the_layout_fits_the_width(open_page: Callable[..., Any], width: int, columns: int) -> None:
    page = open_page(width=width)
    page.click('[data-sample="joker"]')
    page.wait_for_selector("#text ins")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out sideways"
    left, right = (page.locator(name).bounding_box() for name in ("#dialogue", "#result"))
    if columns == 1:
        assert right["y"] >= left["y"] + left["height"], "the result is below the dialogue"
        assert abs(left["width"] - right["width"]) < 1
    else:
        assert right["x"] >= left["x"] + left["width"], "the result is beside the dialogue"
    if width <= 480:
        small = page.evaluate(
            "[...document.querySelectorAll('main button')].filter((one) => one.offsetParent)"
            ".map((one) => [one.id || one.textContent, one.getBoundingClientRect()])"
            ".filter(([, box]) => box.height < 36 || box.width < 30).map(([name]) => name)"
        )
        assert small == [], "what is tapped is large enough"
    for edit in page.locator("#text .edit").all():
        edit.hover()
        box = page.locator("#tip").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, "a tip stays inside"


def test_text_is_legible_in_light_and_dark(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click('[data-sample="joker"]')
    page.wait_for_selector("#text ins")
    for theme in ("light", "dark"):
        if page.evaluate("document.documentElement.dataset.theme") != theme:
            page.click("#theme")
        page.wait_for_timeout(200)
        weak = page.evaluate(CONTRAST)
        assert weak == [], theme


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (one) => { for (; one; one = one.parentElement) {
    const colour = parse(getComputedStyle(one).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour; } return [255, 255, 255]; };
  const weak = [];
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.offsetParent || one.closest('.skip, .sr, kbd, noscript, script')) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(`${one.tagName}.${one.className} ${one.textContent.slice(0, 20)}`);
  }
  return weak;
}"""


def test_the_keyboard_reaches_everything(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click('[data-sample="joker"]')
    page.wait_for_selector("#text ins")
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className || ''"))
    for name in ("turn-0", "turn-2", "add", "clear", "rewrite", "theme", "copy", "copy-rewrite", "tab-curl", "snippet",
                 "edit replace", "edit insert", "skip"):  # fmt: skip
        assert name in reached, name
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, textarea, input, meter')]"
        ".filter((one) => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') ||"
        " one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)"
    )
    assert unnamed == [], "a screen reader has a name for every control"
