"""What each role reads and writes, and that noise depends on seed, epoch and row alone."""

from __future__ import annotations

import pytest

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.errors import DataError
from teo.layouts import Marker, read_operation_pieces, split_at_separator
from teo.training.config import PerturbationSettings
from teo.training.examples import PROMPTS, Example, ExampleMaker, replacements_made

ROW = Row(
    "batman",
    Dialogue(("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted"),
    "It is Ben Affleck who acted as Batman",
)
SCRIPT = derive_edits(ROW.dialogue.utterance, ROW.rewrite)
COMPLETE = Row("hello", Dialogue(("Hi.",), "How are you"), "How are you")
NOTHING = derive_edits("", "")
READ = (
    Marker.CLS,
    *(piece for turn in (*ROW.dialogue.history, ROW.dialogue.utterance) for piece in (turn, Marker.SEP)),
)
OPERATIONS = (Marker.DELETE, "he", Marker.REPLACE, "Ben Affleck", Marker.INSERT, "as Batman")


def only(maker: ExampleMaker, epoch: int, copy: int = 0) -> Example:
    """Return the one example of the row in an epoch."""
    (example,) = maker.training_examples(ROW, SCRIPT, epoch, copy)
    return example


@pytest.mark.parametrize(
    ("role", "source", "target", "reason"),
    [
        ("stage1", READ, OPERATIONS, "reads the dialogue, writes operations"),
        ("stage2", (*READ, *OPERATIONS, Marker.SEP), (ROW.rewrite,), "reads the operations too (section 3.4)"),
        ("direct", READ, (ROW.rewrite,), "the paper's baseline"),
        ("fused", READ, (*OPERATIONS, Marker.SEP, ROW.rewrite), "operations, then the rewrite"),
        (
            "rfis",
            (*READ[:5], "It is Ben Affleck who acted", Marker.SEP, Marker.INSERT, "as Batman", Marker.SEP),
            (ROW.rewrite,),
            "replacements made, insertions to read",
        ),
    ],
)
def test_what_a_role_reads_and_writes(role: str, source: tuple[str, ...], target: tuple[str, ...], reason: str) -> None:
    example = ExampleMaker(role).example(ROW, SCRIPT)
    assert example.source == source, reason
    assert example.target == target, reason
    assert example.prompt == (), "weights of its own need no prompt"
    assert ExampleMaker(role, shared=True).example(ROW, SCRIPT).prompt == PROMPTS[role]


def test_fast_writes_operations_that_carry_their_place() -> None:
    example = ExampleMaker("fast").example(ROW, SCRIPT)
    assert Marker.PLACE in example.target
    assert example.source == READ


def test_a_complete_utterance_has_no_operations() -> None:
    assert ExampleMaker("stage1").example(COMPLETE, NOTHING).target == ()
    assert ExampleMaker("fused").example(COMPLETE, NOTHING).target == (Marker.SEP, "How are you")
    assert ExampleMaker("stage2").example(COMPLETE, NOTHING).source[-2:] == (Marker.SEP, Marker.SEP)


def test_insertions_first_is_the_order_of_equation_2() -> None:
    example = ExampleMaker("stage1", order="insertions-first").example(ROW, SCRIPT)
    assert example.target[:2] == (Marker.INSERT, "as Batman")


def test_stage_2_reads_given_operations_in_place_of_the_gold_ones() -> None:
    example = ExampleMaker("stage2").example(ROW, SCRIPT, [Operation("", "Batman")])
    assert example.source[-3:] == (Marker.INSERT, "Batman", Marker.SEP)


def test_noise_is_redrawn_every_epoch_and_is_the_same_for_the_same_epoch() -> None:
    maker = ExampleMaker("stage2", seed=3)
    epochs = [only(maker, epoch) for epoch in range(12)]
    assert epochs == [only(maker, epoch) for epoch in range(12)]
    assert len({example.source for example in epochs}) > 6
    assert all(example.target == (ROW.rewrite,) for example in epochs), "the target is always the right rewrite"
    assert len({only(maker, 0, copy).source for copy in range(8)}) > 3, "copies differ"


@pytest.mark.parametrize("role", ["stage1", "direct", "fast"])
def test_roles_that_read_no_operations_have_no_noise(role: str) -> None:
    maker = ExampleMaker(role)
    assert {only(maker, epoch) for epoch in range(5)} == {maker.example(ROW, SCRIPT)}


def test_gold_operations_have_no_noise() -> None:
    maker = ExampleMaker("stage2", perturbation=PerturbationSettings(operations="gold"))
    assert only(maker, 4) == maker.example(ROW, SCRIPT)


def test_predicted_operations_are_read_as_they_are() -> None:
    settings = PerturbationSettings(operations="predicted")
    predicted = {"batman": (Operation("", "as Batman"),)}
    maker = ExampleMaker("stage2", perturbation=settings, predicted=predicted)
    assert only(maker, 0).source[-3:] == (Marker.INSERT, "as Batman", Marker.SEP)
    with pytest.raises(
        DataError, match="predicted operations: none for row hello; predict them for every training row"
    ):
        maker.training_examples(COMPLETE, NOTHING, 0)


def test_rfis_noise_is_of_insertions_only() -> None:
    maker = ExampleMaker("rfis", perturbation=PerturbationSettings(prob_p=1.0))
    for epoch in range(60):
        example = only(maker, epoch)
        assert example.dialogue.utterance == "It is Ben Affleck who acted", "gold replacements stay made"
        assert example.operations is not None
        assert all(operation.is_insertion for operation in read_operation_pieces(example.operations).operations)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 200), (0.5, 100)])
