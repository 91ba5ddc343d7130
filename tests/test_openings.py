"""Greetings and offers of help at the start of a dialogue: what is taken for them, and what is left of the history."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripted import rewriter_of, says
from teo.dialogue import Dialogue
from teo.openings import is_opening, skip_openings

OFFER, HELLO = "Hello! How can I help you today?", "hi there"
WELCOME = "Welcome to Acme! This is Anna. How may I help you?"
CALL = "Hi, my parcel from Acme is late. Hello"
ASK, ANSWER = "Who wrote Dune?", "Frank Herbert."


@pytest.mark.parametrize(
    "turn",
    [
        OFFER,
        HELLO,
        "Hey, what can I do for you?",
        "HOW MAY I ASSIST YOU",
        "Good morning! How can we help?",
        "Hello, I am your virtual assistant. How may I help you",
        "Thanks for reaching out! Is there anything I can help you with today?",
        "Hi how can i help",
        "你好",
        "你好呀~",
        "在吗",
        "在吗在吗",
        "在的，亲",
        "您好，请问有什么可以帮您？",
        "您好，我是智能客服，请问有什么可以帮您",
        "您好,很高兴为您服务,请问有什么可以帮您?",
        "您好！请问需要什么帮助？",
        "嗨，有什么我能帮你的？",
        "有什么需要帮忙的吗",
        "请问您想咨询什么问题？",
    ],
)
def test_a_greeting_or_an_offer_of_help_is_an_opening(turn: str) -> None:
    assert is_opening(turn)
    assert is_opening(f" {turn}\n")


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("Welcome to Acme!", "it names a company"),
        ("Hi Tom", "it names a person"),
        ("Hello Kitty", "a name"),
        ("How can I help you with your order?", "it names a topic"),
        ("How can I help you with that?", "it asks back"),
        ("What can I do in Paris?", "a question of the user's"),
        ("What can I do?", "a question of the user's"),
        ("I'm the new assistant manager", "it says who somebody is"),
        ("I'm here in Rome", "it says where"),
        ("Thanks", "an answer to something"),
        ("OK", "an answer to something"),
        ("你好厉害", "praise"),
        ("在北京", "an answer"),
        ("在家", "an answer"),
        ("亲子乐园", "a word that only begins so"),
        ("有什么好吃的", "a question of the user's"),
        ("有什么问题可以问老师", "advice"),
        ("你要什么", "it asks for a thing"),
        ("好的", "an answer to something"),
        ("", "nothing"),
        ("?!", "no words"),
        ("hello " * 30, "too long for one"),
    ],
)
def test_what_says_more_is_no_opening(turn: str, reason: str) -> None:
    assert not is_opening(turn), reason


@pytest.mark.parametrize(
    ("history", "left", "reason"),
    [
        ((OFFER, ASK, ANSWER), (ASK, ANSWER), "the assistant begins"),
        ((HELLO, OFFER, ASK, ANSWER), (ASK, ANSWER), "both greet"),
        ((HELLO, OFFER, "在吗", OFFER, ASK, ANSWER), (ASK, ANSWER), "several"),
        ((HELLO, ANSWER), (HELLO, ANSWER), "without it the assistant would begin"),
        ((HELLO, OFFER, ANSWER), (OFFER, ANSWER), "one is left to stand before it"),
        ((WELCOME, ASK, ANSWER), (ASK, ANSWER), "the assistant begins and offers help"),
        ((WELCOME, ANSWER), (WELCOME, ANSWER), "the user begins"),
        ((WELCOME,), (WELCOME,), "nothing else was said"),
        (("Welcome to Acme!", ASK, ANSWER), ("Welcome to Acme!", ASK, ANSWER), "no offer"),
        ((CALL, ASK, ANSWER), (CALL, ASK, ANSWER), "a greeting at its end is no offer"),
        ((ASK, OFFER), (ASK, OFFER), "not at the start"),
        ((OFFER,), (), "nothing else was said"),
        ((HELLO, OFFER), (), "nothing else was said"),
        ((), (), "no history"),
    ],
)
def test_what_is_left_begins_with_the_user(history: tuple[str, ...], left: tuple[str, ...], reason: str) -> None:
    speakers = ("assistant", "user") * len(history)
    spoken = Dialogue(history, "When was he born?", speakers[-len(history) - 1 :] or ("user",))
    read = skip_openings(spoken)
    assert (read.history, read.utterance) == (left, spoken.utterance), reason
    assert read.speakers == (spoken.speakers or ())[len(history) - len(left) :]
    assert (read is spoken) == (left == history)


@pytest.mark.parametrize(
    ("speakers", "left", "reason"),
    [
        (("assistant", "user", "assistant", "user"), 2, "an assistant's question after a greeting"),
        (("user", "user", "assistant", "user"), 3, "a question of the user's"),
        (None, 3, "a friend may have asked it"),
    ],
)
def test_who_asks_after_a_greeting_decides(speakers: tuple[str, ...] | None, left: int, reason: str) -> None:
    dialogue = Dialogue(("Good evening, checking in?", "Yes.", "Your room is 305."), "Where is it?", speakers)
    assert len(skip_openings(dialogue).history) == left, reason
    offer = Dialogue((WELCOME, "Yes.", "Your room is 305."), "Where is it?", speakers)
    assert len(skip_openings(offer).history) == (3 if speakers and speakers[0] == "user" else 2), reason


def test_the_rewrite_is_that_of_the_dialogue_without_its_openings() -> None:
    generator = says("When was Frank Herbert born?")
    rewriter = rewriter_of(generator)
    records = rewriter.rewrite_many(
        [Dialogue(history, "When was he born?") for history in ((OFFER, ASK, ANSWER), (ASK, ANSWER))]
    )
    assert records[0] == records[1]
    assert generator.sources[0] == generator.sources[1]
    assert not records[0].truncated, "nothing of it counts as left out"


def test_an_utterance_after_nothing_but_openings_needs_no_model() -> None:
    generator = says("x")
    record = rewriter_of(generator).rewrite([HELLO, OFFER], "Is it open?")
    assert (record.rewrite, record.reason, generator.sources) == ("Is it open?", "no-history", [])


@given(st.lists(st.sampled_from([OFFER, HELLO, ASK, "你好", "好的"]), max_size=7))
def test_nothing_but_openings_is_skipped(turns: list[str]) -> None:
    read = skip_openings(Dialogue(tuple(turns), "x"))
    skipped = turns[: len(turns) - len(read.history)]
    assert read.history == tuple(turns[len(skipped) :])
    assert all(map(is_opening, skipped))
    assert not skipped or len(read.history) % 2 == 0


@pytest.mark.parametrize("turn", ["hi " * 40, "在吗" * 60, "how can i help " * 8, "请问" * 60, "你好，" * 40 + "x"])
def test_long_turns_take_no_time(turn: str) -> None:
    began = time.process_time()
    for _ in range(100):
        is_opening(turn[:120])
    assert time.process_time() - began < 1.0
