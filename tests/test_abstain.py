"""When an utterance is kept: languages, thresholds, and confidence with and without a calibration.

What the rules keep is shown in test_keeping.py.
"""

from __future__ import annotations

import math

import pytest

from teo.abstain import Abstention, Calibration, Thresholds, language_of
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import ModelError
from teo.loading import ModelFolder
from teo.pipelines import Prediction

CURVE = {"scores": [-4.0, 0.0], "confidences": [0.0, 1.0], "rest_weight": 0.0, "thresholds": {"zh": 0.5, "en": 0.9}}


def predicted(whole: float, first: float | None = None) -> Prediction:
    return Prediction("x", EditScript(), scores={"joint": whole}, first_token_score=first)


@pytest.mark.parametrize(
    ("stored", "prediction", "confidence", "why"),
    [
        ({}, predicted(math.log(0.5)), 0.5, "without a calibration the probability of the whole text"),
        ({}, predicted(math.log(0.5), first=-0.1), 0.5, "the whole text, whatever its first token"),
        ({}, predicted(-400), 0.0, "no floor"),
        ({}, predicted(1e-9), 1.0, "a sum of logarithms may end above 0"),
        ({"fused": CURVE}, predicted(-51.0, first=-1.0), 0.75, "with rest_weight 0 only the first token counts"),
        ({"fused": {**CURVE, "rest_weight": 0.5}}, predicted(-3.0, first=-1.0), 0.5, "the rest in part"),
        ({"fused": CURVE}, predicted(-1.0), 0.75, "no deciding first token: all of it"),
    ],
)
def test_confidence(stored: dict[str, object], prediction: Prediction, confidence: float, why: str) -> None:
    abstention = Abstention.of(ModelFolder({}, extra={"calibration": stored}), "fused")
    assert abstention.confidence(prediction) == confidence, why


@pytest.mark.parametrize(
    ("threshold", "stored", "expected", "why"),
    [
        (0.0, {}, 0.5, "no calibration and no threshold: the package's own"),
        (0.3, {}, 0.3, "no calibration: the model's threshold"),
        (0.3, {"fused": {"scores": [-1], "confidences": [1]}}, 0.3, "a curve without threshold: the model's"),
        (0.3, {"fused": CURVE}, 0.9, "the language's own"),
        (0.0, {"direct": CURVE}, 0.5, "the calibration of another pipeline is none"),
    ],
)
def test_thresholds_of_a_model(threshold: float, stored: dict[str, object], expected: float, why: str) -> None:
    folder = ModelFolder({}, threshold=threshold, extra={"calibration": stored})
    assert Abstention.of(folder, "fused").threshold(Dialogue((), "is he")) == expected, why


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


def test_thresholds_by_language() -> None:
    both = Thresholds(0.4, {"en": 0.1, "zh": 0.4})
    assert (both.of_language("en"), both.of_language("zh")) == (0.1, 0.4)
    assert Thresholds.from_dict(both.to_dict()) == both
    assert Thresholds(0.4, {"en": 0.1}).of_language("zh") == 0.4, "a language without its own has the common one"
    assert Thresholds.from_dict({"threshold": 0.3}) == Thresholds(0.3), "as files had it before"
    assert Thresholds.from_dict({}, 0.2) == Thresholds(0.2)


@pytest.mark.parametrize("stored", [{"thresholds": [1]}, {"thresholds": {"en": "much"}}, {"threshold": None}])
def test_broken_thresholds_in_a_model_folder_are_named(stored) -> None:
    with pytest.raises(ModelError, match=r"teo\.json: extra\.calibration: not a threshold for each language"):
        Thresholds.from_dict(stored)


def test_a_broken_curve_in_a_model_folder_is_named() -> None:
    with pytest.raises(ModelError, match=r"teo\.json: extra\.calibration: not a calibration curve"):
        Calibration.from_dict({"scores": [1]})
