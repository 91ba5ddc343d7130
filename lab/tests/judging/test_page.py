"""The page: two raters at once in a browser, blindness, going on after a stop, and a server that is killed."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'teo[serve]'")
httpx = pytest.importorskip("httpx", reason="pip install 'teo[dev]'")

from teo_lab.judging.app import PAGE  # noqa: E402
from teo_lab.judging.items import Choice, JudgingStudy, draw_study  # noqa: E402
from teo_lab.judging.report import judge_votes  # noqa: E402
from teo_lab.judging.votes import Vote, VoteStore  # noqa: E402

KEYS = {"first": "1", "second": "2"}
SECRETS = ("alpha", "beta", "row-0", "sys-", "a_first", "reference", "predictions", '"seed"', "_hash")
"""What would tell a rater which system is which, or which row of the dataset it is."""


# ---- without a browser ----


def test_nothing_in_the_page_is_inline_or_from_elsewhere() -> None:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.search(r"\s(on\w+|style)=|<style|<script(?![^>]*\bsrc=)", html) is None
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.search(r"(?:https?:)?//\w+\.\w+", text) is None, f"{path.name} works offline"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name


def test_both_languages_say_everything() -> None:
    english, chinese = (PAGE / "words.js").read_text(encoding="utf-8").split("  zh: {")
    found = [dict(re.findall(r"^    (\w+): \"(.*)\",$", part, re.MULTILINE)) for part in (english, chinese)]
    assert found[0].keys() == found[1].keys()
    texts = re.findall(r'data-text="(\w+)">([^<]+)<', (PAGE / "index.html").read_text(encoding="utf-8"))
    assert len(texts) >= 10
    assert [found[0][key] for key, _ in texts] == [text for _, text in texts]
    spoken = set(re.findall(r'say\("(\w+)"', (PAGE / "judge.js").read_text(encoding="utf-8")))
    assert spoken | {key for key, _ in texts} == found[0].keys()


@pytest.fixture
def client(tmp_path: Path, study: JudgingStudy) -> Any:
    from fastapi.testclient import TestClient

    from teo_lab.judging.app import create_app

    return TestClient(create_app(VoteStore.create(tmp_path / "j", study)))


def test_an_item_is_blind(client: Any, study: JudgingStudy) -> None:
    assert client.put("/api/raters", json={"name": " Ann  B "}).json() == {
        "rater": 1,
        "total": 20,
        "done": 0,
        "next": 1,
    }
    assert client.put("/api/raters", json={"name": "Ann B"}).json()["rater"] == 1
    for number, place in enumerate(study.order(1), 1):
        answer = client.get(f"/api/raters/1/items/{number}")
        record, item = answer.json(), study.items[place.item]
        assert set(record) == {"number", "history", "utterance", "first", "second", "vote", "total", "done", "next"}
        assert [record["first"], record["second"]] == ([item.a, item.b] if place.a_first else [item.b, item.a])
        assert not any(secret in answer.text for secret in SECRETS)


def test_a_vote_is_for_the_system_behind_it(client: Any, tmp_path: Path, study: JudgingStudy) -> None:
    client.put("/api/raters", json={"name": "Ann"})
    assert client.put("/api/raters/1/items/2", json={"choice": "second"}).json() == {"total": 20, "done": 1, "next": 1}
    place = study.order(1)[1]
    assert VoteStore.open(tmp_path / "j").votes() == [Vote(1, place.item, "b" if place.a_first else "a")]
    assert client.get("/api/raters/1/items/2").json()["vote"] == "second"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "why"),
    [
        ("GET", "/api/raters/2/items/1", None, 404, "a rater who has not started"),
        ("GET", "/api/raters/1/items/21", None, 404, "past the last item"),
        ("GET", "/api/raters/1/items/0", None, 404, "before the first"),
        ("PUT", "/api/raters/1/items/1", {"choice": "a"}, 422, "the page does not know systems"),
        ("PUT", "/api/raters", {"name": "  "}, 409, "no name"),
        ("PUT", "/api/raters", {"name": "x" * 101}, 409, "a name too long"),
        ("POST", "/api/raters", {"name": "x"}, 405, "a form of another site's page"),
        ("GET", "/openapi.json", None, 404, "nothing else is served"),
    ],
)
def test_what_is_refused(client: Any, method: str, path: str, body: Any, status: int, why: str) -> None:
    client.put("/api/raters", json={"name": "Ann"})
    answer = client.request(method, path, json=body)
    assert answer.status_code == status, why
    assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_a_killed_server_keeps_every_vote_it_answered(
    files: tuple[Path, Path], tmp_path: Path, start_judging: Callable[..., Any]
) -> None:
    out, answered = tmp_path / "j", dict[int, str]()
    arguments = (*files, "--out", out, "--sample", 20, "--raters", 2, "--seed", 7, "--port", 0)
    with start_judging(*arguments) as (url, process):
        httpx.put(f"{url}/api/raters", json={"name": "Ann"}).raise_for_status()
        enough = threading.Event()

        def keep_voting() -> None:
            for number in range(1, 21):
                try:
                    httpx.put(f"{url}/api/raters/1/items/{number}", json={"choice": "first"}).raise_for_status()
                except httpx.HTTPError:
                    return
                answered[number] = "first"
                if number == 5:
                    enough.set()

        voter = threading.Thread(target=keep_voting)
        voter.start()
        assert enough.wait(30)
        process.kill()
        voter.join(30)
    order = VoteStore.open(out).study.order(1)
    stored = {vote.item: vote.choice for vote in VoteStore.open(out).votes()}
    assert 5 <= len(answered) <= len(stored) <= len(answered) + 1, "one more may be stored than was answered"
    for number in answered:
        place = order[number - 1]
        assert stored[place.item] == place.choice_of("first")
    with start_judging("--out", out, "--port", 0) as (url, _):
        assert httpx.put(f"{url}/api/raters", json={"name": "Ann"}).json()["next"] == (
            len(stored) + 1 if len(stored) < 20 else None
        )


def test_an_interrupt_is_status_130_and_votes_are_kept(
    files: tuple[Path, Path], tmp_path: Path, start_judging: Callable[..., Any]
) -> None:
    out = tmp_path / "j"
    with start_judging(*files, "--out", out, "--sample", 6, "--raters", 1, "--port", 0) as (url, process):
        httpx.put(f"{url}/api/raters", json={"name": "Ann"}).raise_for_status()
        httpx.put(f"{url}/api/raters/1/items/1", json={"choice": "first"}).raise_for_status()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert len(VoteStore.open(out).votes()) == 1


# ---- in a browser ----


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open the page in a browser of its own; what it loads, and from where, is checked at the end."""
    contexts, complaints, loaded = [], list[str](), list[Any]()

    def start(url: str, name: str | None = None, language: str = "en-US", width: int = 1000) -> Any:
        context = browser.new_context(locale=language, viewport={"width": width, "height": 800})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        page.on("response", lambda response: loaded.append((url, response)))
        page.goto(url)
        page.wait_for_selector("#start:not([hidden])")
        if name is not None:
            page.fill("#name", name)
            page.keyboard.press("Enter")
            page.wait_for_selector("#item:not([hidden]), #end:not([hidden]), #alert:not([hidden])")
        return page

    start.loaded = loaded  # type: ignore[attr-defined]
    yield start
    strangers = [response.url for url, response in loaded if not response.url.startswith(url)]
    for context in contexts:
        context.close()
    assert complaints == []
    assert strangers == [], "nothing is loaded from elsewhere"


