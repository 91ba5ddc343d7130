"""Each variant's logic, with generators that say what the test scripted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import Operation, Order
from teo.errors import InputError, ModelError
from teo.evaluation.rerank import Hypothesis, list_hypotheses, score_hypotheses
from teo.evaluation.stage_one import apply_replacements, place_randomly
from teo.layouts import Marker, Pieces, Truncation, stage1_source, stage2_source
from teo.pipelines import VARIANTS, Prediction, find_variant, require_roles
from teo.runtime.generator import Generated
from teo.stages import Player, Proposal, fit_dialogue
from teo.units import unit_texts

P, I, D, R, SEP = Marker.PLACE, Marker.INSERT, Marker.DELETE, Marker.REPLACE, Marker.SEP  # noqa: E741
BATMAN = Row(
    "b1",
    Dialogue(("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted."),
    "It is Ben Affleck who acted as Batman.",
)
OPERATIONS: Pieces = (D, "he", R, "Ben Affleck", I, "as Batman")
SHOWN = "[D] he [R] Ben Affleck [I] as Batman"


@dataclass
class Scripted:
    """A generator that answers from a function and remembers what it was asked."""

    answer: Callable[[Pieces, Pieces], Pieces]
    value: Callable[[Pieces, Pieces], float] = lambda _source, _target: -1.0
    source_limit: int = 1000
    asked: list[tuple[Pieces, Pieces]] = field(default_factory=list)
    scored: list[tuple[Pieces, Pieces]] = field(default_factory=list)

    def measure(self, text: str) -> int:
        return len(unit_texts(text)) + 1

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        pairs = list(zip(sources, prompts or [()] * len(sources), strict=True))
        self.asked += pairs
        return [Generated(self.answer(*pair), (-0.25, -0.25)) for pair in pairs]

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        pairs = list(zip(sources, targets, strict=True))
        self.scored += pairs
        return [self.value(*pair) for pair in pairs]


@dataclass
class Players:
    """A cast of scripted generators."""

    players: dict[str, Player]
    order: Order = "position"

    def has(self, role: str) -> bool:
        return role in self.players

    def player(self, role: str) -> Player:
        return self.players[role]


def says(*pieces: str, **settings: object) -> Scripted:
    return Scripted(lambda _source, _prompt: pieces, **settings)  # type: ignore[arg-type]


def cast_of(**generators: Scripted) -> Players:
    return Players({role: Player(generator) for role, generator in generators.items()})


def run(name: str, cast: Players, *rows: Row, seed: int = 0) -> list[Prediction]:
    return find_variant(name).run(cast, rows or (BATMAN,), seed)


def test_direct_writes_the_rewrite_at_once() -> None:
    model = says("a rewrite")
    (one,) = run("direct", cast_of(direct=model))
    assert (one.rewrite, one.operations, one.scores) == ("a rewrite", None, {"rewrite": -0.5})
    assert model.asked == [(stage1_source(BATMAN.dialogue), ())]


def test_teo_gives_stage_1s_operations_to_stage_2() -> None:
    first, second = says(*OPERATIONS), says(BATMAN.rewrite)
    (one,) = run("teo", cast_of(stage1=first, stage2=second))
    assert (one.rewrite, one.operations) == (BATMAN.rewrite, SHOWN)
    assert one.scores == {"operations": -0.5, "rewrite": -0.5}
    assert second.asked == [(stage2_source(BATMAN.dialogue, OPERATIONS), ())]


def test_teo_drops_and_flags_what_is_no_operation() -> None:
    first, second = says("junk", I, "as Batman", D, "he"), says("x")
    (one,) = run("teo", cast_of(stage1=first, stage2=second))
    assert (one.operations, one.well_formed) == ("[I] as Batman", False)
    assert second.asked[0][0] == stage2_source(BATMAN.dialogue, (I, "as Batman"))


def test_insertions_first_order_reaches_stage_2() -> None:
    first, second = says(*OPERATIONS), says("x")
    cast = Players({"stage1": Player(first), "stage2": Player(second)}, order="insertions-first")
    (one,) = run("teo", cast)
    assert one.operations == "[I] as Batman [D] he [R] Ben Affleck"
    assert second.asked[0][0] == stage2_source(BATMAN.dialogue, (I, "as Batman", D, "he", R, "Ben Affleck"))


def test_gold_asks_only_stage_2() -> None:
    second = says("x")
    (one,) = run("gold", cast_of(stage2=second))
    assert one.operations == SHOWN
    assert second.asked[0][0] == stage2_source(BATMAN.dialogue, OPERATIONS)


def test_stage1_replaces_and_inserts_at_random_places() -> None:
    cast = cast_of(stage1=says(*OPERATIONS))
    found = {run("stage1", cast, seed=seed)[0].rewrite for seed in range(60)}
    assert BATMAN.rewrite in found
    assert len(found) == 7  # the utterance has six units, all seven boundaries get drawn
    assert all("Ben Affleck" in text and "as Batman" in text for text in found)
    assert run("stage1", cast, seed=3) == run("stage1", cast, seed=3)


def test_stage1s_places_do_not_depend_on_the_other_rows() -> None:
    cast = cast_of(stage1=says(*OPERATIONS))
    other = Row("b2", BATMAN.dialogue, BATMAN.rewrite)
    assert run("stage1", cast, other, BATMAN)[1] == run("stage1", cast, BATMAN)[0]


def test_rfis_replaces_first_and_leaves_insertions_to_its_stage_2() -> None:
    first, second = says(*OPERATIONS), says("x")
    run("rfis", cast_of(stage1=first, rfis=second, stage2=says("wrong one")))
    replaced = Dialogue(BATMAN.dialogue.history, "It is Ben Affleck who acted.")
    assert second.asked == [(stage2_source(replaced, (I, "as Batman")), ())]


def test_rfis_uses_the_plain_stage_2_where_it_has_no_own() -> None:
    second = says("x")
    (one,) = run("rfis", cast_of(stage1=says(*OPERATIONS), stage2=second))
    assert (one.rewrite, one.operations) == ("x", SHOWN)


def test_fast_executes_operations_that_carry_their_place() -> None:
    model = says(D, "he", R, "Ben Affleck", P, "acted", I, "as Batman")
    (one,) = run("fast", cast_of(fast=model))
    assert (one.rewrite, one.operations, one.well_formed) == (BATMAN.rewrite, SHOWN, True)
    assert one.detail == {"placed": "[D] he [R] Ben Affleck [P] acted [I] as Batman"}


def test_fast_leaves_the_utterance_where_nothing_can_be_placed() -> None:
    (one,) = run("fast", cast_of(fast=says(P, "nowhere", I, "x")))
    assert (one.rewrite, one.operations, one.well_formed) == (BATMAN.dialogue.utterance, "", False)


def test_fused_reads_operations_and_rewrite_of_one_decoder() -> None:
    model = says(*OPERATIONS, SEP, BATMAN.rewrite)
    (one,) = run("fused", Players({"fused": Player(model, (Marker.WRITE_OPERATIONS,))}))
    assert (one.rewrite, one.operations, one.well_formed) == (BATMAN.rewrite, SHOWN, True)
    assert model.asked == [(stage1_source(BATMAN.dialogue), (Marker.WRITE_OPERATIONS,))]


def test_fused_without_a_rewrite_changes_nothing() -> None:
    (one,) = run("fused", cast_of(fused=says(*OPERATIONS)))
    assert (one.rewrite, one.well_formed) == (BATMAN.dialogue.utterance, False)


def test_a_fused_model_plays_both_stages() -> None:
    model = Scripted(lambda _source, prompt: ("a rewrite",) if SEP in prompt else (*OPERATIONS, SEP, "another"))
    cast = Players({"fused": Player(model, (Marker.WRITE_OPERATIONS,))})
    (one,) = run("teo", cast)
    assert (one.rewrite, one.operations) == ("a rewrite", SHOWN)
    assert model.asked[1] == (stage1_source(BATMAN.dialogue), (Marker.WRITE_OPERATIONS, *OPERATIONS, SEP))


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
    (one,) = run("rerank", cast_of(stage1=first, stage2=second))
    assert (one.rewrite, one.detail["chosen"]) == (rewrite, chosen), reason
    assert one.operations == SHOWN
    assert one.detail["candidates"] == len(second.scored)


def test_rerank_scores_each_set_of_operations_once_and_unchanged_without_any() -> None:
    first, second = says(*OPERATIONS), says("free")
    run("rerank", cast_of(stage1=first, stage2=second))
    source = stage1_source(BATMAN.dialogue)
    assert first.scored == [(source, OPERATIONS), (source, ())]
    unchanged = [source for source, target in second.scored if target == (BATMAN.dialogue.utterance,)]
    assert unchanged == [stage2_source(BATMAN.dialogue, ())]


def test_rerank_of_one_decoder_scores_operations_and_rewrite_together() -> None:
    model = Scripted(lambda _source, prompt: ("free",) if SEP in prompt else (*OPERATIONS, SEP, "free"))
    model.value = value_of({BATMAN.rewrite: -1.0})
    (one,) = run("rerank", cast_of(fused=model))
    assert (one.rewrite, one.scores) == (BATMAN.rewrite, {"operations": 0.0, "rewrite": -1.0})
    assert (stage1_source(BATMAN.dialogue), (*OPERATIONS, SEP, BATMAN.rewrite)) in model.scored


def test_hypotheses_hold_no_text_twice() -> None:
    proposal = Proposal((Operation("", "x"),), -1.0, Truncation(), True)
    found = list_hypotheses(0, "a b", proposal, "a b x")
    assert [(one.kind, one.text) for one in found] == [
        ("free", "a b x"),
        ("placement", "x a b"),
        ("placement", "a x b"),
        ("unchanged", "a b"),
    ]
    assert list_hypotheses(0, "a", Proposal((), -1.0, Truncation(), True), "a") == [Hypothesis(0, "free", (), "a")]


def test_score_hypotheses_keeps_rows_apart() -> None:
    other = Dialogue(("x",), "y")
    cast = cast_of(stage1=says(value=lambda source, _target: -float(len(source))), stage2=says())
    hypotheses = [Hypothesis(1, "free", (), "y"), Hypothesis(0, "free", (), "z")]
    scored = score_hypotheses(cast, [BATMAN.dialogue, other], hypotheses)
    assert [one.operations for one in scored] == [-5.0, -7.0]


def test_the_oldest_turns_go_first_and_are_counted() -> None:
    row = Row("r", Dialogue(("one two three", "four five"), "six"), "six")
    # [CLS] four five [SEP] six [SEP] and a place kept for the last [SEP]
    model = says("x", source_limit=7)
    (one,) = run("direct", cast_of(direct=model), row)
    assert model.asked[0][0] == stage1_source(Dialogue(("four five",), "six"))
    assert one.truncation == Truncation(1, len("one two three"))


def test_operations_are_never_cut() -> None:
    dialogue = Dialogue(("one two three", "four five"), "six")
    fitted, _ = fit_dialogue(says(source_limit=9), dialogue, (I, "seven"))
    assert fitted == Dialogue(("four five",), "six")
    fitted, truncation = fit_dialogue(says(source_limit=3), dialogue, (I, "seven"))
    assert (fitted.history, fitted.utterance, truncation.turns) == ((), "six", 2)


def test_the_larger_truncation_of_the_stages_is_reported() -> None:
    row = Row("r", Dialogue(("one two three", "four five"), "six"), "six")
    cast = cast_of(stage1=says(I, "x"), stage2=says("y", source_limit=9))
    assert run("teo", cast, row)[0].truncation == Truncation(1, len("one two three"))


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
        find_variant(name)
    assert str(caught.value) == (
        "variant: expected one of teo, direct, gold, stage1, rfis, fast, fused, rerank; "
        f"found '{name}'; did you mean '{near}'?"
    )


def test_a_model_without_the_role_says_what_it_can_play() -> None:
    cast = cast_of(stage1=says(), stage2=says())
    with pytest.raises(ModelError) as caught:
        require_roles(VARIANTS["fast"], cast, ("stage1", "stage2"), "m")
    assert str(caught.value) == (
        "m: the variant 'fast' needs the role fast, found stage1, stage2; "
        "this model can play teo, gold, stage1, rfis, rerank"
    )
    require_roles(VARIANTS["rerank"], cast, ("stage1", "stage2"), "m")
