"""Algorithm 1: every branch with a scripted generator, then the frequencies that its probabilities promise."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.training.perturbation import LONGEST_SPAN, draw_span, noise_source, perturb_operations
from teo.units import unit_texts

BATMAN = Dialogue(
    ("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted"
)
OPERATIONS = (Operation("he", "Ben Affleck"), Operation("", "as Batman"))


class Scripted(random.Random):
    """Gives the uniform draws of a list in order; everything else is a real generator's."""

    def __init__(self, draws: Sequence[float]) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)

    def getrandbits(self, k: int) -> int:  # keeps choices and ranges off the scripted draws
        return super().getrandbits(k)


@pytest.mark.parametrize(
    ("draws", "kept", "reason"),
    [
        ([0.9, 0.1, 0.9, 0.1, 0.9], [True, True], "lines 11 and 12: nothing is perturbed"),
        (
            [0.6, 0.51, 0.9, 0.1, 0.9],
            [None, True],
            "line 9: at prob_1 = prob_p and prob_2 > prob_r the first is dropped",
        ),
        ([0.6, 0.5, 0.9, 0.1, 0.9], [False, True], "lines 7 and 8: at both limits the first gets other text"),
        ([0.1, 0.1, 0.1, 0.9, 0.9], [False, None], "each operation has draws of its own"),
        ([0.1, 0.9, 0.1, 0.9, 0.9], [None, None], "all dropped"),
    ],
)
def test_each_operation_is_kept_replaced_or_dropped(draws: list[float], kept: list[bool | None], reason: str) -> None:
    perturbed = perturb_operations(OPERATIONS, BATMAN, Scripted(draws))
    expected = [operation for operation, fate in zip(OPERATIONS, kept, strict=True) if fate is not None]
    assert len(perturbed) == len(expected), reason
    fates = [fate for fate in kept if fate is not None]
    for got, was, fate in zip(perturbed, expected, fates, strict=True):
        assert got.old == was.old, "what is replaced never changes, only what comes"
        assert (got.new == was.new) is fate, reason
        assert got.new in " ".join(BATMAN.history) or got == was


def test_a_random_operation_is_added_at_prob_3() -> None:
    added = perturb_operations((), BATMAN, Scripted([0.6]))
    assert len(added) == 1, "line 16: at the limit it is added"
    assert added[0].new in " ".join(BATMAN.history), "line 18: new text comes from the history"
    assert not perturb_operations((), BATMAN, Scripted([0.61])), "above the limit it is not"


def test_what_is_added_is_an_insertion_or_a_replacement_of_a_span_of_the_utterance() -> None:
    kinds: Counter[bool] = Counter()
    for seed in range(400):
        for operation in perturb_operations((), BATMAN, random.Random(seed), prob_p=1.0):
            kinds[operation.is_insertion] += 1
            assert operation.old in BATMAN.utterance
    assert kinds[True] == pytest.approx(200, abs=45), "line 20: both candidates are equally likely"
    assert kinds[False] == pytest.approx(200, abs=45)


def test_insertions_only_adds_no_replacement() -> None:
    for seed in range(100):
        perturbed = perturb_operations((), BATMAN, random.Random(seed), prob_p=1.0, insertions_only=True)
        assert all(operation.is_insertion for operation in perturbed)


def test_an_added_operation_may_stand_anywhere() -> None:
    places: Counter[int] = Counter()
    for seed in range(600):
        rng = Scripted([0.9, 0.9, 0.9, 0.9, 0.1])
        rng.seed(seed)
        perturbed = perturb_operations(OPERATIONS, BATMAN, rng)
        places[next(k for k, operation in enumerate(perturbed) if operation not in OPERATIONS)] += 1
    assert set(places) == {0, 1, 2}, "a fixed place would tell the model which operation is noise"
    assert min(places.values()) > 140