def press(page: Any, key: str) -> str:
    """Press a key, and return the number of the item that was shown."""
    number = str(page.get_attribute("#item", "data-number"))
    page.keyboard.press(key)
    return number


def wait_for_next(page: Any, number: str) -> None:
    page.wait_for_selector(f"#item:not([hidden]):not([data-number='{number}']), #end:not([hidden])")


def key_for(page: Any, wanted: Choice, tie: str = "0") -> str:
    """Return the key that votes for a system; the test knows them by a word that ends their rewrites."""
    if wanted == "tie":
        return tie
    first = page.inner_text("#first .text")
    assert first.endswith((", up?", ", down?"))
    return KEYS["first" if first.endswith({"a": ", up?", "b": ", down?"}[wanted]) else "second"]


def wish(rater: int, utterance: str) -> Choice:
    """What a rater of the test thinks: both like the first system, but one of them not always."""
    number = int(re.findall(r"\d+", utterance)[0])
    if number % 5 == 0:
        return "tie"
    return "b" if number % 4 == 3 or (rater == 1 and number % 7 == 1) else "a"


def test_two_raters_at_once_judge_twenty_items(
    files: tuple[Path, Path], tmp_path: Path, start_judging: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    out = tmp_path / "j"
    study = draw_study(*files, sample=20, raters=2, seed=3)
    with start_judging(*files, "--out", out, "--sample", 20, "--raters", 2, "--seed", 3, "--port", 0) as (url, _):
        pages = [open_page(url, name) for name in ("Ann", "Bo")]
        seen: list[list[str]] = [[], []]
        for step in range(20):
            for rater, page in enumerate(pages):
                assert page.inner_text("#progress") == f"{step} of 20 judged"
                seen[rater].append(page.inner_text("#utterance"))
            keys = [key_for(page, wish(rater, seen[rater][-1]), tie="03"[rater]) for rater, page in enumerate(pages)]
            numbers = [press(page, key) for page, key in zip(pages, keys, strict=True)]  # both are under way
            for page, number in zip(pages, numbers, strict=True):
                wait_for_next(page, number)
        for page in pages:
            assert page.inner_text("#progress") == "20 of 20 judged"
            assert page.is_visible("#end")
        third = open_page(url, "Cy")
        assert "all 2 raters of this study have started" in third.inner_text("#alert")
        bodies = [response.text() for _, response in open_page.loaded if response.status != 304]  # type: ignore[attr-defined]
        headers = [json.dumps(response.all_headers()) for _, response in open_page.loaded]  # type: ignore[attr-defined]
        addresses = [response.url for _, response in open_page.loaded]  # type: ignore[attr-defined]
        sent = [response.request.post_data or "" for _, response in open_page.loaded]  # type: ignore[attr-defined]
    assert len(bodies) > 80
    told = [text for text in (*bodies, *headers, *addresses, *sent) for secret in SECRETS if secret in text]
    assert told == [], "neither page nor requests tell which system is which"
    for rater in (0, 1):
        order = [study.items[place.item].utterance for place in study.order(rater + 1)]
        assert seen[rater] == order, "each rater has the order of the seed"
    assert seen[0] != seen[1]
    check_numbers(VoteStore.open(out), seen[0])


def check_numbers(store: VoteStore, utterances: list[str]) -> None:
    """Recompute from what the raters meant: counts, majorities, kappa, sign test, disagreements."""
    pairs = {utterance: (wish(0, utterance), wish(1, utterance)) for utterance in utterances}
    judgement = judge_votes(store)
    flat = [choice for pair in pairs.values() for choice in pair]
    found = judgement.votes
    assert [found.win.count, found.tie.count, found.loss.count] == [flat.count(name) for name in ("a", "tie", "b")]
    agreed = [first for first, second in pairs.values() if first == second]
    split = [utterance for utterance, (first, second) in pairs.items() if first != second]
    assert 0 < len(split) < 20
    items = judgement.items
    wins, losses = agreed.count("a"), agreed.count("b")
    assert [items.win.count, items.tie.count, items.loss.count] == [wins, 20 - wins - losses, losses]
    assert sorted(entry.item.utterance for entry in judgement.disagreements) == sorted(split)
    chance = sum((flat.count(name) / 40) ** 2 for name in ("a", "tie", "b"))
    assert judgement.kappa.value == pytest.approx((len(agreed) / 20 - chance) / (1 - chance))
    assert (judgement.sign.wins, judgement.sign.losses) == (wins, losses)


def test_a_rater_goes_on_after_a_stop_and_a_killed_server(
    files: tuple[Path, Path], tmp_path: Path, start_judging: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    out = tmp_path / "j"
    arguments = (*files, "--out", out, "--sample", 6, "--raters", 2, "--seed", 3)
    with start_judging(*arguments, "--port", 0) as (url, process):
        page = open_page(url, "Ann")
        for key in "123":
            wait_for_next(page, press(page, key))
        process.kill()
        process.wait(30)
        press(page, "1")
        page.wait_for_selector("#alert:not([hidden])")
        assert "The server does not answer" in page.inner_text("#alert")
        assert page.get_attribute("#item", "data-number") == "4", "a vote that is not stored is asked for again"
    with start_judging(*arguments, "--port", url.rpartition(":")[2]) as (_, _process):
        wait_for_next(page, press(page, "2"))
        assert page.get_attribute("#item", "data-number") == "5"
        assert page.is_hidden("#alert")
        page.reload()
        page.wait_for_selector("#item:not([hidden])")
        assert page.get_attribute("#item", "data-number") == "5", "a reload resumes"
        other = open_page(url, "Ann")
        assert other.get_attribute("#item", "data-number") == "5", "so does another browser, by the name"
        assert open_page(url, "Bo").get_attribute("#item", "data-number") == "1"
    shown = {place.item: place for place in VoteStore.open(out).study.order(1)}
    votes = {vote.item: shown[vote.item].shown_as(vote.choice) for vote in VoteStore.open(out).votes()}
    assert [votes.get(item) for item in shown] == ["first", "second", "tie", "second", None, None]


def test_a_vote_can_be_corrected_and_clicked(
    files: tuple[Path, Path], tmp_path: Path, start_judging: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    out = tmp_path / "j"
    with start_judging(*files, "--out", out, "--sample", 3, "--raters", 1, "--port", 0) as (url, _):
        page = open_page(url, "Ann", language="zh-CN", width=360)
        assert page.inner_text("h1") == "哪个改写更好？"
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.inner_text("#history li >> nth=1") == "<b>Which</b> one?", "text, not markup"
        for key in ("x", "Enter", " ", "4"):
            page.keyboard.press(key)
        wait_for_next(page, press(page, "1"))
        assert page.get_attribute("#item", "data-number") == "2", "other keys are no votes"
        wait_for_next(page, press(page, "Backspace"))
        assert page.get_attribute("#first", "aria-pressed") == "true", "the vote is shown"
        assert page.is_disabled("#back")
        page.click("#second")
        wait_for_next(page, "1")
        page.click("#tie")
        wait_for_next(page, "2")
        page.click("#first")
        page.wait_for_selector("#end:not([hidden])")
        page.click("#review")
        page.wait_for_selector("#item:not([hidden])")
        assert page.get_attribute("#item", "data-number") == "3"
    shown = {place.item: place for place in VoteStore.open(out).study.order(1)}
    votes = {vote.item: shown[vote.item].shown_as(vote.choice) for vote in VoteStore.open(out).votes()}
    assert [votes[item] for item in shown] == ["second", "tie", "first"]
