"""Rows made beside the datasets: what is kept, what is left out and put back, what a teacher's label must bear out."""

from __future__ import annotations

import json
import logging
import lzma
import random
from pathlib import Path

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import ConfigError, DataError
from teo.training.augmentation.augment import augment, read_answers
from teo.training.augmentation.choices import LONG_REPLY, draw_reply, reactions, replies, reply_length
from teo.training.augmentation.followups import Maker, request_rows
from teo.training.augmentation.followups_en import Clarification, Substitution, TwoSlots
from teo.training.augmentation.followups_zh import Clarification as ClarificationZh
from teo.training.augmentation.followups_zh import Pronoun as PronounZh
from teo.training.augmentation.followups_zh import Substitution as SubstitutionZh
from teo.training.augmentation.identity import identity_rows
from teo.training.augmentation.labels import find_fault, read_labels
from teo.training.augmentation.mudoco import dialogue_id, mudoco_rows, part_of
from teo.training.augmentation.phrases_en import SharedHead, SharedPhrase
from teo.training.augmentation.phrases_zh import SharedPhrase as SharedPhraseZh
from teo.training.augmentation.phrases_zh import SharedTail, split_phrase
from teo.training.augmentation.pronouns_en import Pronoun
from teo.training.augmentation.requests import Draft, Request, Slot, is_self_contained, read_requests
from teo.training.augmentation.settings import AugmentationSettings
from teo.training.augmentation.switches import reaction_rows, row_histories, switch_rows
from teo.units import holds_cjk


def _row(name: str, history: str, utterance: str, rewrite: str) -> Row:
    return Row(name, Dialogue(tuple(history.split(" | ")), utterance), rewrite)


ROWS = [
    _row("a", "Who wrote Dune? | Frank Herbert.", "When did he die?", "When did Frank Herbert die?"),
    _row("b", "Is it raining?", "Thanks.", "Thanks."),
    _row("c", "北京天气怎么样 | 晴", "上海呢", "上海天气怎么样"),
    _row("d", "周杰伦是谁 | 歌手", "他多大了", "周杰伦多大了"),
    _row("e", "Do you like tea?", "Why?", "Why do you like tea?"),
]


def _request(text: str, intent: str = "GetWeather", **values: str) -> Request:
    """Return a request whose slots are the values, each where the text has it first."""
    slots = (Slot(name, text.index(value), text.index(value) + len(value), value) for name, value in values.items())
    return Request(text, "snips", intent, tuple(sorted(slots, key=lambda slot: slot.start)))


WEATHER = [
    _request("what is the weather in Boston", city="Boston"),
    _request("will it rain in Denver", city="Denver"),
    _request("give me the forecast for Rome", city="Rome"),
    _request("show the weather in Oslo on friday", city="Oslo"),
]


def _draw_all(maker: Maker, count: int = 400) -> set[Draft]:
    rng = random.Random(1)
    return {draft for draft in (maker.draw(rng) for _ in range(count)) if draft is not None}


def _plain(text: str) -> str:
    return text.lower().rstrip("?.。？")


def test_identity_rows_keep_the_rewrites_of_changed_rows() -> None:
    made = list(identity_rows(ROWS, share=1.0, foreign=1.0, seed=3))
    assert all(row.is_complete for row in made)
    assert {row.id for row in made} == {
        f"{kind}:{name}" for kind in ("identity", "identity-foreign") for name in "acde"
    }
    own = {row.id: row for row in ROWS}
    for row in made:
        source = own[row.id.rpartition(":")[2]]
        assert row.rewrite == source.rewrite
        if row.id.startswith("identity:"):
            assert row.dialogue.history == source.dialogue.history
        else:
            assert row.dialogue.history != source.dialogue.history
            assert holds_cjk("".join(row.dialogue.history)) == holds_cjk(row.rewrite)


def test_identity_rows_depend_on_the_row_and_the_seed_alone() -> None:
    many = [_row(str(number), "Who?", "He?", f"Number {number}?") for number in range(400)]
    made = {row.id for row in identity_rows(many, 0.25, 0.0, 1)}
    assert made == {row.id for row in identity_rows(many[::-1], 0.25, 0.0, 1)}
    assert made != {row.id for row in identity_rows(many, 0.25, 0.0, 2)}
    assert 70 <= len(made) <= 130


