"""Stages and pipelines, with generators that say what the test scripted."""

from __future__ import annotations

import pickle

from scripted import ScriptedGenerator, says, stages_of
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.layouts import Marker, Pieces, Truncation, dialogue_source, stage2_source
from teo.pipelines import PIPELINES, Prediction, predict
from teo.stages import Stage, Stages, fit_dialogue
from teo.units import unit_texts

P, I, D, R, SEP = Marker.PLACE, Marker.INSERT, Marker.DELETE, Marker.REPLACE, Marker.SEP  # noqa: E741
DIALOGUE = Dialogue(
    ("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted."
)
REWRITE = "It is Ben Affleck who acted as Batman."
OPERATIONS: Pieces = (D, "he", R, "Ben Affleck", I, "as Batman")
SHOWN = "[D] he [R] Ben Affleck [I] as Batman"


def run(name: str, stages: Stages, dialogue: Dialogue = DIALOGUE) -> list[Prediction]:
    return predict(PIPELINES[name], stages, [dialogue])


def words(text: str) -> int:
    return len(unit_texts(text))


def test_pipelines_can_be_sent_to_another_process() -> None:
    for pipeline in PIPELINES.values():
        assert pickle.loads(pickle.dumps(pipeline)) == pipeline


def test_a_prediction_keeps_the_edits_of_the_utterance() -> None:
    for name, text in (("direct", REWRITE), ("fused", (*OPERATIONS, SEP, REWRITE)), ("teo", REWRITE)):
        said = says(*([text] if isinstance(text, str) else text))
        (prediction,) = run(name, stages_of(direct=said, fused=said, stage1=says(*OPERATIONS), stage2=said))
        assert prediction.edits.apply(DIALOGUE.utterance) == REWRITE, name
    (silent,) = run("direct", stages_of(direct=says("")))
    assert silent.edits == EditScript(), "no text is no edit"


def test_direct_writes_the_rewrite_at_once() -> None:
    model = says("a rewrite")
    (prediction,) = run("direct", stages_of(direct=model))
    assert (prediction.rewrite, prediction.operations, prediction.scores) == ("a rewrite", None, {"rewrite": -0.5})
    assert model.asked == [(dialogue_source(DIALOGUE), ())]


def test_teo_gives_stage_1s_operations_to_stage_2() -> None:
    first, second = says(*OPERATIONS), says(REWRITE)
    (prediction,) = run("teo", stages_of(stage1=first, stage2=second))
    assert (prediction.rewrite, prediction.operations) == (REWRITE, SHOWN)
    assert prediction.scores == {"operations": -0.5, "rewrite": -0.5}
    assert second.asked == [(stage2_source(DIALOGUE, OPERATIONS), ())]


def test_teo_drops_and_flags_what_is_no_operation() -> None:
    first, second = says("junk", I, "as Batman", D, "he"), says("x")
    (prediction,) = run("teo", stages_of(stage1=first, stage2=second))
    assert (prediction.operations, prediction.well_formed) == ("[I] as Batman", False)
    assert second.asked[0][0] == stage2_source(DIALOGUE, (I, "as Batman"))


def test_insertions_first_order_reaches_stage_2() -> None:
    first, second = says(*OPERATIONS), says("x")
    stages = Stages({"stage1": Stage(first), "stage2": Stage(second)}, order="insertions-first")
    (prediction,) = run("teo", stages)
    assert prediction.operations == "[I] as Batman [D] he [R] Ben Affleck"
    assert second.asked[0][0] == stage2_source(DIALOGUE, (I, "as Batman", D, "he", R, "Ben Affleck"))


def test_fast_executes_operations_that_carry_their_place() -> None:
    model = says(D, "he", R, "Ben Affleck", P, "acted", I, "as Batman")
    (prediction,) = run("fast", stages_of(fast=model))
    assert (prediction.rewrite, prediction.operations, prediction.well_formed) == (REWRITE, SHOWN, True)
    assert prediction.detail == {"placed": "[D] he [R] Ben Affleck [P] acted [I] as Batman"}


def test_fast_leaves_the_utterance_where_nothing_can_be_placed() -> None:
    (prediction,) = run("fast", stages_of(fast=says(P, "nowhere", I, "x")))
    assert (prediction.rewrite, prediction.operations, prediction.well_formed) == (DIALOGUE.utterance, "", False)


def test_fused_reads_operations_and_rewrite_of_one_decoder() -> None:
    model = says(*OPERATIONS, SEP, REWRITE)
    (prediction,) = run("fused", Stages({"fused": Stage(model, (Marker.WRITE_OPERATIONS,))}))
    assert (prediction.rewrite, prediction.operations, prediction.well_formed) == (REWRITE, SHOWN, True)
    assert model.asked == [(dialogue_source(DIALOGUE), (Marker.WRITE_OPERATIONS,))]


def test_fused_without_a_rewrite_changes_nothing() -> None:
    (prediction,) = run("fused", stages_of(fused=says(*OPERATIONS)))
    assert (prediction.rewrite, prediction.well_formed) == (DIALOGUE.utterance, False)


def test_a_fused_model_serves_as_both_stages() -> None:
    model = ScriptedGenerator(
        lambda _source, prompt: ("a rewrite",) if SEP in prompt else (*OPERATIONS, SEP, "another")
    )
    stages = Stages({"fused": Stage(model, (Marker.WRITE_OPERATIONS,))})
    (prediction,) = run("teo", stages)
    assert (prediction.rewrite, prediction.operations) == ("a rewrite", SHOWN)
    assert model.asked[1] == (dialogue_source(DIALOGUE), (Marker.WRITE_OPERATIONS, *OPERATIONS, SEP))


def test_the_oldest_turns_go_first_and_are_counted() -> None:
    dialogue = Dialogue(("one two three", "four five"), "six")
    # [CLS] four five [SEP] six [SEP] and a place kept for the last [SEP]
    model = says("x", source_limit=7, tokens=words)
    (prediction,) = run("direct", stages_of(direct=model), dialogue)
    assert model.asked[0][0] == dialogue_source(Dialogue(("four five",), "six"))
    assert prediction.truncation == Truncation(1, len("one two three"))


def test_operations_are_never_cut() -> None:
    dialogue = Dialogue(("one two three", "four five"), "six")
    fitted, _ = fit_dialogue(says(source_limit=9, tokens=words), dialogue, (I, "seven"))
    assert fitted == Dialogue(("four five",), "six")
    fitted, truncation = fit_dialogue(says(source_limit=3, tokens=words), dialogue, (I, "seven"))
    assert (fitted.history, fitted.utterance, truncation.turns) == ((), "six", 2)


def test_the_larger_truncation_of_the_stages_is_reported() -> None:
    dialogue = Dialogue(("one two three", "four five"), "six")
    stages = stages_of(stage1=says(I, "x", tokens=words), stage2=says("y", source_limit=9, tokens=words))
    assert run("teo", stages, dialogue)[0].truncation == Truncation(1, len("one two three"))
