"""Follow-ups made from complete requests: what is left out of them, and that it comes back in the rewrite."""

from __future__ import annotations

import lzma
import random
from pathlib import Path

import pytest

from request_files import WEATHER, make_request, write_requests
from teo.errors import DataError
from teo_lab.rows.followups import Maker, request_rows
from teo_lab.rows.followups_en import EnglishClarification, EnglishSubstitution, TwoSlots
from teo_lab.rows.followups_zh import ChineseClarification, ChinesePronoun, ChineseSubstitution
from teo_lab.rows.phrases_en import EnglishSharedPhrase, SharedHead
from teo_lab.rows.phrases_zh import ChineseSharedPhrase, SharedTail, split_phrase
from teo_lab.rows.pronouns_en import EnglishPronoun
from teo_lab.rows.requests import Draft, Request, is_self_contained, read_requests


def _draw_all(maker: Maker, count: int = 400) -> set[Draft]:
    rng = random.Random(1)
    return {draft for draft in (maker.draw(rng) for _ in range(count)) if draft is not None}


def _plain(text: str) -> str:
    return text.lower().rstrip("?.。？")


@pytest.mark.parametrize(
    ("text", "language", "complete", "reason"),
    [
        ("what is the weather in boston", "en", True, "names all it needs"),
        ("is there a train to york", "en", True, "`there` without a place"),
        ("will it rain in rome", "en", True, "`it` of the weather"),
        ("how long does it take", "en", False, "`it` points back"),
        ("add this song", "en", False, "`this` points back"),
        ("微信怎么注销账号", "zh", True, "names all it needs"),
        ("这个怎么注销", "zh", False, "这个 points back"),
        ("那上海的天气呢", "zh", False, "呢 asks the same of something else"),
        ("阿爸爸爸爸爸", "zh", False, "chatter"),
    ],
)
def test_self_contained(text: str, language: str, complete: bool, reason: str) -> None:
    assert language in ("en", "zh")
    assert is_self_contained(text, language) == complete, reason


def test_english_substitution_puts_the_other_value_in() -> None:
    drafts = _draw_all(EnglishSubstitution(WEATHER))
    assert drafts
    for draft in drafts:
        cities = [city for city in ("boston", "denver", "oslo") if city in draft.utterance.lower()]
        assert len(cities) == 1, "rome has another preposition, so it fits in no other request"
        assert cities[0] in draft.rewrite.lower()
        assert cities[0] not in draft.history[0].lower()
    said = {
        _plain(draft.utterance): _plain(draft.rewrite)
        for draft in drafts
        if "rain in denver" in _plain(draft.history[0])
    }
    assert said["and in boston"] == "will it rain in boston"
    assert said["what about boston"] == "will it rain in boston"


def test_english_substitution_leaves_places_in_pairs_alone() -> None:
    pairs = [
        make_request(f"weather in {city}, {state}", city=city, state=state)
        for city, state in (("Gates", "NC"), ("Rome", "GA"))
    ]
    assert not _draw_all(EnglishSubstitution(pairs))


def test_two_slots_come_as_one_phrase() -> None:
    tables = [
        make_request("book a table for six in Paris", "BookRestaurant", party_size_number="six", city="Paris"),
        make_request("book a spot for two in Rome", "BookRestaurant", party_size_number="two", city="Rome"),
    ]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(TwoSlots(tables))}
    assert ("and for two in rome", "book a table for two in rome") in said
    assert ("and one for two in rome", "book a table for two in rome") in said


def test_english_clarification_asks_for_what_is_left_out() -> None:
    for draft in _draw_all(EnglishClarification(WEATHER[:2])):
        assert len(draft.history) == 2
        assert draft.history[1].endswith("?")
        assert "boston" not in draft.history[0].lower() and "denver" not in draft.history[0].lower()
        assert _plain(draft.rewrite).removesuffix(" please") in (
            "what is the weather in boston",
            "will it rain in denver",
        )


@pytest.mark.parametrize(
    ("requests", "utterance", "rewrite"),
    [
        (
            [WEATHER[0], make_request("book a table in Rome for two", "BookRestaurant", city="Rome")],
            "book a table there for two",
            "book a table in boston for two",
        ),
        (
            [
                make_request("find the novel Dune", "SearchCreativeWork", object_type="novel", object_name="Dune"),
                make_request("give Emma four stars", "RateBook", object_name="Emma", rating_value="four"),
                make_request("rate Emma please", "RateBook", object_name="Emma"),
            ],
            "rate it please",
            "rate dune please",
        ),
        (
            [
                make_request("do i have emails from mary", "email_query", person="mary"),
                make_request("what is john's number", "email_querycontact", person="john"),
            ],
            "what is her number",
            "what is mary's number",
        ),
        (
            [
                make_request(
                    "add Hello to my Chill Out playlist", "AddToPlaylist", entity_name="Hello", playlist="Chill Out"
                ),
                make_request("add Yesterday to the Road Trip playlist", "AddToPlaylist", playlist="Road Trip"),
            ],
            "add yesterday to that playlist",
            "add yesterday to my chill out playlist",
        ),
    ],
    ids=["there for in and a place", "it for a title", "her for a name with 's", "a playlist keeps its owner"],
)
def test_english_pronouns(requests: list[Request], utterance: str, rewrite: str) -> None:
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(EnglishPronoun(requests), 3000)}
    assert (utterance, rewrite) in said


