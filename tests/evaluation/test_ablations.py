"""Each ablation's logic, with generators that say what the test scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripted import ScriptedGenerator, says, stages_of
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.errors import InputError, ModelError
from teo.evaluation.ablations import (
    VARIANTS,
    Hypothesis,
    list_hypotheses,
    place_randomly,
    predict_rows,
    score_hypotheses,
)
from teo.layouts import Marker, Pieces, dialogue_source, stage2_source
from teo.pipelines import Prediction, find_variant, require_roles
from teo.placement import apply_replacements
from teo.stages import Proposal, Stages

P, I, D, R, SEP = Marker.PLACE, Marker.INSERT, Marker.DELETE, Marker.REPLACE, Marker.SEP  # noqa: E741
BATMAN = Row(
    "b1",
    Dialogue(("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted."),
    "It is Ben Affleck who acted as Batman.",
)
OPERATIONS: Pieces = (D, "he", R, "Ben Affleck", I, "as Batman")
SHOWN = "[D] he [R] Ben Affleck [I] as Batman"


def run(name: str, stages: Stages, *rows: Row, seed: int = 0) -> list[Prediction]:
    return predict_rows(VARIANTS[name], stages, rows or (BATMAN,), seed)


def test_gold_asks_only_stage_2() -> None:
    second = says("x")
    (prediction,) = run("gold", stages_of(stage2=second))
    assert prediction.operations == SHOWN
    assert second.asked[0][0] == stage2_source(BATMAN.dialogue, OPERATIONS)


def test_copy_returns_the_utterance_and_asks_no_model() -> None:
    (prediction,) = run("copy", stages_of())
    assert prediction.rewrite == BATMAN.dialogue.utterance
    assert not prediction.edits.operations
    assert prediction.operations is None


def test_stage1_replaces_and_inserts_at_random_places() -> None:
    stages = stages_of(stage1=says(*OPERATIONS))
    found = {run("stage1", stages, seed=seed)[0].rewrite for seed in range(60)}
    assert BATMAN.rewrite in found
    assert len(found) == 7  # the utterance has six units, all seven boundaries get drawn
    assert all("Ben Affleck" in text and "as Batman" in text for text in found)
    assert run("stage1", stages, seed=3) == run("stage1", stages, seed=3)


def test_stage1s_places_do_not_depend_on_the_other_rows() -> None:
    stages = stages_of(stage1=says(*OPERATIONS))
    other = Row("b2", BATMAN.dialogue, BATMAN.rewrite)
    assert run("stage1", stages, other, BATMAN)[1] == run("stage1", stages, BATMAN)[0]


def test_rfis_replaces_first_and_leaves_insertions_to_its_stage_2() -> None:
    first, second = says(*OPERATIONS), says("x")
    run("rfis", stages_of(stage1=first, rfis=second, stage2=says("wrong one")))
    replaced = Dialogue(BATMAN.dialogue.history, "It is Ben Affleck who acted.")
    assert second.asked == [(stage2_source(replaced, (I, "as Batman")), ())]


def test_rfis_without_its_role_is_an_error_that_names_it() -> None:
    with pytest.raises(ModelError, match="expected a stage with the role rfis, found stage1, stage2, fused"):
        run("rfis", stages_of(stage1=says(*OPERATIONS), stage2=says("x"), fused=says("x")))
    with pytest.raises(ModelError, match="the variant 'rfis' needs the role rfis, found stage1, stage2"):
        require_roles(VARIANTS["rfis"], VARIANTS, ("stage1", "stage2"), "m")


def value_of(table: dict[str, float], otherwise: float = -50.0) -> Callable[[Pieces, Pieces], float]:
    return lambda _source, target: table.get(target[-1] if target else "", otherwise)


@pytest.mark.parametrize(
    ("texts", "operations", "chosen", "rewrite", "reason"),
    [
        (
            {BATMAN.rewrite: -2.0, "free": -3.0},
            {},
            "placement",
            BATMAN.rewrite,
            "the best placement beats free writing",
        ),
        ({BATMAN.rewrite: -3.0, "free": -2.0}, {}, "free", "free", "free writing where it is more probable"),
        (
            {BATMAN.rewrite: -3.0, "free": -2.0, "It is he who acted.": -1.0},
            {"": -0.5, "as Batman": -1.0},
            "unchanged",
            "It is he who acted.",
            "no change where that is likelier in both stages",
        ),
        (
            {BATMAN.rewrite: -2.0, "free": -3.0, "It is he who acted.": -1.0},
            {"": -9.0, "as Batman": -1.0},
            "placement",
            BATMAN.rewrite,
            "stage 1's doubt about no operations counts",
        ),
    ],
)
def test_rerank_takes_the_most_probable(
    texts: dict[str, float], operations: dict[str, float], chosen: str, rewrite: str, reason: str
) -> None:
    first = says(*OPERATIONS, value=value_of(operations or {"as Batman": -1.0}))
    second = says("free", value=value_of(texts))
    (prediction,) = run("rerank", stages_of(stage1=first, stage2=second))
    assert (prediction.rewrite, prediction.detail["chosen"]) == (rewrite, chosen), reason
    assert prediction.operations == SHOWN
    assert prediction.detail["candidates"] == len(second.scored)


def test_rerank_scores_each_set_of_operations_once_and_unchanged_without_any() -> None:
    first, second = says(*OPERATIONS), says("free")
    run("rerank", stages_of(stage1=first, stage2=second))
    source = dialogue_source(BATMAN.dialogue)
    assert first.scored == [(source, OPERATIONS), (source, ())]
    unchanged = [source for source, target in second.scored if target == (BATMAN.dialogue.utterance,)]
    assert unchanged == [stage2_source(BATMAN.dialogue, ())]


def test_rerank_of_one_decoder_scores_operations_and_rewrite_together() -> None:
    model = ScriptedGenerator(lambda _source, prompt: ("free",) if SEP in prompt else (*OPERATIONS, SEP, "free"))
    model.value = value_of({BATMAN.rewrite: -1.0})
    (prediction,) = run("rerank", stages_of(fused=model))
    assert (prediction.rewrite, prediction.scores) == (BATMAN.rewrite, {"operations": 0.0, "rewrite": -1.0})
    assert (dialogue_source(BATMAN.dialogue), (*OPERATIONS, SEP, BATMAN.rewrite)) in model.scored


def test_hypotheses_hold_no_text_twice() -> None:
    proposal = Proposal((Operation("", "x"),))
    found = list_hypotheses(0, "a b", proposal, "a b x")
    assert [(one.kind, one.text) for one in found] == [
        ("free", "a b x"),
        ("placement", "x a b"),
        ("placement", "a x b"),
        ("unchanged", "a b"),
    ]
    assert list_hypotheses(0, "a", Proposal(()), "a") == [Hypothesis(0, "free", (), "a")]


def test_score_hypotheses_keeps_rows_apart() -> None:
    other = Dialogue(("x",), "y")
    stages = stages_of(stage1=says(value=lambda source, _target: -float(len(source))), stage2=says())
    hypotheses = [Hypothesis(1, "free", (), "y"), Hypothesis(0, "free", (), "z")]
    scored = score_hypotheses(stages, [BATMAN.dialogue, other], hypotheses)
    assert [candidate.operations for candidate in scored] == [-5.0, -7.0]


@pytest.mark.parametrize(
    ("operations", "text", "reason"),
    [
        ([Operation("a", "x"), Operation("a", "y")], "x b y", "one after the other"),
        ([Operation("b", "x"), Operation("a", "y")], "a x y", "after the one before it if it can"),
        ([Operation("a b", "x"), Operation("b", "y")], "x a", "an overlap is left out"),
        ([Operation("z", "x"), Operation("", "y")], "a b a", "what does not occur, and insertions, are left out"),
    ],
)
def test_apply_replacements(operations: list[Operation], text: str, reason: str) -> None:
    assert apply_replacements(operations, "a b a").apply("a b a") == text, reason


def test_random_places_lie_outside_what_is_replaced() -> None:
    operations = [Operation("a b", "x"), Operation("", "y")]
    found = {place_randomly(operations, "a b", str(seed)).apply("a b") for seed in range(20)}
    assert found == {"y x", "x y"}


@pytest.mark.parametrize(("name", "near"), [("rarank", "rerank"), ("golden", "gold"), ("TEO", "teo")])
def test_an_unknown_variant_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError) as caught:
        find_variant(name, VARIANTS)
    assert str(caught.value) == (
        "variant: expected one of teo, direct, gold, stage1, rfis, fast, fused, rerank, copy; "
        f"found '{name}'; did you mean '{near}'?"
    )


def test_a_model_without_the_role_says_what_it_can_run() -> None:
    with pytest.raises(ModelError) as caught:
        require_roles(VARIANTS["fast"], VARIANTS, ("stage1", "stage2"), "m")
    assert str(caught.value) == (
        "m: the variant 'fast' needs the role fast, found stage1, stage2; this model can run teo, gold, stage1, rerank"
    )
    require_roles(VARIANTS["rerank"], VARIANTS, ("stage1", "stage2"), "m")
