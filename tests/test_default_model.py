"""The embedded model, as users meet it: right records, the same bytes each time, known samples."""

from __future__ import annotations

import dataclasses
import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo import Dialogue, Rewriter
from teo.cli.demo import SAMPLES
from teo.loading import DEFAULT_MODEL, has_default
from teo.rules import reason_unchanged

pytestmark = pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
DIALOGUES = [Dialogue(tuple(history), utterance) for *history, utterance in SAMPLES]


@pytest.fixture(scope="module")
def rewriter() -> Rewriter:
    return Rewriter.from_pretrained()


def test_the_whole_model_is_small_enough_to_ship() -> None:
    assert sum(file.stat().st_size for file in DEFAULT_MODEL.rglob("*")) <= 64_000_000


@pytest.mark.parametrize(
    ("history", "utterance", "expected", "reason"),
    [
        (["天龙八部里你最喜欢谁", "我最喜欢乔峰"], "为什么喜欢他", "为什么喜欢乔峰", "a pronoun, Chinese"),
        (["Who wrote Emma?", "Jane Austen wrote it."], "Where was she born?", "Where was Jane Austen born?", "English"),
        (["What is the capital of France?", "Paris."], "Thank you very much!", "Thank you very much!", "thanks"),
        ([], "It is he who acted.", "It is he who acted.", "no history"),
    ],
)
def test_plain_cases(rewriter: Rewriter, history: list[str], utterance: str, expected: str, reason: str) -> None:
    assert rewriter.rewrite(history, utterance).rewrite == expected, reason


def test_records_hold_what_they_promise(rewriter: Rewriter) -> None:
    for dialogue, result in zip(DIALOGUES, rewriter.rewrite_many(DIALOGUES), strict=True):
        assert result.edits.apply(dialogue.utterance) == result.rewrite
        assert result.changed == (result.rewrite != dialogue.utterance)
        assert (result.confidence is None) == (reason_unchanged(dialogue) is not None)
        assert (result.reason is None) == result.changed
        assert 0 <= (result.confidence or 0) <= 1
        assert not result.truncated


def test_alone_or_together_the_bytes_are_the_same(rewriter: Rewriter) -> None:
    together = [result.to_dict() for result in rewriter.rewrite_many(DIALOGUES, min_confidence=0.0)]
    alone = [rewriter.rewrite_many([dialogue], min_confidence=0.0)[0].to_dict() for dialogue in DIALOGUES]
    assert together == alone


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "usual"), [("fused", 2), ("fast", 3)])
def test_several_rewrites_are_the_same_bytes_alone_and_together(variant: str, usual: int) -> None:
    rewriter = Rewriter.from_pretrained(variant=variant)
    together = rewriter.rewrite_many(DIALOGUES, n_best=3, batch_size=4)
    for dialogue, result, plain in zip(DIALOGUES, together, rewriter.rewrite_many(DIALOGUES), strict=True):
        assert rewriter.rewrite_many([dialogue], n_best=3)[0].to_dict() == result.to_dict()
        assert dataclasses.replace(result, alternatives=()) == plain
        own, *others = result.alternatives
        assert (own.rewrite, own.edits, own.confidence) == (plain.rewrite, plain.edits, plain.confidence)
        assert [one.edits.apply(dialogue.utterance) for one in result.alternatives] == list(
            dict.fromkeys(one.rewrite for one in result.alternatives)
        )
        assert len(others) <= (0 if reason_unchanged(dialogue) else 2)
    # Of the fused decoder's texts many differ in their operations alone: most samples have two distinct rewrites.
    assert sum(len(result.alternatives) >= usual for result in together) > len(DIALOGUES) / 2


def test_a_lower_threshold_changes_more(rewriter: Rewriter) -> None:
    changed = [sum(r.changed for r in rewriter.rewrite_many(DIALOGUES, min_confidence=c)) for c in (0.0, None, 1.0)]
    assert changed[0] >= changed[1] >= changed[2]
    assert changed[0] > changed[2]


WORDS = [
    *("it", "he", "Batman", "the poster", "How much?", "他", "为什么", "西安", "多少钱", "明天呢", "iPhone 15", "3.5"),
    *(
        "[SEP]",
        "[I]",
        "[D] he [R]",
        "</s>",
        "[CLS]",
        "⁀",
        "▁",
        "\ud800",
        "\0",
        "\u202eabc",
        "שלום",
        "😀👩‍👩‍👧",
        "a\u0301",
        "\n",
    ),
]
turns = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join) | st.text(max_size=20)
talks = st.lists(st.tuples(st.lists(turns, min_size=1, max_size=4), turns), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows=talks)
def test_whatever_is_said_the_record_holds_and_neighbours_do_not_matter(rows: list[tuple[list[str], str]]) -> None:
    rewriter = shared_rewriter()
    dialogues = [Dialogue(tuple(history), utterance) for history, utterance in rows]
    together = rewriter.rewrite_many(dialogues, min_confidence=0.0)
    for dialogue, result in zip(dialogues, together, strict=True):
        assert result.edits.apply(dialogue.utterance) == result.rewrite
        assert result.changed == (result.rewrite != dialogue.utterance)
        json.dumps(result.to_dict())
        alone = rewriter.rewrite(dialogue.history, dialogue.utterance, min_confidence=0.0)
        assert alone.to_dict() == result.to_dict()


@functools.cache
def shared_rewriter() -> Rewriter:
    return Rewriter.from_pretrained()


def test_long_histories_are_cut_and_said() -> None:
    history = [f"Turn {k} was about the weather." for k in range(10_000)]
    result = shared_rewriter().rewrite([*history, "Who wrote Dune?", "Frank Herbert."], "When was he born?")
    assert result.rewrite == "When was Frank Herbert born?"
    assert result.truncated.turns > 9_000
    huge = shared_rewriter().rewrite(["Who wrote Dune?"], "why " * 250_000)
    assert huge.truncated.characters > 900_000
    assert huge.rewrite.startswith("why")
