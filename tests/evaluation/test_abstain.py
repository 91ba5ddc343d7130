"""A variant with its model's rules and thresholds: what stays, what passes, and that it is what a rewriter does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.evaluation.abstain import abstaining, calibration_of
from teo.evaluation.evaluate import Request, evaluate
from teo.folder import ModelFolder
from teo.pipelines import Prediction, Variant
from teo.rewriter import Rewriter
from teo.runtime.locate import has_default

CURVE = {"scores": [-4.0, 0.0], "confidences": [0.0, 1.0], "rest_weight": 0.0, "thresholds": {"zh": 0.5, "en": 0.9}}


def rows(*utterances: str) -> list[Row]:
    return [Row(str(k), Dialogue(("before",), one), one) for k, one in enumerate(utterances)]


def scripted(first: float, whole: float) -> Variant:
    def run(cast: object, asked: Sequence[Row], seed: int) -> list[Prediction]:
        return [Prediction(row.rewrite + "!", "[I] !", {"joint": whole}, first=first) for row in asked]

    return Variant("fused", run, (), "")


@pytest.mark.parametrize(
    ("first", "utterance", "expected", "reason"),
    [
        (-0.2, "what about it", "what about it!", "sure enough for English"),
        (-1.0, "what about it", "what about it", "0.75 is below 0.9"),
        (-1.0, "这个呢", "这个呢!", "0.75 is above Chinese's 0.5"),
        (-3.0, "这个呢", "这个呢", "0.25 is below 0.5"),
        (0.0, "hello", "hello", "a rule keeps a greeting"),
    ],
)
def test_what_is_kept(first: float, utterance: str, expected: str, reason: str) -> None:
    folder = ModelFolder({}, extra={"calibration": {"fused": CURVE}})
    variant = abstaining(scripted(first, first - 50), folder)  # with rest_weight 0 the words count nothing
    (answer,) = variant.run(None, rows(utterance), 0)  # type: ignore[arg-type]
    assert answer.rewrite == expected, reason
    assert variant.name == "fused+threshold"


def test_equal_rows_each_get_their_answer() -> None:
    variant = abstaining(scripted(0.0, 0.0), ModelFolder({}, extra={"calibration": {"fused": CURVE}}))
    answers = variant.run(None, rows("same", "hi", "same"), 0)  # type: ignore[arg-type]
    assert [one.rewrite for one in answers] == ["same!", "hi", "same!"]


def test_a_model_without_calibration_has_its_one_threshold() -> None:
    curve, thresholds = calibration_of(ModelFolder({}, threshold=0.3), "fused")
    assert thresholds.of_language("en") == 0.3
    assert curve.confidence(0.0) == 1.0


@pytest.mark.skipif(not has_default(), reason="this installation has no embedded model")
def test_it_says_what_a_rewriter_says(tmp_path: Path) -> None:
    dialogues = [
        Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?"),
        Dialogue(("你喜欢周杰伦吗", "喜欢"), "他哪年出生的"),
        Dialogue(("Do you like tea?", "Yes."), "Thank you!"),
        Dialogue(("西安天气怎么样", "今天多云"), "明天呢"),
    ]
    lines = [Row(str(k), one, one.utterance).to_dict() for k, one in enumerate(dialogues)]
    from teo.data.writing import write_jsonl

    write_jsonl(tmp_path / "test.jsonl", lines)
    rewriter = Rewriter.from_pretrained()
    request = Request("jsonl", tmp_path / "test.jsonl", tmp_path / "out", variant=rewriter.variant, abstain=True)
    metrics = evaluate(request)
    assert metrics["settings"]["variant"] == f"{rewriter.variant}+threshold"
    assert metrics["settings"]["precision"] == "int8"
    import json

    written = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert [one["prediction"] for one in written] == [
        rewriter.rewrite(d.history, d.utterance).rewrite for d in dialogues
    ]
