"""What went wrong: operations right or wrong, and the wrong rows by what they needed and by what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from teo.alignment import derive_edits
from teo.edits import EditScript, parse_operations
from teo.metrics.base import Example
from teo.metrics.breakdown import KINDS, kind_of
from teo.units import scoring_units

Key = tuple[tuple[str, ...], tuple[str, ...]]
FAULTS = ("over_rewritten", "left_unchanged", "misplaced", "words_missing", "words_added", "mixed")
"""What can be wrong with a rewrite; each wrong row has exactly one."""


def operations_match(operations: str, gold: str) -> bool:
    """Tell whether two strings in the paper's notation say the same, in scoring units; case alone is no operation."""
    return _keys(operations) == _keys(gold)


def rewrite_matches(record: Mapping[str, Any]) -> bool:
    """Tell whether a row's prediction is its reference, as EM counts it."""
    return scoring_units(record["prediction"]) == scoring_units(record["reference"])


def fault_of(example: Example) -> str:
    """Return what is wrong with a wrong rewrite, one of `FAULTS`."""
    current, reference, prediction = example.current, example.reference, example.prediction
    if current == reference:
        return "over_rewritten"
    if prediction == current:
        return "left_unchanged"
    missing, added = Counter(reference) - Counter(prediction), Counter(prediction) - Counter(reference)
    if missing and added:
        return "mixed"
    if missing or added:
        return "words_missing" if missing else "words_added"
    return "misplaced"


def analyse_errors(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how the wrong rows divide: by what they needed, by what is wrong, by the kind of operation at fault."""
    needed, faults, kinds = Counter[str](), Counter[str](), Counter[str]()
    for record in records:
        example = _example(record)
        if example.prediction == example.reference:
            continue
        needed[kind_of(example)] += 1
        faults[fault_of(example)] += 1
        kinds.update(_kinds_at_fault(example))
    wrong = needed.total()
    return {
        "rows": wrong,
        "needed": {kind: needed[kind] for kind in KINDS},
        "faults": {fault: faults[fault] for fault in FAULTS},
        "operations": {kind: kinds[kind] for kind in ("insertion", "replacement")},
        "insertion_share": kinds["insertion"] / kinds.total() if kinds else None,
    }


def _kinds_at_fault(example: Example) -> set[str]:
    """Return whether insertions, replacements or both differ, in text or in place, from what was needed."""
    current = " ".join(example.current)
    wanted = _positioned(derive_edits(current, " ".join(example.reference)))
    found = _positioned(derive_edits(current, " ".join(example.prediction)))
    return {kind for kind, *_ in wanted ^ found}


def _positioned(script: EditScript) -> set[tuple[str, int, str, str]]:
    return {
        ("insertion" if edit.op == "insert" else "replacement", edit.start, edit.old.strip(), edit.new.strip())
        for edit in script
    }


def _keys(operations: str) -> list[Key]:
    read = (
        (tuple(scoring_units(one.old)), tuple(scoring_units(one.new)))
        for one in parse_operations(operations).operations
    )
    return [key for key in read if key[0] != key[1]]


def _example(record: Mapping[str, Any]) -> Example:
    names = ("current", "reference", "prediction")
    current, reference, prediction = (tuple(scoring_units(record[name])) for name in names)
    return Example(current, reference, prediction)