def test_english_questions_share_a_phrase_or_a_head() -> None:
    texts = (
        "how do i activate my credit card",
        "how long until i get my credit card",
        "what is the capital of peru",
        "what is the capital of chad",
    )
    requests = [Request(text, "clinc150", "x") for text in texts]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(EnglishSharedPhrase(requests))}
    assert ("how long until i get it", "how long until i get my credit card") in said
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedHead(requests))}
    assert ("what about chad", "what is the capital of chad") in said


def _plain_request(text: str, source: str = "oppo") -> Request:
    return Request(text, source, "")


def test_chinese_slots_are_found_by_form() -> None:
    requests = [_plain_request(text) for text in ("北京天气怎么样", "上海明天天气如何", "广州冷不冷")]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(ChineseSubstitution(requests))}
    assert ("那广州呢", "广州天气怎么样") in said
    assert ("上海呢", "上海冷不冷") in said
    answers = {
        (_plain(draft.history[0]), _plain(draft.utterance), _plain(draft.rewrite))
        for draft in _draw_all(ChineseClarification(requests))
    }
    assert ("明天天气如何", "上海", "上海明天天气如何") in answers


def test_chinese_pronouns_have_the_gender_of_a_kinship_word() -> None:
    requests = [_plain_request(text) for text in ("打电话给妈妈", "打电话给李强", "给王芳发短信")]
    said = {
        (_plain(draft.history[0]), _plain(draft.utterance), _plain(draft.rewrite))
        for draft in _draw_all(ChinesePronoun(requests), 2000)
    }
    assert ("打电话给妈妈", "给她发短信", "给妈妈发短信") in said
    assert ("打电话给李强", "给他发短信", "给李强发短信") in said
    assert not any("给他打电话" in utterance and first.startswith("打电话") for first, utterance, _ in said)


@pytest.mark.parametrize(
    ("text", "split", "reason"),
    [
        ("微信怎么注销", ("微信", "怎么注销"), "a noun before a question word"),
        ("杜甫的原名叫什么", ("杜甫", "的原名叫什么"), "a noun before 的"),
        ("我的手机怎么了", None, "我 is no phrase to share"),
        ("今年什么时候下雪", None, "a time is not what is asked about"),
        ("用手机怎么注册账号", None, "a verb is no noun phrase"),
        ("微信怎样", None, "too little is left"),
    ],
)
def test_split_phrase(text: str, split: tuple[str, str] | None, reason: str) -> None:
    assert split_phrase(text) == split, reason


def test_chinese_questions_share_a_phrase_or_an_end() -> None:
    texts = (
        "内存卡怎么安装",
        "内存卡有什么作用",
        "杨幂多大了呀",
        "杨幂的女儿叫什么",
        "路由器怎么安装",
        "怎么使用内存卡",
    )
    requests = [_plain_request(text) for text in texts]
    said = {
        (_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(ChineseSharedPhrase(requests), 2000)
    }
    assert {
        ("有什么作用", "内存卡有什么作用"),
        ("它有什么作用", "内存卡有什么作用"),
        ("怎么使用它", "怎么使用内存卡"),
    } <= said
    assert not any(utterance.startswith(("它的女儿", "他", "她")) for utterance, _ in said), "nobody says who 杨幂 is"
    tails = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedTail(requests))}
    assert ("那路由器呢", "路由器怎么安装") in tails


def test_requests_are_read_and_made_into_rows(tmp_path: Path) -> None:
    requests = read_requests(write_requests(tmp_path), "en")
    assert requests == WEATHER
    rows = list(request_rows(requests, "en", 30, seed=4))
    assert rows == list(request_rows(requests, "en", 30, seed=4))
    assert len({row.dialogue for row in rows}) == len(rows) == 30
    assert not any(row.is_complete for row in rows)
    assert {row.id.split("-")[2] for row in rows} >= {"substitution", "clarification"}
    assert [request.text for request in read_requests(tmp_path, "zh")] == [
        "北京天气怎么样",
        "上海天气怎么样",
        "广州天气怎么样",
    ]


def test_bad_requests_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"en\.jsonl\.xz: no such file"):
        read_requests(tmp_path, "en")
    with lzma.open(tmp_path / "en.jsonl.xz", "wt") as file:
        file.write('{"text": "play jazz"}\n')
    with pytest.raises(DataError, match=r"en\.jsonl\.xz:1: expected text, source, intent and slots"):
        read_requests(tmp_path, "en")