@pytest.mark.parametrize("language", ["en", "zh"])
def test_lists_are_long_and_some_replies_too(language: str) -> None:
    assert language in ("en", "zh")
    assert len(set(reactions(language))) >= 80
    assert len({text for topic, texts in replies(language).items() if topic != "sentences" for text in texts}) >= 40
    rng = random.Random(0)
    lengths = [reply_length(draw_reply(language, "weather", rng), language) for _ in range(600)]
    assert 20 <= sum(length >= LONG_REPLY[language] for length in lengths) <= 90


def test_switches_and_reactions_are_kept_in_the_language_of_their_history() -> None:
    texts = [
        "what is the capital of peru",
        "set an alarm for six",
        "who painted guernica",
        "法国的首都是哪里",
        "怎么做红烧肉",
        "今天星期几",
    ]
    made = list(switch_rows(row_histories(ROWS), texts, 300, seed=5))
    assert made == list(switch_rows(row_histories(ROWS), texts, 300, seed=5))
    assert made != list(switch_rows(row_histories(ROWS), texts, 300, seed=6))
    made += reaction_rows(row_histories(ROWS), 300, seed=5)
    assert len(made) == 600
    for row in made:
        assert row.is_complete
        assert row.dialogue.history
        assert row.dialogue.utterance not in row.dialogue.history
    for row in made[:300]:
        assert holds_cjk(row.dialogue.history[0]) == holds_cjk(row.dialogue.utterance)
    assert any("When did Frank Herbert die?" in row.dialogue.history for row in made)  # complete, not as it was said


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
    drafts = _draw_all(Substitution(WEATHER))
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
        _request(f"weather in {city}, {state}", city=city, state=state)
        for city, state in (("Gates", "NC"), ("Rome", "GA"))
    ]
    assert not _draw_all(Substitution(pairs))


def test_two_slots_come_as_one_phrase() -> None:
    tables = [
        _request("book a table for six in Paris", "BookRestaurant", party_size_number="six", city="Paris"),
        _request("book a spot for two in Rome", "BookRestaurant", party_size_number="two", city="Rome"),
    ]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(TwoSlots(tables))}
    assert ("and for two in rome", "book a table for two in rome") in said
    assert ("and one for two in rome", "book a table for two in rome") in said


def test_english_clarification_asks_for_what_is_left_out() -> None:
    for draft in _draw_all(Clarification(WEATHER[:2])):
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
            [WEATHER[0], _request("book a table in Rome for two", "BookRestaurant", city="Rome")],
            "book a table there for two",
            "book a table in boston for two",
        ),
        (
            [
                _request("find the novel Dune", "SearchCreativeWork", object_type="novel", object_name="Dune"),
                _request("give Emma four stars", "RateBook", object_name="Emma", rating_value="four"),
                _request("rate Emma please", "RateBook", object_name="Emma"),
            ],
            "rate it please",
            "rate dune please",
        ),
        (
            [
                _request("do i have emails from mary", "email_query", person="mary"),
                _request("what is john's number", "email_querycontact", person="john"),
            ],
            "what is her number",
            "what is mary's number",
        ),
        (
            [
                _request(
                    "add Hello to my Chill Out playlist", "AddToPlaylist", entity_name="Hello", playlist="Chill Out"
                ),
                _request("add Yesterday to the Road Trip playlist", "AddToPlaylist", playlist="Road Trip"),
            ],
            "add yesterday to that playlist",
            "add yesterday to my chill out playlist",
        ),
    ],
    ids=["there for in and a place", "it for a title", "her for a name with 's", "a playlist keeps its owner"],
)
def test_english_pronouns(requests: list[Request], utterance: str, rewrite: str) -> None:
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(Pronoun(requests), 3000)}
    assert (utterance, rewrite) in said


def test_english_questions_share_a_phrase_or_a_head() -> None:
    texts = (
        "how do i activate my credit card",
        "how long until i get my credit card",
        "what is the capital of peru",
        "what is the capital of chad",
    )
    requests = [Request(text, "clinc150", "x") for text in texts]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedPhrase(requests))}
    assert ("how long until i get it", "how long until i get my credit card") in said
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedHead(requests))}
    assert ("what about chad", "what is the capital of chad") in said


def _plain_request(text: str, source: str = "oppo") -> Request:
    return Request(text, source, "")


