"""Rewriter: what holds for any input, shown on scripted pipelines and on a tiny exported model."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripted import ScriptedGenerator, rewriter_of, says, stages_of
from teo.decision import PREFER, THRESHOLD, own_edits
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.errors import InputError, ModelError
from teo.excerpts import OMISSION
from teo.layouts import Marker, Pieces, Truncation, text_of
from teo.loading import ModelFolder, Role, open_model
from teo.pipelines import edits_to
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.runtime.generator import Generated

HISTORY = ("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck.")
UTTERANCE = "It is he who acted."


def scripted(
    text: str | Callable[[Pieces], Pieces], *, score: float = -0.1, limit: int = 400, **settings: Any
) -> tuple[Rewriter, ScriptedGenerator]:
    """Return a rewriter whose model says a text, or what a function makes of each source; a token per character."""
    generator = ScriptedGenerator(
        lambda source, _: text(source) if callable(text) else (text,),
        token_scores=lambda _: (score,),
        source_limit=limit,
    )
    return rewriter_of(generator, **settings), generator


def test_the_rewrite_is_made_of_the_users_own_string() -> None:
    rewriter, generator = scripted("It is Ben Affleck who acted as Batman.")
    result = rewriter.rewrite(HISTORY, "  It is he  who acted.\n")
    assert result.rewrite == "  It is Ben Affleck  who acted as Batman.\n", "only the model's copy lost white space"
    assert result.changed
    assert [edit["op"] for edit in result.to_dict()["edits"]] == ["replace", "insert"]
    assert result.operations == "[D] he [R] Ben Affleck [I] as Batman"
    assert result.confidence == pytest.approx(0.905, abs=0.001)
    assert generator.sources == [
        (Marker.CLS, HISTORY[0], Marker.SEP, HISTORY[1], Marker.SEP, "It is he who acted.", Marker.SEP)
    ]


def test_messages_and_rows_and_turns_give_the_same() -> None:
    rewriter, _ = scripted("It is Ben Affleck who acted.")
    expected = rewriter.rewrite(HISTORY, UTTERANCE)
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": HISTORY[0]},
        {"role": "assistant", "content": HISTORY[1]},
        {"role": "user", "content": UTTERANCE},
    ]
    assert rewriter.rewrite(messages=messages) == expected
    rows = [{"history": list(HISTORY), "utterance": UTTERANCE}, {"messages": messages}, Dialogue(HISTORY, UTTERANCE)]
    assert rewriter.rewrite_many(rows) == [expected] * 3
    assert rewriter.rewrite_many(iter(rows), batch_size=1) == [expected] * 3


@pytest.mark.parametrize(
    ("history", "utterance", "reason"),
    [
        ([], "what about it", "no-history"),
        (["hi"], " \t\n", "empty"),
        (["hi"], "😂😂👍🏽", "reaction"),
        (["hi"], "哈哈哈哈", "reaction"),
        (["hi"], "`rm -rf it`", "code"),
        (["hi"], "what about it", "no-history"),
        (["tea"], "b" * 500, "too-long"),
    ],
)
def test_what_is_kept_without_the_model_says_why(history: list[str], utterance: str, reason: str) -> None:
    rewriter, generator = scripted("something else")
    (result,) = rewriter.try_many([Dialogue(tuple(history), utterance)])
    assert isinstance(result, Rewrite)
    assert (result.reason, result.prediction, generator.sources) == (reason, None, [])
    record = result.to_dict()
    assert (record["rewrite"], record["changed"], record["reason"]) == (utterance, False, reason)
    assert record["confidence"] is None, "no model was asked"


def test_a_users_own_words_are_kept() -> None:
    generator = says("something else", token_scores=lambda _: (-0.1,))
    stages, folder = stages_of(direct=generator), ModelFolder({"direct": Role("w")}, variant="direct")
    rewriter = Rewriter(stages, folder, keep=["ticket closed", r"/^order \d+$/"])
    kept = rewriter.rewrite_many([Dialogue(HISTORY, text) for text in ("Ticket closed.", "Order 17", "order it")])
    assert [result.reason for result in kept] == ["keep-list", "keep-list", None]
    assert [result.changed for result in kept] == [False, False, True]
    assert len(generator.sources) == 1


def test_below_the_threshold_the_utterance_is_kept() -> None:
    rewriter, _ = scripted("It is Ben Affleck who acted.", score=-1.0, threshold=0.5)
    kept = rewriter.rewrite(HISTORY, UTTERANCE)
    assert (kept.rewrite, kept.changed, len(kept.edits)) == (UTTERANCE, False, 0)
    assert kept.confidence == pytest.approx(0.368, abs=0.001)
    assert kept.operations == "[D] he [R] Ben Affleck", "what was proposed is shown all the same"
    assert rewriter.threshold == 0.5
    assert rewriter.rewrite(HISTORY, UTTERANCE, min_confidence=0.3).changed
    assert not rewriter.rewrite(HISTORY, UTTERANCE, min_confidence=0.9).changed
    assert [one.changed for one in rewriter.rewrite_many([Dialogue(HISTORY, UTTERANCE)], min_confidence=0.0)] == [True]


def test_a_variants_own_calibration_is_used() -> None:
    functions = {"evidence": ["score"], "changed": {"any": [0.0, 1.0]}}
    rewriter, _ = scripted("It is Ben.", score=-1.0, extra={"calibration": {"direct": functions}})
    assert rewriter.threshold == THRESHOLD
    assert rewriter.rewrite(HISTORY, UTTERANCE).confidence == round(1 / (1 + math.exp(1)), 4)
    other, _ = scripted("It is Ben.", score=-1.0, threshold=0.1, extra={"calibration": {"fused": functions}})
    assert other.threshold == 0.1, "a model may have its own"
    assert other.rewrite(HISTORY, UTTERANCE).confidence == round(math.exp(-1), 4)
    with pytest.raises(ModelError, match="run `teo calibrate` again"):
        scripted("x", extra={"calibration": {"direct": {"scores": []}}})


def test_thresholds_by_name_and_by_number() -> None:
    functions = {"evidence": ["score"], "changed": {"en": [1.0, 1.0], "zh": [2.0, 1.0], "any": [0.0, 1.0]}}
    rewriter, _ = scripted("new words", score=-1.0, extra={"calibration": {"direct": functions}})
    rows = [Dialogue(("a turn",), "is he"), Dialogue(("一句话",), "is he"), Dialogue(("a turn",), "他呢")]
    found = {name: [one.changed for one in rewriter.rewrite_many(rows, prefer=name)] for name in PREFER}
    assert found == {"search": [True] * 3, "balanced": [True] * 3, "careful": [False] * 3}
    assert [one.changed for one in rewriter.rewrite_many(rows, min_confidence=0.6)] == [False, True, True]
    with pytest.raises(InputError, match="prefer, min_confidence: expected one of them"):
        rewriter.rewrite_many(rows, prefer="search", min_confidence=0.5)


def test_a_pipeline_without_calibration_says_so_once_and_keeps_what_it_doubts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rewriter, generator = scripted("It is Ben who acted.", score=-0.8)
    assert rewriter.rewrite(HISTORY, UTTERANCE, min_confidence=0.4).changed
    assert caplog.messages == [], "the caller's own threshold"
    for _ in range(2):
        assert not rewriter.rewrite(HISTORY, UTTERANCE).changed, "exp(-0.8) = 0.45 is below the default of 0.5"
    assert len(generator.sources) == 3
    (warning,) = caplog.messages
    assert warning == (
        "scripted: the variant 'direct' was not calibrated: its confidence is the raw probability of the text, and "
        "rewrites below 0.5 are not made; fit it with `teo calibrate`"
    )


@pytest.mark.parametrize(
    ("said", "score", "reason"),
    [
        ("It is Ben who acted.", -0.1, None),
        ("It is Ben who acted.", -1.0, "unsure"),
        (UTTERANCE, -0.1, "complete"),
        ("It  is he who acted.", -0.1, "complete"),
    ],
)
def test_an_answer_says_why_the_utterance_was_kept(said: str, score: float, reason: str | None) -> None:
    rewriter, _ = scripted(said, score=score)
    (record,) = rewriter.rewrite_many([Dialogue(HISTORY, UTTERANCE)])
    assert record.reason == record.to_dict()["reason"] == reason
    assert record.changed == (reason is None)
    assert record.prediction is not None
    (too_long,) = scripted(said, limit=30)[0].rewrite_many([Dialogue(("a" * 30,), "b" * 20)])
    assert (too_long.reason, too_long.prediction) == ("too-long", None)


P, I, D, R = Marker.PLACE, Marker.INSERT, Marker.DELETE, Marker.REPLACE  # noqa: E741


def test_edits_and_operations_of_a_record_agree() -> None:
    placed = (P, "", I, "the", P, "the", I, "cat")
    rewriter, _ = scripted(lambda _: placed, variant="fast", threshold=0.01)
    result = rewriter.rewrite(["a turn"], "the cat the the")
    assert result.rewrite == "the the cat cat the the"
    assert result.operations == "[I] the [I] cat"
    assert [(edit.start, edit.new) for edit in result.edits] == [(0, "the "), (4, "cat ")], "each where it was placed"


@settings(max_examples=300)
@given(
    utterance=st.text("ab c.,他们", max_size=20),
    placed=st.lists(st.sampled_from([P, I, D, R, "a", "b", "ab", "c .", "他", "a b", ""]), max_size=12),
)
def test_executed_operations_are_the_edits(utterance: str, placed: list[str]) -> None:
    rewriter, _ = scripted(lambda _: tuple(placed), variant="fast", threshold=0.01)
    result = rewriter.rewrite(["a turn"], utterance)
    if result.changed:
        assert result.operations == format_operations(result.edits.operations)


def texts(*scored: tuple[str, float]) -> list[Generated]:
    return [Generated((text,), (score,)) for text, score in scored]


def test_alternatives_are_distinct_and_the_surest_comes_first() -> None:
    rewriter, generator = scripted("It is Ben who acted.", score=-0.5)
    generator.value = lambda _source, _target: -2.0
    generator.several = texts(
        ("It is Batman who acted.", -0.2),
        ("It is Ben who acted. ", -0.5),
        ("It  is he who acted.", -3.0),
        ("It is Ben Affleck who acted.", -1.0),
        ("It is Batman  who acted.", -4.0),
    )
    result = rewriter.rewrite(HISTORY, UTTERANCE, n_best=4)
    assert [(one.rewrite, one.score) for one in result.alternatives] == [
        ("It is Batman who acted.", -0.2),
        ("It is Ben who acted.", -0.5),
        ("It is Ben Affleck who acted.", -1.0),
        (UTTERANCE, -2.0),
    ]
    assert generator.counts == [8], "texts that say the same are made up for"
    assert generator.scored[0][1] == (UTTERANCE,), "the unchanged utterance is scored too"
    assert (result.rewrite, result.operations) == ("It is Batman who acted.", "[D] he [R] Batman")
    assert result.confidence == result.alternatives[0].confidence == pytest.approx(0.819, abs=0.001)
    assert len(rewriter.rewrite(HISTORY, UTTERANCE, n_best=2).alternatives) == 2


def test_without_a_sure_alternative_the_utterance_stays() -> None:
    rewriter, generator = scripted("It is Ben who acted.", score=-1.0, threshold=0.5)
    generator.value = lambda _source, _target: -1.5
    generator.several = texts(("It is Ben who acted.", -1.0), (UTTERANCE, -1.5), ("It is Batman who acted.", -2.0))
    result = rewriter.rewrite(HISTORY, UTTERANCE, n_best=3)
    assert (result.changed, result.reason) == (False, "unsure")
    assert [one.rewrite for one in result.alternatives] == [
        "It is Ben who acted.",
        UTTERANCE,
        "It is Batman who acted.",
    ]


def test_doubled_spaces_and_marks_make_no_other_alternative() -> None:
    rewriter, generator = scripted("When was Frank Herbert born?", score=-0.5)
    generator.value = lambda _source, _target: -9.0
    generator.several = texts(
        ("When was Frank Herbert born??", -0.6),
        ("When was  Frank Herbert born?", -0.7),
        ("When was Frank Herbert born? ?", -0.8),
        ("When was Dune born?", -1.0),
    )
    result = rewriter.rewrite(["Who wrote Dune?", "Frank Herbert."], "When was he born?", n_best=5)
    assert [other.rewrite for other in result.alternatives] == [
        "When was Frank Herbert born?",
        "When was Dune born?",
        "When was he born?",
    ]


def test_texts_that_cannot_be_read_are_no_alternatives() -> None:
    rewriter, generator = scripted(lambda _: (Marker.DELETE, "he", Marker.REPLACE, "Ben"), variant="fast")
    generator.value = lambda _source, _target: -9.0
    generator.several = [
        Generated((Marker.DELETE, "he"), (-0.5,)),
        Generated((Marker.DELETE, "she", Marker.REPLACE, "Ben"), (-0.6,)),
        Generated((Marker.DELETE, "he", Marker.REPLACE, "Batman"), (-0.7,)),
    ]
    found = [one.rewrite for one in rewriter.rewrite(HISTORY, UTTERANCE, n_best=5).alternatives]
    assert found == ["It is Ben who acted.", "It is Batman who acted.", UTTERANCE]


def test_without_a_model_call_the_utterance_is_the_only_alternative() -> None:
    rewriter, generator = scripted("x")
    for history, utterance in (([], "is he"), (["a"], "hello"), (["a"], "b" * 500)):
        result = rewriter.rewrite(history, utterance, n_best=3)
        assert [(one.rewrite, one.confidence, one.score) for one in result.alternatives] == [(utterance, None, None)]
    assert (generator.sources, generator.counts) == ([], [])


@pytest.mark.parametrize("n_best", [-1, 0, 17])
def test_how_many_may_be_asked_for(n_best: int) -> None:
    rewriter, _ = scripted("x")
    with pytest.raises(InputError, match=f"n_best: expected 1 to 16, found {n_best}"):
        rewriter.rewrite(HISTORY, UTTERANCE, n_best=n_best)
    with pytest.raises(InputError, match="n_best: expected 1 to 16"):
        rewriter.rewrite_many([], n_best=n_best)


def test_a_pipeline_of_several_texts_has_no_alternatives() -> None:
    rewriter, generator = scripted("x", variant="teo")
    with pytest.raises(InputError, match=r"a variant that writes one text \(direct, fast, fused\), found 'teo'"):
        rewriter.rewrite(HISTORY, UTTERANCE, n_best=2)
    assert generator.sources == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "no rewrite is no change"),
        ("  \n", "nor is a blank one"),
        ("he " * 400, "a text longer than all that was said has run away"),
        (UTTERANCE, "the same text"),
        ("It  is he who acted. ", "the same but for white space"),
    ],
)
def test_what_is_no_rewrite_is_no_change(said: str, why: str) -> None:
    rewriter, _ = scripted(said)
    result = rewriter.rewrite(HISTORY, UTTERANCE)
    assert (result.rewrite, result.changed) == (UTTERANCE, False), why


def test_what_is_not_read_is_counted() -> None:
    rewriter, generator = scripted("new words", limit=60)
    history = ["a" * 9, "b " * 30 + "c", "d" * 9]
    result = rewriter.rewrite(history, "what")
    (source,) = generator.sources
    first, long, last = source[1], source[3], source[5]
    assert (first, last) == ("a" * 9, "d" * 9), "the turns around a long one are read whole"
    assert (long[:3], long[-3:]) == ("b b", "b c"), "its head and its end"
    assert result.truncated == Truncation(0, 61 - len(long.replace(OMISSION, "")))
    assert rewriter.fit(Dialogue(tuple(history), "what"))[0].history == (first, long, last)
    many = rewriter.rewrite(["e" * 9] * 20, "what")
    assert many.truncated == Truncation(15, 15 * 9), "too many turns: the oldest are dropped whole"
    with pytest.raises(
        InputError,
        match=r"at most 60 tokens, found one of which \d+ characters do not fit \(0 whole turns among them\)",
    ):
        rewriter.rewrite(history, "what", truncation="error")
    assert rewriter.rewrite(history[::2], "what", truncation="error").changed, "what fits is not refused"


def test_a_long_word_of_the_history_is_no_long_utterance() -> None:
    rewriter, generator = scripted("new words", limit=60)
    result = rewriter.rewrite(["x" * 3000], "what")
    ((_, read, *_),) = generator.sources
    assert (set(read), len(read) > 40) == ({"x"}, True)
    assert (result.rewrite, result.truncated) == ("new words", Truncation(0, 3000 - len(read)))
    assert scripted("what", limit=60)[0].rewrite(["x" * 3000], "what").reason == "complete"


def test_an_utterance_is_never_cut() -> None:
    rewriter, generator = scripted("new words", limit=40)
    no_room = rewriter.rewrite(["a" * 30], "b" * 30)
    assert (no_room.rewrite, no_room.truncated, generator.sources) == ("b" * 30, Truncation(1, 30), [])
    too_long = rewriter.rewrite(["a" * 30, "c"], "b" * 50)
    assert (too_long.rewrite, too_long.truncated, generator.sources) == ("b" * 50, Truncation(2, 81), [])


def test_an_error_stays_in_its_place() -> None:
    rewriter, _ = scripted("It is Ben who acted.", limit=200)
    rows: list[Any] = [
        {"utterance": 3},
        {"history": HISTORY, "utterance": UTTERANCE},
        {"history": ["a" * 300], "utterance": "b"},
    ]
    first, second, third = rewriter.try_many(rows, truncation="error")
    assert isinstance(first, InputError)
    assert not isinstance(second, Exception)
    assert second.changed
    assert isinstance(third, InputError)
    with pytest.raises(InputError, match=r"dialogues\[0\]: utterance: expected a string, found a number"):
        rewriter.rewrite_many(rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "utterance: missing; call rewrite"),
        ({"history": "abc", "utterance": "d"}, "history: expected a list of strings"),
        ({"messages": [], "utterance": "d"}, "expected either messages or history and utterance, found both"),
        ({"history": ["a"], "utterance": "b", "min_confidence": 7}, "min_confidence: expected 0 to 1, found 7"),
        ({"history": ["a"], "utterance": "b", "min_confidence": 1.5}, "min_confidence: expected 0 to 1, found 1.5"),
        (
            {"history": ["a"], "utterance": "b", "min_confidence": "0.5"},
            r"expected a number, 0 to 1; found '0.5' \(str\)",
        ),
        ({"history": ["a"], "utterance": "b", "min_confidence": float("nan")}, "min_confidence: expected 0 to 1"),
        ({"history": ["a"], "utterance": "b", "n_best": "2"}, r"n_best: expected a whole number, 1 to 16; found '2'"),
        ({"history": ["a"], "utterance": "b", "n_best": 2.0}, r"n_best: expected a whole number, 1 to 16; found 2.0"),
        ({"history": ["a"], "utterance": "b", "n_best": True}, r"found True \(bool\)"),
        ({"history": ["a"], "utterance": "b", "truncation": "x"}, "truncation: expected oldest or error, found 'x'"),
        ({"history": ["a"], "utterance": "b", "truncation": None}, "truncation: expected oldest or error"),
    ],
)
def test_wrong_calls_are_named(arguments: dict[str, Any], words: str) -> None:
    rewriter, _ = scripted("x")
    with pytest.raises(InputError, match=words):
        rewriter.rewrite(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3,), r"dialogues: expected a list of dialogues, found 3 \(int\)"),
        (("is he",), r"dialogues: expected a list of dialogues, found 'is he' \(str\)"),
        (({"utterance": "x"},), r"dialogues: expected a list of dialogues, found {'utterance': 'x'} \(dict\)"),
        (([], "32"), r"batch_size: expected a whole number, at least 1; found '32' \(str\)"),
        (([], 0), "batch_size: expected at least 1, found 0"),
    ],
)
def test_wrong_calls_of_many_are_named(arguments: tuple[Any, ...], words: str) -> None:
    rewriter, _ = scripted("x")
    with pytest.raises(InputError, match=words):
        rewriter.rewrite_many(*arguments)


def test_a_model_must_have_the_roles_of_the_variant() -> None:
    with pytest.raises(ModelError, match="the variant 'teo' needs the role"):
        Rewriter(stages_of(direct=says("x")), ModelFolder({"direct": Role("w")}))
    with pytest.raises(InputError, match="variant: expected one of teo, direct, fast, fused; found 'gold'"):
        scripted("x", variant="gold")


def test_models_that_are_not_there_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import teo.loading

    monkeypatch.setattr(teo.loading, "DEFAULT_MODEL", tmp_path / "none")
    with pytest.raises(ModelError, match="this installation has no embedded default; give a model folder"):
        Rewriter.from_pretrained()
    with pytest.raises(ModelError, match=r"found no teo\.json"):
        Rewriter.from_pretrained(tmp_path)
    with pytest.raises(InputError, match="threads: expected at least 1, found 0"):
        Rewriter.from_pretrained(tmp_path, threads=0)
    with pytest.raises(InputError, match=r"threads: expected a whole number, at least 1; found '2' \(str\)"):
        Rewriter.from_pretrained(tmp_path, threads="2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"model: expected a folder or hub:owner/name, found 5 \(int\)"):
        Rewriter.from_pretrained(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="runtime: expected onnx or torch, found 'jax'"):
        Rewriter.from_pretrained(tmp_path, runtime="jax")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dtype: expected float32 or bfloat16, found 'fp16'"):
        Rewriter.from_pretrained(tmp_path, dtype="fp16")  # type: ignore[arg-type]


any_text = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    [
        "[SEP]",
        "[CLS] [I] x",
        "a\ud800b",
        "\udfff",
        "\0\x07\x1b[2J",
        "שלום עולם",
        "مرحبا it",
        "😀👩‍👩‍👧",
        "ﬁ ǆ",
        "a\u0301\u0301",
        "\\[D] he",
        "▁⁀ ",
    ]
)


@settings(max_examples=400)
@given(utterance=any_text, said=any_text, turn=any_text)
def test_edits_always_give_the_rewrite(utterance: str, said: str, turn: str) -> None:
    rewriter, _ = scripted(said)
    check(rewriter, [turn, "and a turn"], utterance)
    script = own_edits(utterance, Dialogue(("t",), utterance), edits_to(utterance, said))
    assert (
        script.apply(utterance).strip() == said.strip()
        or len(said.strip()) > len(utterance) + 65
        or not said.strip()
        or ("".join(script.apply(utterance).split()) == "".join(said.split()))
    )


def check(rewriter: Rewriter, history: list[str], utterance: str) -> dict[str, Any]:
    result = rewriter.rewrite(history, utterance)
    assert result.edits.apply(utterance) == result.rewrite
    assert result.changed == (result.rewrite != utterance) == bool(result.edits)
    assert (result.reason is None) == result.changed
    assert (result.confidence is None) == (result.reason in ("no-history", "empty", "reaction", "code", "too-long"))
    assert 0 <= (result.confidence or 0) <= 1
    record: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    for edit in record["edits"]:
        assert utterance[edit["start"] : edit["end"]] == edit["old"]
    return record


@settings(max_examples=200)
@given(
    utterance=any_text,
    said=st.lists(st.tuples(any_text, st.floats(-9, 0)), min_size=1, max_size=8),
    n_best=st.integers(2, 16),
    threshold=st.sampled_from([0.01, 0.5, 1.0]),
)
def test_alternatives_hold_what_they_promise(
    utterance: str, said: list[tuple[str, float]], n_best: int, threshold: float
) -> None:
    rewriter, generator = scripted(said[0][0], score=said[0][1], threshold=threshold)
    generator.several = texts(*said)
    check_alternatives(rewriter, ["a turn"], utterance, n_best)


def check_alternatives(rewriter: Rewriter, history: list[str], utterance: str, n_best: int) -> dict[str, Any]:
    result = rewriter.rewrite(history, utterance, n_best=n_best)
    rewrites = [one.rewrite for one in result.alternatives]
    assert len(set(rewrites)) == len(rewrites) <= n_best
    assert utterance in rewrites, "unchanged is one of them"
    assert [one.edits.apply(utterance) for one in result.alternatives] == rewrites
    confidences = [one.confidence for one in result.alternatives if one.confidence is not None]
    assert confidences == sorted(confidences, reverse=True)
    sure = [one for one in result.alternatives if (one.confidence or 0.0) >= rewriter.threshold]
    if result.confidence is not None:
        expected = sure[0].rewrite if sure else utterance
        assert (result.rewrite, result.changed) == (expected, expected != utterance)
    record: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    return record


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="exporting a model needs torch")
    pytest.importorskip("transformers", reason="exporting a model needs transformers")
    pytest.importorskip("onnx", reason="exporting a model needs onnx")
    from teo.export.export import export_model
    from teo.models import TeoConfig, TeoForConditionalGeneration
    from teo.models.tokenizer import train_tokenizer, wrap_tokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = train_tokenizer([*HISTORY, UTTERANCE, "天龙八部里你最喜欢谁"], size=360)
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "heads": 2, "d_ff": 64}
    model = TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        model.output_bias[1] += 3
        model.copy_head.gate.bias.add_(3)
    path = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(path / "weights")
    wrap_tokenizer(tokenizer).save_pretrained(path / "weights")
    roles = {
        role: Role("weights", (prompt,)) for role, prompt in (("fused", "[E]"), ("direct", "[Y]"), ("fast", "[F]"))
    }
    ModelFolder(roles, source_limit=96, variant="direct").save(path)
    return export_model(path, path.with_name("exported")).path


@pytest.fixture(scope="module", params=["direct", "fused", "fast", "teo"])
def real(request: pytest.FixtureRequest, tiny: Path) -> Rewriter:
    return Rewriter.from_pretrained(tiny, threads=1, variant=request.param)


dialogues = st.lists(st.tuples(st.lists(any_text, max_size=4), any_text), min_size=1, max_size=6)


@pytest.mark.slow
@settings(max_examples=40)
@given(rows=dialogues)
def test_a_real_model_never_crashes_and_never_minds_its_neighbours(rows: Any, real: Rewriter) -> None:
    alone = [check(real, history, utterance) for history, utterance in rows]
    together = real.rewrite_many([Dialogue(tuple(history), utterance) for history, utterance in rows], batch_size=4)
    assert [json.loads(json.dumps(one.to_dict())) for one in together] == alone


@pytest.mark.slow
@settings(max_examples=20)
@given(rows=dialogues)
@pytest.mark.parametrize("variant", ["direct", "fused", "fast"])
def test_several_rewrites_never_mind_their_neighbours(rows: Any, variant: str, tiny: Path) -> None:
    rewriter = tiny_rewriter(tiny, variant)
    alone = [check_alternatives(rewriter, history, utterance, 3) for history, utterance in rows]
    listed = [Dialogue(tuple(history), utterance) for history, utterance in rows]
    together = rewriter.rewrite_many(listed, batch_size=4, n_best=3)
    assert [json.loads(json.dumps(one.to_dict())) for one in together] == alone


@functools.cache
def tiny_rewriter(path: Path, variant: str) -> Rewriter:
    return Rewriter.from_pretrained(path, threads=1, variant=variant)


def test_literal_markers_are_data(real: Rewriter) -> None:
    record = check(real, ["[SEP] [I] Ben", "[E] [EOS]"], "is [D] he [R] here [SEP]")
    assert record["truncated"] == {"turns": 0, "characters": 0}


def test_work_is_bounded(real: Rewriter) -> None:
    started = time.perf_counter()
    long_history = real.rewrite(["a turn of some words"] * 10_000, "is he there")
    assert long_history.truncated.turns > 9_900
    assert long_history.truncated.characters == long_history.truncated.turns * len("a turn of some words")
    long_turn = real.rewrite(["word " * 200_000, "Ben is here"], "is he there")
    assert long_turn.truncated.turns == 0, "its head and its end are read"
    assert 999_000 < long_turn.truncated.characters < 1_000_000
    long_utterance = real.rewrite(["Ben is here"], "word " * 200_000)
    assert not long_utterance.changed
    assert long_utterance.truncated == Truncation(1, 1_000_010), "all but the space at its end"
    assert time.perf_counter() - started < 10


@pytest.mark.slow
def test_threads_share_a_rewriter(real: Rewriter) -> None:
    rows = [Dialogue(HISTORY, f"{UTTERANCE} {k}") for k in range(8)]
    expected, results = real.rewrite_many(rows), {}

    def work(k: int) -> None:
        results[k] = real.rewrite_many(rows[k:] + rows[:k])

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k in range(4):
        assert results[k] == expected[k:] + expected[:k]


@pytest.mark.slow
def test_awaited_rewrites_are_the_same(real: Rewriter) -> None:
    rows = [Dialogue(HISTORY, f"{UTTERANCE} {k}") for k in range(6)]
    messages = [{"role": "user", "content": HISTORY[0]}, {"role": "user", "content": UTTERANCE}]

    async def ask() -> tuple[Any, ...]:
        alone = [real.arewrite(row.history, row.utterance, min_confidence=0) for row in rows]
        return (
            await asyncio.gather(*alone),
            await real.arewrite_many(rows, 2, min_confidence=0),
            await real.arewrite(messages=messages),
        )

    expected = real.rewrite_many(rows, min_confidence=0)
    assert asyncio.run(ask()) == (expected, expected, real.rewrite(messages=messages))


def test_a_cancelled_call_is_not_waited_for() -> None:
    going_on = threading.Event()
    rewriter, _ = scripted(lambda source: ("It is Ben who acted.",) if going_on.wait(10) else ())

    async def ask() -> bool:
        call = asyncio.create_task(rewriter.arewrite(HISTORY, UTTERANCE))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        going_on.set()
        return (await rewriter.arewrite(HISTORY, UTTERANCE)).changed

    assert asyncio.run(ask()), "the next call goes on as before"
    with pytest.raises(InputError, match="utterance: missing"):
        asyncio.run(rewriter.arewrite(HISTORY))


@pytest.mark.process
def test_a_rewriter_works_in_a_spawned_process(tiny: Path) -> None:
    rewriter = Rewriter.from_pretrained(tiny, threads=1, variant="fast", keep=["keep it"])
    utterances = [UTTERANCE, "keep it!"]
    rewrite = functools.partial(rewriter.rewrite, HISTORY, min_confidence=0)
    # Unlike a pool of multiprocessing, this one raises where its process dies, instead of waiting for ever.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = [pool.submit(rewrite, text).result(timeout=120) for text in utterances]
    assert found == [rewrite(text) for text in utterances]
    assert found[1].reason == "keep-list"


def test_a_rewriter_of_bare_stages_cannot_be_pickled() -> None:
    with pytest.raises(InputError, match="expected one of a model folder to pickle, found one of bare stages"):
        pickle.dumps(scripted("x")[0])


def test_threads_are_capped(tiny: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teo.loading.available_cores", lambda: 1)
    opened = open_model(tiny, threads=100_000)
    assert opened.threads == 4
    assert caplog.messages == ["threads: 100000 are more than this machine's cores can use, 4 are used"]
    assert open_model(tiny, threads=4).threads == 4
    assert len(caplog.messages) == 1


def test_a_real_models_name_and_variant(tiny: Path) -> None:
    rewriter = Rewriter.from_pretrained(str(tiny), threads=1)
    assert (rewriter.name, rewriter.variant, rewriter.threshold, rewriter.source_limit) == (
        "exported",
        "direct",
        0.5,
        96,
    )
    rows = [Dialogue(("Ben is here",), f"is he {k}") for k in range(20)]
    changed = sum(record.changed for record in rewriter.rewrite_many(rows, min_confidence=0))
    assert changed > 10, "random weights rewrite nearly everything: the tests above see changes"


def test_a_trained_folder_needs_export_or_torch(tiny: Path) -> None:
    trained = tiny.with_name("tiny")
    with pytest.raises(ModelError, match="export it with `teo export`, or run the trained one with runtime='torch'"):
        Rewriter.from_pretrained(trained)
    by_torch = Rewriter.from_pretrained(trained, runtime="torch", device="cpu", threads=1)
    check(by_torch, ["a\ud800b", *HISTORY], UTTERANCE)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "exported",
            {"device": "cuda"},
            "device: an exported model runs on the CPU as it is, found cuda; leave it out",
        ),
        ("exported", {"dtype": "bfloat16"}, "dtype: an exported model runs on the CPU as it is, found bfloat16"),
        ("tiny", {"runtime": "torch", "device": "gpu"}, "device: expected auto, cpu or cuda, found 'gpu'"),
        ("tiny", {"runtime": "torch", "device": "cuda:99"}, "device: 'cuda:99' was asked for, but torch finds"),
        (
            "tiny",
            {"runtime": "torch", "device": "cpu", "dtype": "bfloat16"},
            "bfloat16: expected a CUDA device, found 'cpu'; leave it out",
        ),
    ],
)
def test_where_a_model_cannot_run(tiny: Path, name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Rewriter.from_pretrained(tiny.with_name(name), **settings)


def test_torch_is_told_where_and_how_to_run(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from teo.runtime.torch_generator import TorchGenerator

    told: list[tuple[str, bool]] = []
    real = TorchGenerator.from_pretrained

    def load(folder: Path, *, device: str, bf16: bool, **limits: Any) -> TorchGenerator:
        told.append((device, bf16))
        return real(folder, device="cpu", **limits)

    monkeypatch.setattr("teo.runtime.torch_generator.choose_device", lambda name: name)
    monkeypatch.setattr(TorchGenerator, "from_pretrained", load)
    Rewriter.from_pretrained(tiny.with_name("tiny"), runtime="torch", device="cuda", dtype="bfloat16")
    assert told == [("cuda", True)]


@pytest.mark.process
def test_loading_needs_no_torch(tiny: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from teo.rewriter import Rewriter;"
        f"r = Rewriter.from_pretrained({str(tiny)!r}); r.rewrite(['Ben is here'], 'is he');"
        "assert not {'torch', 'transformers', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_text_of_a_scripted_source() -> None:
    rewriter, _ = scripted(lambda source: (text_of(source[-2:-1]).upper(),))
    assert rewriter.rewrite(["a turn"], "is he").rewrite == "IS HE"


def test_a_rewriter_shows_its_model() -> None:
    assert repr(scripted("x")[0]) == "Rewriter('scripted', variant='direct', source_limit=400)"


def test_marks_of_the_history_never_reach_the_model_or_a_rewrite() -> None:
    rewriter, generator = scripted("Who is Ada?")
    result = rewriter.rewrite(["Say **who**.", "> [Ada](https://a.b)\n\n---"], "Who is **she**?", min_confidence=0)
    assert text_of(generator.sources[0]) == "Say who.AdaWho is **she**?"
    assert result.rewrite == "Who is Ada?"
    assert rewriter.rewrite(["![](x.png)"], "Who is she?").reason == "no-history"
    assert len(generator.sources) == 1
