"""The page in a browser: a rewrite, an edit explained, hostile text, errors, phone width, both languages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from fake_rewriter import SCRIPT, FakeRewriter

import teo.server
from teo.errors import InputError
from teo.server.schemas import Reason

PAGE = Path(teo.server.__file__).parent / "page"
HOSTILE = '<script>window.hacked = 1</script><img src=x onerror="window.hacked=2"> is he here?'


# ---- the files, without a browser ----


def test_nothing_in_the_page_is_inline_or_from_elsewhere() -> None:
    html = "".join((PAGE / name).read_text(encoding="utf-8") for name in ("index.html", "docs.html"))
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
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.js"))
    said = set(re.findall(r'say\((?:[^()]*\? )?"(\w+)"', scripts))
    assert len(said) > 20
    assert said <= found[0].keys()


def test_every_reason_of_a_record_has_a_sentence() -> None:
    text = (PAGE / "answer.js").read_text(encoding="utf-8")
    table = text.partition("const KEPT = {")[2].partition("};")[0]
    assert {one.strip('"') for one in re.findall(r'([\w"-]+): "kept', table)} == set(get_args(Reason))


def test_the_samples_are_of_both_languages() -> None:
    found = re.findall(r'id: "(\w+)", lang: "(en|zh)"', (PAGE / "samples.js").read_text(encoding="utf-8"))
    assert [lang for _, lang in found].count("en") >= 3
    assert [lang for _, lang in found].count("zh") >= 3


# ---- in a browser ----


@pytest.fixture
def open_page(browser: Any, live_server: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Open the page of a server of the fake rewriter; complaints of the browser fail the test."""
    closing: list[Callable[[], Any]] = []
    complaints: list[str] = []
    strangers: list[str] = []

    def start(
        width: int = 1200,
        language: str = "en-US",
        rewriter: Any = None,
        path: str = "/",
        ready: str = "[data-sample]",
        phone: bool = False,
        **settings: Any,
    ) -> Any:
        server = live_server(rewriter or FakeRewriter(), **settings)
        url = server.__enter__()
        screen = {"width": 390, "height": 844} if phone else {"width": width, "height": 800}
        context = browser.new_context(
            viewport=screen, locale=language, has_touch=phone, is_mobile=phone, reduced_motion="reduce"
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(60_000)
        closing.extend([context.close, lambda: server.__exit__(None, None, None)])
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        page.on("request", lambda request: strangers.append(request.url) if not request.url.startswith(url) else None)
        page.goto(url + path)
        page.wait_for_selector(ready)
        return page

    yield start
    for close in closing:
        close()
    assert complaints == []
    assert strangers == [], "nothing is loaded from elsewhere"


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


def test_blank_turns_count_in_the_number_of_the_turn_that_says_it(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "", "I met Ada Lovelace.", "is he here?")
    page.click("#rewrite")
    page.locator("#text .edit").first.hover()
    page.wait_for_selector("#tip:not([hidden])")
    assert page.text_content("#tip").endswith("\nTurn 2 says it.")
    assert page.locator(".turn.source textarea").input_value() == "I met Ada Lovelace."


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


@pytest.mark.parametrize(
    ("language", "words", "details", "unreachable"),
    [
        ("en-US", "The dialogue is longer than this server takes.", "For whoever runs the server", "cannot be reached"),
        ("zh-CN", "对话超出服务器允许的长度", "供服务器管理员参考", "无法连接服务器"),
    ],
)
def test_an_error_is_in_a_persons_words_and_the_servers_own_stand_below(
    open_page: Callable[..., Any], language: str, words: str, details: str, unreachable: str
) -> None:
    page = open_page(language=language, max_characters=20)
    write(page, "I met Ada Lovelace.", "is he here?")
    page.click("#rewrite")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error").startswith(words)
    assert "expected" not in page.inner_text("#error")
    page.click(f"text={details}")
    assert "413: history: expected a dialogue of at most 20 characters, found 30" in page.inner_text("#error")
    assert re.search(r"[0-9a-f]{32}", page.inner_text("#error"))
    assert page.get_attribute("#error", "role") == "alert"
    assert page.is_hidden("#answer")
    page.route("**/v1/rewrite", lambda route: route.abort())
    page.click("#rewrite")
    page.wait_for_selector(f"text={unreachable}")


@pytest.mark.parametrize(
    ("status", "problem", "words"),
    [
        (429, {"type": "urn:teo:problem:queue-full", "detail": "queue: 9 wait"}, "The server is busy."),
        (503, {"type": "urn:teo:problem:timeout", "detail": "the model"}, "The model took too long."),
        (503, {"type": "urn:teo:problem:stopping", "detail": "stopping"}, "The server is being stopped."),
        (500, {"type": "urn:teo:problem:internal", "detail": "something"}, "Something went wrong on the server."),
        (422, {"type": "urn:teo:problem:invalid-input", "detail": "x: y"}, "The server could not use this dialogue."),
        (502, "<html>Bad gateway</html>", "The server gave an answer that this page does not understand."),
        (200, "<html>Log in first</html>", "The server gave an answer that this page does not understand."),
    ],
    ids=["queue", "timeout", "stopping", "failure", "input", "proxy", "another page"],
)
def test_every_failure_has_its_words(open_page: Callable[..., Any], status: int, problem: Any, words: str) -> None:
    page = open_page()
    text = problem if isinstance(problem, str) else json.dumps(problem)
    page.route("**/v1/rewrite", lambda route: route.fulfill(status=status, body=text))
    write(page, "I met Ada Lovelace.", "is he here?")
    page.click("#rewrite")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error").startswith(words)


def test_a_token_is_asked_for_kept_on_reload_and_the_metrics_are_not_offered(open_page: Callable[..., Any]) -> None:
    page = open_page(token="secret")
    page.wait_for_selector("#token", state="visible")
    assert page.is_hidden("#metrics-link")
    page.click('[data-sample="curie"]')
    page.wait_for_selector("text=This server needs an access token.")
    page.fill("#token", "wrong")
    page.press("#token", "Enter")
    page.wait_for_selector("text=The server does not accept this access token.")
    page.fill("#token", "secret")
    page.press("#token", "Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert "$TEO_TOKEN" in page.text_content("#snippet-text")
    assert "secret" not in page.text_content("#snippet-text")
    page.reload()
    page.wait_for_selector("[data-sample]")
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#answer:not([hidden])")
    assert page.evaluate("JSON.stringify(localStorage)").find("secret") == -1, "it goes with the tab"


def test_a_token_that_no_header_can_hold_is_a_wrong_one(open_page: Callable[..., Any]) -> None:
    page = open_page(token="secret")
    page.fill("#token", "пароль")
    page.click('[data-sample="curie"]')
    page.wait_for_selector("text=The server does not accept this access token.")
    page.goto(page.url + "docs")
    page.wait_for_selector("#operations section")
    first = page.locator("#operations section").first
    first.locator("button").click()
    first.locator(".status:has-text('The server does not accept this access token.')").wait_for()


def test_a_server_that_was_not_well_when_the_page_loaded_is_asked_again(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.route("**/health", lambda route: route.fulfill(status=503, json={"detail": "the model has not answered"}))
    page.reload()
    page.wait_for_selector("[data-sample]")
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#text ins")
    assert page.inner_text("#served") == ""
    page.unroute("**/health")
    page.click("#rewrite")
    page.wait_for_selector("#served:has-text('Model fake, pipeline rule')")
    page.locator("#threshold-used:has-text('the threshold was 0.50')").wait_for()


def test_the_page_of_the_api_loads_while_the_server_is_not_well(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.route("**/health", lambda route: route.fulfill(status=503, json={"detail": "the model has not answered"}))
    page.goto(page.url + "docs")
    page.wait_for_selector("#operations section")
    assert page.inner_text("#served") == ""


def test_the_metrics_link_works_where_it_is_shown(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.wait_for_selector("#metrics-link", state="visible")
    assert page.is_hidden("#token")
    page.click("#metrics-link a")
    page.wait_for_selector("text=teo_requests_total")


# ---- why it was kept, what else there is ----

REASONS = [
    ("complete", "Water is wet.", "it can be understood on its own", "不看上文也能看懂"),
    ("unsure", "maybe he did", "is not sure enough of it", "把握不够"),
    ("reaction", "Hello!", "needs no completing", "无需补全"),
    ("code", "`x = 1`", "links and code are never rewritten", "链接和代码不作改动"),
    ("too-long", "he " * 1000, "it is too long for the model", "这句话太长"),
    ("no-history", "is he here?", "it has no history", "前面没有对话"),
]


@pytest.mark.parametrize(("reason", "utterance", "english", "chinese"), REASONS, ids=[row[0] for row in REASONS])
def test_what_was_kept_says_why(
    open_page: Callable[..., Any], reason: str, utterance: str, english: str, chinese: str
) -> None:
    page = open_page()
    write(page, "" if reason == "no-history" else "I met Ada Lovelace.", utterance)
    page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    asked = reason in {"complete", "unsure"}
    assert english in page.inner_text("#verdict")
    assert ("on its own" in page.inner_text("#verdict")) is (reason == "complete")
    assert page.is_visible("#confidence") is asked
    assert page.is_visible("#others") is asked
    assert (page.inner_text("#confidence-value") == "The model was not called.") is not asked
    assert page.is_visible("#operations") is asked
    assert page.is_visible("#anyway") is (reason == "unsure")
    assert page.evaluate("document.getElementById('confidence').className") == "bar", "not in the colour of a change"
    page.click('[data-language="zh"]')
    assert chinese in page.inner_text("#verdict")


def test_the_bar_is_green_for_what_was_changed_only(open_page: Callable[..., Any]) -> None:
    page = open_page()
    colours = []
    for utterance in ("maybe he did", "is he here?"):
        write(page, "I met Ada Lovelace.", utterance)
        page.click("#rewrite")
        page.locator("#answer:not(.stale):not([hidden])").wait_for()
        page.locator("#busy:text-is('')").wait_for(state="attached")
        script = "getComputedStyle(document.getElementById('confidence-fill')).backgroundColor"
        colours.append([int(part) for part in re.findall(r"\d+", page.evaluate(script))])
    (red, green, blue), changed = colours
    assert max(red, green, blue) - min(red, green, blue) < 40, "grey"
    assert changed[1] > max(changed[0], changed[2]) + 40, "green"


def test_what_was_kept_back_can_be_used_anyway(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "maybe he did")
    page.click("#rewrite")
    page.click("#anyway")
    page.wait_for_selector("#text ins")
    assert page.inner_text("#verdict") == "Changed on request: the model is not sure of it."
    assert page.is_hidden("#anyway")
    assert page.inner_text("#confidence-value") == "0.25"
    assert page.inner_text("#threshold-used") == "that this rewrite is right; the threshold was 0.50", "as it was"
    page.click("#copy-rewrite")
    assert page.evaluate("navigator.clipboard.readText()") == "maybe Ada Lovelace did"
    page.click("#rewrite")
    page.wait_for_selector("#anyway", state="visible")


def test_other_rewrites_are_listed_and_one_is_chosen(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "is he here?")
    page.click("#rewrite")
    page.click("#more")
    page.wait_for_selector("#alternatives li")
    texts = page.locator(".alternative .text").all_text_contents()
    assert texts == [*("is Ada Lovelace here?" + "!" * k for k in range(4)), "is he here?unchanged"]
    assert page.locator(".alternative[aria-pressed=true]").count() == 1
    page.click(".alternative >> nth=2")
    assert page.inner_text("#verdict") == "Your choice, number 3 of 5."
    assert page.locator(".alternative >> nth=2").get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement.classList.contains('alternative')"), "the keyboard stays there"
    page.click("#copy-rewrite")
    assert page.evaluate("navigator.clipboard.readText()") == "is Ada Lovelace here?!!"
    page.click(".alternative >> nth=0")
    assert page.inner_text("#verdict") == "1 edit; the rest is as it was written."
    page.fill("#turn-1", "is he there?")
    assert page.is_hidden("#others")


def test_an_unsure_answer_lists_its_proposal_first_and_the_utterance_with_a_confidence_of_its_own(
    open_page: Callable[..., Any],
) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "maybe he did")
    page.click("#rewrite")
    page.click("#more")
    page.wait_for_selector("#alternatives li")
    listed = page.locator(".alternative").all_inner_texts()
    assert ["0.25" in listed[0], "0.10" in listed[1], "unchanged" in listed[-1], "0.05" in listed[-1]] == [True] * 4
    assert page.locator(".alternative[aria-pressed=true]").all_inner_texts() == [listed[-1]], "what is shown"
    assert page.inner_text("#threshold-used") == "for the proposal, below the threshold of 0.50"


def test_a_model_that_gives_one_rewrite_says_so_and_the_answer_stays(open_page: Callable[..., Any]) -> None:
    class OneOnly(FakeRewriter):
        def try_many(self, *args: Any, n_best: int = 1, **options: Any) -> Any:
            if n_best > 1:
                raise InputError("n_best: expected a variant that writes one text (fast), found 'teo'")
            return super().try_many(*args, **options)

    page = open_page(rewriter=OneOnly())
    page.click('[data-sample="curie"]')
    page.click("#more")
    page.wait_for_selector("text=This model gives only one rewrite.")
    assert page.is_visible("#text")
    assert page.is_hidden("#more")


@pytest.mark.parametrize(("variant", "name"), [("fast", "Proposed edits"), ("teo", "Stage 1 proposed")])
def test_a_first_stage_is_named_where_there_is_one(open_page: Callable[..., Any], variant: str, name: str) -> None:
    rewriter = FakeRewriter()
    rewriter.variant = variant
    page = open_page(rewriter=rewriter)
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#text ins")
    assert page.inner_text("#operations-name") == name
    page.click('[data-language="zh"]')
    page.click('[data-language="en"]')
    assert page.inner_text("#operations-name") == name


# ---- writing, reading, copying ----


def test_enter_sends_and_shift_enter_breaks_the_line(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "is he")
    page.press("#turn-1", "Shift+Enter")
    page.type("#turn-1", "here?")
    assert page.input_value("#turn-1") == "is he\nhere?"
    assert page.is_hidden("#answer")
    page.press("#turn-1", "Enter")
    page.wait_for_selector("#text ins")
    assert page.input_value("#turn-1") == "is he\nhere?"


@pytest.mark.parametrize("how", [{"isComposing": True}, {"keyCode": 229}], ids=["composing", "just composed"])
def test_enter_that_ends_a_composition_does_not_send(open_page: Callable[..., Any], how: dict[str, Any]) -> None:
    rewriter = FakeRewriter()
    page = open_page(rewriter=rewriter, language="zh-CN")
    write(page, "我见到了乔峰", "他在哪")
    press = "(how) => document.getElementById('turn-1').dispatchEvent(new KeyboardEvent('keydown', how))"
    page.evaluate(press, {"key": "Enter", "bubbles": True, "cancelable": True, **how})
    page.wait_for_timeout(200)
    assert rewriter.batches == []
    page.evaluate(press, {"key": "Enter", "bubbles": True, "cancelable": True})
    page.wait_for_selector("#text ins")


def test_enter_that_accepts_an_input_methods_text_does_not_send(open_page: Callable[..., Any]) -> None:
    rewriter = FakeRewriter()
    page = open_page(rewriter=rewriter, language="zh-CN")
    write(page, "我见到了乔峰", "他在")
    page.focus("#turn-1")
    page.keyboard.press("End")
    method = page.context.new_cdp_session(page)
    method.send("Input.imeSetComposition", {"text": "na", "selectionStart": 2, "selectionEnd": 2})
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert rewriter.batches == [], "the input method is still composing"
    method.send("Input.insertText", {"text": "哪"})
    page.keyboard.press("Enter")
    page.wait_for_selector("#text ins")
    assert rewriter.batches[0][0].utterance.strip() == "他在哪", "an input method would have swallowed the first Enter"


@pytest.mark.parametrize(
    ("language", "words"),
    [("en-US", "Write something first."), ("zh-CN", "请先输入内容。")],
    ids=["English", "Chinese"],
)
def test_an_empty_utterance_is_not_sent(open_page: Callable[..., Any], language: str, words: str) -> None:
    rewriter = FakeRewriter()
    page = open_page(rewriter=rewriter, language=language)
    write(page, "I met Ada Lovelace.", "  ")
    page.click("#rewrite")
    assert page.inner_text("#busy") == words
    assert page.evaluate("document.activeElement.id") == "turn-1"
    assert page.is_hidden("#answer")
    assert rewriter.batches == []
    page.fill("#turn-1", "is he here?")
    assert page.inner_text("#busy") == ""


IN_VIEW = """() => {
  const box = document.getElementById('text').getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
}"""


def test_on_a_phone_the_answer_comes_into_view(open_page: Callable[..., Any]) -> None:
    page = open_page(phone=True)
    write(page, "I think Bruce Wayne is handsome.", "It looks like Ben Affleck.", "It is he who acted.")
    page.press("#turn-2", "Enter")
    page.wait_for_function(IN_VIEW)
    assert page.evaluate("scrollY") > 0, "it was below"
    assert page.evaluate("document.activeElement.tagName") != "TEXTAREA", "the keyboard is put away"


def test_beside_a_long_dialogue_the_answer_is_in_view(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, *["I met Ada Lovelace."] * 39, "is he here?")
    page.click("#rewrite")
    page.wait_for_selector("#text ins")
    assert page.evaluate("scrollY") > 800, "the utterance is far down"
    page.wait_for_function(IN_VIEW)
    assert page.evaluate("scrollY") > 800, "and one is still there"


@pytest.mark.parametrize("how", ["element", "page"])
def test_selected_text_copies_as_it_reads(open_page: Callable[..., Any], how: str) -> None:
    page = open_page()
    page.click('[data-sample="curie"]')
    page.wait_for_selector("#text ins")
    page.evaluate(
        "(how) => getSelection().selectAllChildren(document.getElementById(how === 'page' ? 'answer' : 'text'))", how
    )
    page.keyboard.press("Control+C")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("When did Pierre Curie die?")
    assert (copied == "When did Pierre Curie die?") is (how == "element")


# ---- the page of the API ----


def test_the_description_is_a_page_from_which_requests_are_sent(open_page: Callable[..., Any]) -> None:
    page = open_page(path="/docs", ready="#operations section", token="secret")
    titles = [" ".join(one.split()) for one in page.locator("#operations h2").all_text_contents()]
    assert titles[:2] == ["POST /v1/rewrite", "POST /v1/chat/completions"]
    assert "GET /v1/models" in titles
    first = page.locator("#operations section").first
    first.locator("button").click()
    first.locator(".status:has-text('401')").wait_for()
    page.fill("#token", "secret")
    first.locator("select").select_option("3")
    first.locator("button").click()
    first.locator(".status:has-text('200')").wait_for()
    assert "alternatives" in first.locator("pre").inner_text()
    first.locator("textarea").fill("{")
    first.locator("button").click()
    first.locator(".status:has-text('400')").wait_for()
    first.locator("a:text-is('RewriteRecord')").click()
    page.wait_for_selector("#schema-RewriteRecord[open]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    assert page.evaluate(CONTRAST) == []


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
        page.locator("#answer:not(.stale)").wait_for()
        page.evaluate("document.querySelectorAll('#text del').forEach((one) => one.remove())")
        seen[utterance] = page.text_content("#text")
    assert len(seen) == 8
    assert seen == {utterance: SCRIPT.get(utterance, utterance) for utterance in seen}
    assert "needs no completing" in page.inner_text("#verdict")


def test_when_to_rewrite_is_the_users_to_choose(open_page: Callable[..., Any]) -> None:
    page = open_page()
    write(page, "I met Ada Lovelace.", "maybe he did")
    page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    assert "is not sure enough" in page.inner_text("#verdict")
    page.click(".options summary")
    assert "more likely right than wrong (confidence of at least 0.50)" in page.inner_text("#prefer")
    page.check('#prefer input[value="search"]')
    assert page.inner_text("#verdict") == "The dialogue has changed since this rewrite."
    page.click("#rewrite")
    page.wait_for_selector("#text ins")
    assert page.inner_text("#threshold-used") == "that this rewrite is right; the threshold was 0.20"
    assert '"prefer":"search"' in page.text_content("#snippet-text")
    page.check('#prefer input[value="careful"]')
    page.click("#rewrite")
    page.click("#anyway")
    page.wait_for_selector("#text ins")


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
        found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
        assert json.loads(found.stdout)["rewrite"] == "is Ada Lovelace here?"


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (320, 1), (820, 1), (1200, 2)])
def test_the_layout_fits_the_width(open_page: Callable[..., Any], width: int, columns: int) -> None:
    page = open_page(width=width)
    page.click('[data-sample="mona"]')
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
    page.click('[data-sample="mona"]')
    page.wait_for_selector("#text ins")
    for theme in ("light", "dark"):
        if page.evaluate("document.documentElement.dataset.theme") != theme:
            page.click("#theme")
        page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
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
    page.click('[data-sample="mona"]')
    page.wait_for_selector("#text ins")
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className || ''"))
    for name in ("turn-0", "turn-2", "add", "clear", "rewrite", "theme", "copy", "copy-rewrite", "tab-curl", "snippet",
                 "edit replace", "edit insert", "skip", "more"):  # fmt: skip
        assert name in reached, name
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, textarea, input, meter')]"
        ".filter((one) => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') ||"
        " one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)"
    )
    assert unnamed == [], "a screen reader has a name for every control"