@pytest.mark.parametrize(("prob_p", "prob_r"), [(0.6, 0.5), (0.2, 0.8), (1.0, 0.0), (0.0, 0.5)])
def test_the_drawn_frequencies_are_the_probabilities(prob_p: float, prob_r: float) -> None:
    trials = 4000
    counts: Counter[str] = Counter()
    gold = (Operation("he", "Zorro"),)  # not in the history: a replaced text is never the same by chance
    for seed in range(trials):
        perturbed = perturb_operations(gold, BATMAN, noise_source(seed, 0, "row"), prob_p=prob_p, prob_r=prob_r)
        mine = [operation for operation in perturbed if operation.old == "he"]
        counts["kept"] += gold[0] in perturbed
        counts["length"] += len(perturbed)
        counts["other text"] += any(operation.new != "Zorro" for operation in mine)
    assert counts["kept"] / trials == pytest.approx(1 - prob_p, abs=0.03)
    # Kept or replaced, plus the one that is added with prob_p.
    expected = (1 - prob_p) + prob_p * prob_r + prob_p
    assert counts["length"] / trials == pytest.approx(expected, abs=0.04)
    assert counts["other text"] / trials >= prob_p * prob_r - 0.03


@pytest.mark.parametrize(
    ("dialogue", "reason"),
    [
        (Dialogue((), "why not"), "no history: spans come from the utterance"),
        (Dialogue(("  ", ""), "why not"), "a history of white space is none"),
    ],
)
def test_without_history_spans_come_from_the_utterance(dialogue: Dialogue, reason: str) -> None:
    for seed in range(50):
        for operation in perturb_operations((), dialogue, random.Random(seed), prob_p=1.0):
            assert operation.new in dialogue.utterance, reason


def test_without_any_text_nothing_is_drawn_in() -> None:
    empty = Dialogue((), "  ")
    assert perturb_operations((), empty, random.Random(0), prob_p=1.0) == ()
    assert perturb_operations(OPERATIONS, empty, random.Random(0), prob_p=1.0, prob_r=1.0) == ()


@pytest.mark.slow
def test_spans_are_whole_units_of_one_turn_of_uniform_length() -> None:
    turn = "zero one two three four five six seven eight nine " * 20
    rng = random.Random(1)
    lengths = Counter(len(unit_texts(draw_span([turn], rng))) for _ in range(6000))
    assert set(lengths) == set(range(1, LONGEST_SPAN + 1))
    for length in range(1, LONGEST_SPAN + 1):
        assert lengths[length] / 6000 == pytest.approx(1 / LONGEST_SPAN, abs=0.03)


def test_turns_are_drawn_in_proportion_to_their_units() -> None:
    rng = random.Random(2)
    drawn = Counter("z" in draw_span(["a b c", "z"], rng) for _ in range(4000))
    assert drawn[True] / 4000 == pytest.approx(0.25, abs=0.03)


def test_the_same_seed_epoch_and_row_give_the_same_noise_and_others_give_other() -> None:
    def noise(seed: int, epoch: int, row: str) -> tuple[Operation, ...]:
        return perturb_operations(OPERATIONS, BATMAN, noise_source(seed, epoch, row))

    assert noise(1, 2, "a") == noise(1, 2, "a")
    many = {noise(seed, epoch, row) for seed in range(3) for epoch in range(3) for row in ("a", "b")}
    assert len(many) > 10, "every seed, epoch and row has its own"


@given(
    st.lists(st.text(max_size=12), max_size=3),
    st.text(max_size=12),
    st.lists(st.tuples(st.text(max_size=5), st.text(min_size=1, max_size=5)), max_size=3),
    st.integers(),
)
def test_any_dialogue_and_operations_can_be_perturbed(
    history: list[str], utterance: str, operations: list[tuple[str, str]], seed: int
) -> None:
    given_operations = tuple(Operation(old, new) for old, new in operations)
    perturbed = perturb_operations(given_operations, Dialogue(tuple(history), utterance), random.Random(seed))
    assert len(perturbed) <= len(given_operations) + 1
    assert all(operation.old or operation.new for operation in perturbed)