def test_chinese_slots_are_found_by_form() -> None:
    requests = [_plain_request(text) for text in ("北京天气怎么样", "上海明天天气如何", "广州冷不冷")]
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SubstitutionZh(requests))}
    assert ("那广州呢", "广州天气怎么样") in said
    assert ("上海呢", "上海冷不冷") in said
    answers = {
        (_plain(draft.history[0]), _plain(draft.utterance), _plain(draft.rewrite))
        for draft in _draw_all(ClarificationZh(requests))
    }
    assert ("明天天气如何", "上海", "上海明天天气如何") in answers


def test_chinese_pronouns_have_the_gender_of_a_kinship_word() -> None:
    requests = [_plain_request(text) for text in ("打电话给妈妈", "打电话给李强", "给王芳发短信")]
    said = {
        (_plain(draft.history[0]), _plain(draft.utterance), _plain(draft.rewrite))
        for draft in _draw_all(PronounZh(requests), 2000)
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
    said = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedPhraseZh(requests), 2000)}
    assert {
        ("有什么作用", "内存卡有什么作用"),
        ("它有什么作用", "内存卡有什么作用"),
        ("怎么使用它", "怎么使用内存卡"),
    } <= said
    assert not any(utterance.startswith(("它的女儿", "他", "她")) for utterance, _ in said), "nobody says who 杨幂 is"
    tails = {(_plain(draft.utterance), _plain(draft.rewrite)) for draft in _draw_all(SharedTail(requests))}
    assert ("那路由器呢", "路由器怎么安装") in tails


def _write_requests(folder: Path) -> Path:
    english = [{"text": r.text, "source": r.source, "intent": r.intent, "slots": _slots(r)} for r in WEATHER]
    chinese = [
        {"text": f"{city}天气怎么样。", "source": "oppo", "intent": "", "slots": []}
        for city in ("北京", "上海", "广州")
    ]
    for language, values in (("en", english), ("zh", chinese)):
        with lzma.open(folder / f"{language}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    return folder


def _slots(request: Request) -> list[dict[str, object]]:
    return [{"name": s.name, "start": s.start, "end": s.end, "value": s.value} for s in request.slots]


def test_requests_are_read_and_made_into_rows(tmp_path: Path) -> None:
    requests = read_requests(_write_requests(tmp_path), "en")
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


@pytest.mark.parametrize(
    ("history", "utterance", "rewrite", "fault"),
    [
        ("Have you seen Dumbo?", "Is it short?", "Is Dumbo short?", None),
        ("Do you like this movie, Dumbo?", "Who made this movie?", "Who made Dumbo?", None),
        ("I like tea.", "Me too.", "Me too!", "only marks or case"),
        ("It is a big house.", "No.", "No big house.", "reaction"),
        ("It has wifi.", "I like the sound of that.", "I like the sound of wifi.", "idiom"),
        ("Which is best? | Tea.", "Coffee then.", "Which is best?", "copy of a turn"),
        ("Are you going to Rome?", "When?", "When to Rome", "marks"),
        ("It was the team.", "Yeah. They really needed it.", "Yeah. the team needed it.", "lost words"),
        ("My sister gets mad.", "How old is your sister?", "How old is your mad my sister?", "speaker"),
        ("Have you seen Dumbo?", "Is it short?", "Is Bambi short?", "word from nowhere"),
        ("have you seen dumbo?", "Is it short?", "Is DUMBO short?", "spelled otherwise"),
        ("She sings with Drake now.", "Did she sing with Drake?", "Did Drake now sing with Drake?", "said twice"),
        ("I like tea.", "Is it?", "Is that it?", "nothing new"),
    ],
)
def test_faults_of_labels(history: str, utterance: str, rewrite: str, fault: str | None) -> None:
    assert find_fault(Dialogue(tuple(history.split(" | ")), utterance), rewrite) == fault


def test_labels_are_taken_by_how_sure_the_teacher_is(tmp_path: Path) -> None:
    changed = {"history": ["Have you seen Dumbo?"], "utterance": "Is it short?", "rewrite": "Is Dumbo short?"}
    kept = {"history": ["Hello."], "utterance": "Who wrote Dune?", "rewrite": "Who wrote Dune?"}
    sure, unsure = {"logprob": -0.2, "lowest": -0.1}, {"logprob": -3.0, "lowest": -2.0}
    labels = [
        {**changed, **unsure},
        {**kept, **sure},
        {**changed, **sure},
        {**kept, **unsure},
        {**kept, **sure},
        {**kept, **sure},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(label) + "\n" for label in labels), encoding="utf-8")
    assert [row.id for row in read_labels(path)] == ["label-3", "label-5"], (
        "one changed row makes room for one kept row"
    )
    path.write_text('{"history": []}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"labels\.jsonl:1: expected the field logprob"):
        list(read_labels(path))


def test_sampled_rows_are_all_taken(tmp_path: Path) -> None:
    path = tmp_path / "sampled.jsonl"
    row = {"history": ["Have you seen Dumbo?"], "utterance": "Is it short?", "rewrite": "Is Dumbo short?"}
    path.write_text(2 * (json.dumps(row) + "\n"), encoding="utf-8")
    made = augment(AugmentationSettings(sampled=str(path)), [])
    assert [(each.id, each.rewrite) for each in made] == [
        ("sampled-1", "Is Dumbo short?"),
        ("sampled-2", "Is Dumbo short?"),
    ]


def test_sampled_rows_that_come_with_the_package() -> None:
    rows = augment(AugmentationSettings(sampled="package"), [])
    assert len(rows) == 76_107 and sum(not row.is_complete for row in rows) == 56_100
    assert all(row.dialogue.history and row.rewrite for row in rows)
    assert len({(row.dialogue.history, row.dialogue.utterance) for row in rows}) == len(rows)


def test_mudoco_dialogues_are_in_one_part_only(tmp_path: Path) -> None:
    rows = [
        _row(f"calling-dial{number}-turn{turn}", "Call Ann.", "Stop.", "Stop.")
        for number in range(60)
        for turn in (2, 4)
    ]
    for name in ("dev", "train"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row.to_dict()) + "\n" for row in rows), encoding="utf-8")
    train, dev = (list(mudoco_rows(tmp_path / "dev.jsonl", part)) for part in ("train", "dev"))
    dialogues = [{dialogue_id(row.id.split(":")[1]) for row in part} for part in (train, dev)]
    assert not dialogues[0] & dialogues[1]
    assert len(train) + len(dev) == len(rows)
    assert 15 <= len(dialogues[0]) <= 45
    assert part_of("calling-dial3-turn2") == part_of("calling-dial3-turn14")
    assert len(list(mudoco_rows(tmp_path / "train.jsonl", "train"))) == len(rows)
    assert not list(mudoco_rows(tmp_path / "train.jsonl", "dev"))
    made = augment(AugmentationSettings(mudoco=str(tmp_path), mudoco_copies=2), [])
    assert len({row.id for row in made}) == len(made) == 2 * (len(rows) + len(train))


