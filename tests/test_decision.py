"""Confidence with and without a calibration, thresholds, and what becomes of a prediction.

What the rules leave unchanged is shown in test_rules.py.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.alignment import derive_edits
from teo.decision import (
    EVIDENCE,
    PREFER,
    THRESHOLD,
    Calibration,
    Decision,
    choose_threshold,
    language_of,
    logistic,
)
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import InputError, ModelError
from teo.layouts import Truncation
from teo.loading import ModelFolder
from teo.pipelines import Prediction

DIALOGUE = Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?")
RIGHT = "When was Frank Herbert born?"
FUNCTIONS = {
    "evidence": ["score", "lowest"],
    "changed": {"en": [1.0, 2.0, 0.0], "any": [0.0, 0.0, 1.0]},
    "unchanged": {"en": [-1.0, 1.0], "any": [3.0, 0.0]},
}


def predicted(text: str, *tokens: float) -> Prediction:
    edits = derive_edits(DIALOGUE.utterance, text)
    return Prediction(text, edits, scores={"rewrite": sum(tokens)}, token_scores=tokens)


def decision(functions: dict[str, object] | None = None) -> Decision:
    extra = {} if functions is None else {"calibration": {"direct": functions}}
    return Decision.of(ModelFolder({}, extra=extra), "direct")


@pytest.mark.parametrize(
    ("functions", "prediction", "language", "changed", "expected", "why"),
    [
        (None, predicted(RIGHT, math.log(0.5)), "en", True, 0.5, "without a calibration the probability of the text"),
        (None, predicted(RIGHT, -400), "en", True, 0.0, "no floor"),
        (None, predicted(RIGHT, 1e-9), "en", True, 1.0, "a sum of logarithms may end above 0"),
        (FUNCTIONS, predicted(RIGHT, -0.5, -0.5), "en", True, logistic(1 - 2), "bias and weights of the language"),
        (FUNCTIONS, predicted(RIGHT, -0.5, -1.5), "zh", True, logistic(-1.5), "a language without its own: any"),
        (FUNCTIONS, predicted("When was he born?", -4.0), "en", False, logistic(-3), "unchanged has its own function"),
        (FUNCTIONS, predicted("When was he born?", -2.0), "zh", False, logistic(3), "for any language too"),
    ],
)
def test_confidence(functions, prediction, language, changed, expected, why) -> None:
    assert decision(functions).confidence(prediction, language, changed=changed) == round(expected, 4), why


def test_the_calibration_of_another_pipeline_is_none() -> None:
    folder = ModelFolder({}, extra={"calibration": {"fused": FUNCTIONS}})
    assert Decision.of(folder, "direct").calibration is None


@given(low=st.floats(-20, 0), more=st.floats(0.001, 20))
def test_confidence_rises_with_the_score_and_has_no_plateau(low: float, more: float) -> None:
    fitted = Calibration(("score",), {"any": (0.3, 0.8)})
    lesser, greater = (fitted.confidence(predicted(RIGHT, x), "en", changed=True) for x in (low, low + more))
    assert 0 < lesser < greater < 1


@pytest.mark.parametrize("value", [-1000.0, -1.0, 0.0, 1.0, 1000.0])
def test_logistic_takes_any_number(value: float) -> None:
    assert logistic(value) == pytest.approx(0.5 * (1 + math.tanh(value / 2)))


@pytest.mark.parametrize(
    ("name", "tokens", "expected", "why"),
    [
        ("score", (-1.0, -2.0), -3.0, "the whole text"),
        ("root_score", (-1.0, -3.0), -2.0, "its root"),
        ("root_score", (1e-9,), 0.0, "a sum of logarithms may end above 0"),
        ("lowest", (-1.0, -2.0), -2.0, "the least likely token"),
        ("per_token", (-1.0, -2.0), -1.5, "the mean"),
        ("first", (-1.0, -2.0), -1.0, "the first token"),
        ("added", (-1.0,), math.log1p(len("Frank Herbert")), "characters that were added"),
        ("lowest", (), 0.0, "no tokens: the score"),
        ("per_token", (), 0.0, "no tokens: no division by zero"),
    ],
)
def test_evidence(name: str, tokens: tuple[float, ...], expected: float, why: str) -> None:
    assert EVIDENCE[name](predicted(RIGHT, *tokens)) == pytest.approx(expected), why


@pytest.mark.parametrize(
    ("stored", "wording"),
    [
        ({"changed": {"any": [1.0]}}, "evidence"),
        ({"evidence": ["luck"], "changed": {"any": [1.0, 1.0]}}, "expected evidence among root_score, .* found luck"),
        ({"evidence": ["score"], "changed": {"any": [1.0]}}, r"changed\.any: expected 2 numbers, found 1"),
        ({"scores": [-1.0], "confidences": [0.5]}, "run `teo calibrate` again"),
        ([1], "run `teo calibrate` again"),
    ],
)
def test_a_broken_calibration_in_a_model_folder_is_named(stored: object, wording: str) -> None:
    with pytest.raises(ModelError, match=rf"teo\.json: extra\.calibration: .*({wording}|calibrate)"):
        decision(stored)  # type: ignore[arg-type]


def test_a_calibration_is_stored_as_it_is() -> None:
    fitted = Calibration(("score", "lowest"), {"en": (1.0, 2.0, 3.0), "any": (0.0, 1.0, 1.0)}, {"any": (0.0, 1.0)})
    assert Calibration.from_dict(fitted.to_dict()) == fitted


@pytest.mark.parametrize(
    ("min_confidence", "prefer", "expected"),
    [(None, None, THRESHOLD), (0.3, None, 0.3), (0, None, 0.0), *((None, name, PREFER[name]) for name in PREFER)],
)
def test_the_threshold_of_a_call(min_confidence, prefer, expected: float) -> None:
    assert choose_threshold(min_confidence, prefer) == expected


@pytest.mark.parametrize(
    ("min_confidence", "prefer", "wording"),
    [
        (0.5, "search", "prefer, min_confidence: expected one of them, found both"),
        (None, "bold", "prefer: expected search, balanced, careful; found 'bold'"),
        (2, None, "min_confidence: expected 0 to 1, found 2"),
    ],
)
def test_a_threshold_that_cannot_be_is_named(min_confidence, prefer, wording: str) -> None:
    with pytest.raises(InputError, match=wording):
        choose_threshold(min_confidence, prefer)


@pytest.mark.parametrize(
    ("text", "threshold", "changed", "reason", "why"),
    [
        (RIGHT, 0.2, True, None, "sure enough"),
        (RIGHT, 0.9, False, "unsure", "below the threshold"),
        ("When was he born?", 0.2, False, "complete", "nothing to change, and sure of it"),
        ("When was he born?", 0.9, False, "unsure", "nothing to change, but not sure of that"),
        ("x" * 500, 0.0, False, "runaway", "longer than all that was said"),
    ],
)
def test_what_becomes_of_a_prediction(text, threshold, changed, reason, why) -> None:
    record = decision().decide(DIALOGUE.utterance, DIALOGUE, Truncation(), predicted(text, math.log(0.5)), threshold)
    assert (record.changed, record.reason) == (changed, reason), why
    assert record.rewrite == (text if changed else DIALOGUE.utterance)
    assert record.confidence == 0.5


def several(threshold: float, count: int = 3):
    found = [
        predicted("When was he born there?", math.log(0.3)),
        predicted(RIGHT, math.log(0.4)),
        predicted("When  was Frank Herbert born??", math.log(0.1)),
        Prediction(DIALOGUE.utterance, EditScript(), "", {"rewrite": math.log(0.2)}),
    ]
    first = decision().decide(DIALOGUE.utterance, DIALOGUE, Truncation(), found[0], threshold)
    return decision().with_alternatives(first, DIALOGUE.utterance, DIALOGUE, found, count, threshold)


def test_alternatives_are_sorted_by_their_own_confidence_with_unchanged_among_them() -> None:
    record = several(0.35)
    assert [(each.rewrite, each.confidence) for each in record.alternatives] == [
        (RIGHT, 0.4),
        ("When was he born there?", 0.3),
        (DIALOGUE.utterance, 0.2),
    ]
    assert (record.rewrite, record.changed, record.reason, record.confidence) == (RIGHT, True, None, 0.4)


def test_no_alternative_reaches_the_threshold() -> None:
    record = several(0.5)
    assert (record.rewrite, record.changed, record.reason) == (DIALOGUE.utterance, False, "unsure")
    assert record.operations == record.alternatives[0].operations, "what would have been the rewrite"


def test_unchanged_is_never_crowded_out() -> None:
    assert [each.rewrite for each in several(0.35, count=2).alternatives] == [RIGHT, DIALOGUE.utterance]


@pytest.mark.parametrize(
    ("history", "utterance", "language", "why"),
    [
        ((), "where is it", "en", "letters"),
        ((), "他是谁", "zh", "characters"),
        (("西安今天天气怎么样",), "ok", "zh", "a Chinese dialogue with a foreign word"),
        (("so",), "🎉 ، ?!", "en", "no script of its own"),
    ],
)
def test_a_dialogues_language(history: tuple[str, ...], utterance: str, language: str, why: str) -> None:
    assert language_of(Dialogue(history, utterance)) == language, why
