"""Development EM: what each second stage is given, and when operations count as right."""

from __future__ import annotations

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import Operation, Order
from teo.training.dev import Decoding, DevSet, Operations, is_accepted, same_operations

ROW = Row("a", Dialogue(("I like Batman.",), "he is he"), "he is Batman in Paris")
GOLD = (Operation("he", "Batman in Paris"),)
PROPOSED = (Operation("he", "Batman"), Operation("", "in Rome"))


@pytest.mark.parametrize(
    ("role", "proposed", "utterance", "operations", "reason"),
    [
        ("stage2", PROPOSED, "he is he", PROPOSED, "stage 2 reads what stage 1 proposes"),
        ("stage2", None, "he is he", GOLD, "without a stage 1 it reads the gold operations"),
        ("rfis", PROPOSED, "Batman is he", (PROPOSED[1],), "proposed replacements are made where they first fit"),
        ("rfis", None, "he is Batman in Paris", (), "gold replacements are made in their place"),
    ],
)
def test_what_a_second_stage_is_given(
    role: str, proposed: Operations | None, utterance: str, operations: Operations, reason: str
) -> None:
    dev = DevSet([ROW], [role], Decoding("cpu", source_limit=64, target_limit=32, batch_size=1))
    assert dev._given(role, 0, proposed) == (Dialogue(ROW.dialogue.history, utterance), operations), reason


@pytest.mark.parametrize(
    ("rewrite", "right"),
    [("He is Batman in Paris", True), ("he is in Paris", True), ("he is Batman", False)],
    ids=["reference", "other accepted rewrite", "no accepted rewrite"],
)
def test_any_accepted_rewrite_counts(rewrite: str, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row("a", ROW.dialogue, ROW.rewrite, ("He is in Paris",))
    assert is_accepted(rewrite, row) is right
    dev = DevSet([row], ["direct"], Decoding("cpu", source_limit=64, target_limit=32, batch_size=1))
    monkeypatch.setattr(Decoding, "stages", lambda *_, **__: None)
    monkeypatch.setattr(DevSet, "_rewrite", lambda *_: [rewrite])
    assert dev.evaluate(None, None)["em"] == float(right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proposed", "gold", "order", "right", "reason"),
    [
        ([Operation("He", "BATMAN")], [Operation("he", "Batman")], "position", True, "case does not count"),
        ([Operation("", "a")], [Operation("", "b")], "position", False, "another text"),
        ([], [], "position", True, "nothing to do"),
        (
            [Operation("", "a"), Operation("x", "y")],
            [Operation("x", "y"), Operation("", "a")],
            "position",
            False,
            "order",
        ),
        (
            [Operation("", "a"), Operation("x", "y")],
            [Operation("x", "y"), Operation("", "a")],
            "insertions-first",
            True,
            "the order of equation 2",
        ),
    ],
)
def test_operations_are_right_in_their_order(
    proposed: list[Operation], gold: list[Operation], order: Order, right: bool, reason: str
) -> None:
    assert same_operations(proposed, gold, order) is right, reason