def test_augment_makes_what_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"question": "Why is the sky blue?", "answer": "It scatters light."}\n', encoding="utf-8")
    folder = str(_write_requests(tmp_path))
    settings = AugmentationSettings(
        identity=1.0,
        requests=folder,
        requests_en=8,
        requests_zh=5,
        switches=20,
        reactions=30,
        answers=str(answers),
        seed=2,
    )
    with caplog.at_level(logging.INFO):
        made = augment(settings, ROWS)
    kinds = ("identity:", "request-en-", "request-zh-", "switch-", "reaction-")
    assert [sum(row.id.startswith(kind) for row in made) for kind in kinds] == [4, 8, 5, 20, 30]
    assert made == augment(settings, ROWS)
    assert len({row.id for row in made}) == len(made)
    assert any(row.dialogue.history[0] == "Why is the sky blue?" for row in made)
    assert "20 rows of switches" in caplog.text
    assert augment(AugmentationSettings(), ROWS) == []


def test_the_answers_of_the_package_stand_between_a_question_and_its_follow_up() -> None:
    made = augment(AugmentationSettings(everyday_en=400, answers="package", seed=3), [])
    answers = dict(read_answers("package"))
    assert len(answers) > 4_900
    found = [row for row in made if any(turn in answers.values() for turn in row.dialogue.history)]
    assert len(found) > 10, "the frames that need an answer get one"
    assert augment(AugmentationSettings(everyday_en=400, seed=3), []) != made


def test_answers_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'none.jsonl: no such file; expected JSON lines of .*, or "package"'):
        read_answers(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"identity": 1.5}, "identity: expected a share between 0 and 1, found 1.5"),
        ({"reactions": -1}, "reactions: expected 0 or more, found -1"),
        ({"switches": 5}, "requests: expected a folder of requests"),
        ({"labels": "labels.jsonl"}, "labels, labels_rows: expected both"),
        ({"mudoco_copies": 2}, "mudoco, mudoco_copies: expected both"),
    ],
)
def test_settings_refuse_what_cannot_be(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AugmentationSettings(**values)  # type: ignore[arg-type]