def test_perturbed_operations_of_the_fused_form_carry_no_loss(share: float, expected: int) -> None:
    maker = ExampleMaker("fused", shared=True, perturbation=PerturbationSettings(fused_share=share))
    clean = maker.example(ROW, SCRIPT)
    assert split_at_separator(clean.target) == (OPERATIONS, (ROW.rewrite,))
    noisy: list[Example] = []
    for epoch in range(200):
        first, *more = maker.training_examples(ROW, SCRIPT, epoch)
        assert first == clean, "the gold operations are learned in every epoch"
        noisy += more
    assert len(noisy) == pytest.approx(expected, abs=25 if 0 < share < 1 else 0)
    for example in noisy:
        assert example.prompt[0] is Marker.WRITE_OPERATIONS
        assert example.prompt[-1] is Marker.SEP
        assert example.target == (ROW.rewrite,), "the loss is on the rewrite alone"


def test_replacements_made_leaves_the_insertions() -> None:
    dialogue, left = replacements_made(ROW.dialogue, SCRIPT)
    assert dialogue.utterance == "It is Ben Affleck who acted"
    assert left == (Operation("", "as Batman"),)


def test_the_oldest_turns_are_dropped_whole_and_never_the_utterance_or_the_operations() -> None:
    def encode(pieces: tuple[str, ...]) -> list[int]:
        return [0 for piece in pieces for _ in (piece if isinstance(piece, Marker) else piece.split())][: 10**6]

    def words(pieces: tuple[str, ...]) -> list[int]:
        return [0 for piece in pieces for _ in ([piece] if isinstance(piece, Marker) else piece.split())]

    def measure(text: str) -> int:
        return len(text.split()) + 1

    assert encode(()) == []
    example = ExampleMaker("stage2").example(ROW, SCRIPT)
    whole = len(words(example.source))
    fitted, truncation = example.fit(words, measure, whole)
    assert (fitted, bool(truncation)) == (example, False), "what fits is not touched"
    fitted, truncation = example.fit(words, measure, whole - 1)
    assert fitted.dialogue.history == ROW.dialogue.history[1:]
    assert (truncation.turns, truncation.characters) == (1, len(ROW.dialogue.history[0]))
    fitted, truncation = example.fit(words, measure, 1)
    assert fitted.dialogue == Dialogue((), ROW.dialogue.utterance)
    assert fitted.operations == OPERATIONS
    assert truncation.turns == 2
