"""Which operations are right, and what is wrong with wrong rows."""

import pytest

from teo.evaluation.analysis import FAULTS, analyse_errors, are_harmless, fault_of, follows, operations_match
from teo.evaluation.measures import check_flow, flow_of, measure
from teo.evaluation.predict import PredictedRow
from teo.metrics import StageFlow
from teo.metrics.base import ScoredExample


@pytest.mark.parametrize(
    ("operations", "gold", "right", "reason"),
    [
        ("", "", True, "nothing to do"),
        ("[I] a", "", False, "one too many"),
        ("[I] as batman", "[I] as Batman", True, "case does not count"),
        ("[I]  as  Batman", "[I] as Batman", True, "white space does not count"),
        ("[D] he [R] Ben [I] x", "[I] x [D] he [R] Ben", False, "order counts"),
        ("[D] what [R] What", "", True, "a change of case is no operation"),
        ("[D] he [R]", "[D] he [R] Ben", False, "a deletion is not a replacement"),
        ("junk [I] a", "[I] a", True, "only what can be read counts"),
    ],
)
def test_operations_match(operations: str, gold: str, right: bool, reason: str) -> None:
    assert operations_match(operations, gold) is right, reason


@pytest.mark.parametrize(
    ("current", "reference", "prediction", "fault"),
    [
        ("a b", "a b", "a b c", "over_rewritten"),
        ("a b", "a b c", "a b", "left_unchanged"),
        ("a b", "a b c", "c a b", "misplaced"),
        ("a b", "a b c d", "a b c", "words_missing"),
        ("a b", "a b c", "a b c d", "words_added"),
        ("a b", "a b c", "a b d", "mixed"),
    ],
)
def test_fault_of(current: str, reference: str, prediction: str, fault: str) -> None:
    assert fault in FAULTS
    assert fault_of(ScoredExample(tuple(current.split()), tuple(reference.split()), tuple(prediction.split()))) == fault


def record(current: str, reference: str, prediction: str, operations: str | None = "", gold: str = "") -> PredictedRow:
    return PredictedRow(current, (), current, reference, prediction, operations, gold)


RECORDS = [
    record("he ran", "Ben ran", "Ben ran", "[D] he [R] Ben", "[D] he [R] Ben"),
    record("he ran", "Ben ran home", "Ben ran", "[D] he [R] Ben [I] home", "[D] he [R] Ben [I] home"),
    record("why", "why not", "why not", "[I] so", "[I] not"),
    record("why", "why not", "not why", "[I] not", "[I] not"),
    record("yes", "yes", "yes", "", ""),
    record("yes", "yes", "no", "[D] yes [R] no", ""),
]


def test_errors_by_need_fault_and_operation() -> None:
    errors = analyse_errors(RECORDS)
    assert errors.rows == 3
    assert errors.needed == {"complete": 1, "insertion_only": 1, "replacement_only": 0, "both": 1}
    assert {name: count for name, count in errors.faults.items() if count} == {
        "over_rewritten": 1,
        "misplaced": 1,
        "words_missing": 1,
    }
    assert errors.operations == {"insertion": 2, "replacement": 1}
    assert errors.complete_operations == {"insertion": 0, "replacement": 1}, "made where none was needed"
    assert errors.insertion_share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("operations", "current", "prediction", "followed", "reason"),
    [
        ("[I] not", "why", "not why", True, "wherever they stand"),
        ("[D] he [R] Ben [I] home", "he ran", "Ben ran home", True, "several"),
        ("[D] he [R] Ben [I] home", "he ran", "Ben ran", False, "one left out"),
        ("", "he ran", "he ran", True, "nothing to do, nothing done"),
        ("[I] so", "why", "why not", False, "other words"),
    ],
)
def test_follows(operations: str, current: str, prediction: str, followed: bool, reason: str) -> None:
    assert follows(operations, current, prediction) is followed, reason


@pytest.mark.parametrize(
    ("operations", "reference", "harmless", "reason"),
    [
        ("[D] this [R] the piano", "the sound of the piano", True, "the derived operation, at its place"),
        ("[D] of this [R] of the piano", "the sound of the piano", True, "a wider span does the same"),
        ("[D] this [R] piano", "the sound of the piano", False, "a word is missing"),
    ],
)
def test_are_harmless(operations: str, reference: str, harmless: bool, reason: str) -> None:
    assert are_harmless(operations, "the sound of this", (reference,)) is harmless, reason


def test_what_becomes_of_wrong_operations_is_counted() -> None:
    assert measure(RECORDS).wrong_operations == {"wrong_followed": 1, "wrong_harmless": 0}


def test_no_errors() -> None:
    assert analyse_errors(RECORDS[:1]).insertion_share is None


def test_flow_and_its_identity() -> None:
    flow = flow_of(RECORDS)
    assert flow == StageFlow(right_right=2, right_wrong=2, wrong_right=1, wrong_wrong=1)
    checked = check_flow(flow)
    assert checked["implied_em"] == pytest.approx(checked["final_em"]) == pytest.approx(0.5)
    assert measure(RECORDS).scores["em"] == pytest.approx(checked["final_em"])


def test_measure_keeps_complete_and_incomplete_apart() -> None:
    metrics = measure(RECORDS).to_dict()
    assert (metrics["groups"]["complete"]["n"], metrics["groups"]["incomplete"]["n"]) == (2, 4)
    assert (metrics["groups"]["complete"]["em"], metrics["groups"]["incomplete"]["em"]) == (0.5, 0.5)
    assert metrics["intervals"]["em"]


def test_a_variant_without_operations_has_no_flow() -> None:
    assert measure([record("a", "a", "a", None)]).flow is None
