"""What went wrong: operations right or wrong, and the wrong rows by what they needed and by what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from teo.alignment import derive_edits
from teo.edits import EditScript, parse_operations
from teo.evaluation.predict import PredictedRow
from teo.metrics.base import Example
from teo.metrics.breakdown import KINDS, kind_of
from teo.units import scoring_units

Key = tuple[tuple[str, ...], tuple[str, ...]]
FAULTS = ("over_rewritten", "left_unchanged", "misplaced", "words_missing", "words_added", "mixed")
"""What can be wrong with a rewrite; each wrong row has exactly one."""


def operations_match(operations: str, gold: str) -> bool:
    """Tell whether two strings in the paper's notation say the same, in scoring units; case alone is no operation."""
    return _keys(operations) == _keys(gold)


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


@dataclass(frozen=True, slots=True)
class ErrorAnalysis:
    """How the wrong rows divide."""

    rows: int
    needed: Mapping[str, int]
    """By what the utterance needed."""
    faults: Mapping[str, int]
    """By what is wrong with the rewrite."""
    operations: Mapping[str, int]
    """By the kind of operation at fault; a row may have both."""

    @property
    def insertion_share(self) -> float | None:
        """The share of insertions among the operations at fault; None without any."""
        total = sum(self.operations.values())
        return self.operations["insertion"] / total if total else None

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the share, ready for JSON."""
        return {**asdict(self), "insertion_share": self.insertion_share}


def analyse_errors(rows: Sequence[PredictedRow]) -> ErrorAnalysis:
    """Return how the wrong rows divide: by what they needed, by what is wrong, by the kind of operation at fault."""
    needed, faults, kinds = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        if row.is_right:
            continue
        texts = (tuple(scoring_units(text)) for text in (row.current, row.reference, row.prediction))
        example = Example(*texts)
        needed[kind_of(example)] += 1
        faults[fault_of(example)] += 1
        kinds.update(_kinds_at_fault(example))
    return ErrorAnalysis(
        needed.total(),
        {kind: needed[kind] for kind in KINDS},
        {fault: faults[fault] for fault in FAULTS},
        {kind: kinds[kind] for kind in ("insertion", "replacement")},
    )


def _kinds_at_fault(example: Example) -> set[str]:
    """Return whether insertions, replacements or both differ, in text or in place, from what was needed."""
    current = " ".join(example.current)
    wanted = _positioned(derive_edits(current, " ".join(example.reference)))
    made = _positioned(derive_edits(current, " ".join(example.prediction)))
    return {kind for kind, *_ in wanted ^ made}


def _positioned(script: EditScript) -> set[tuple[str, int, str, str]]:
    return {
        ("insertion" if edit.op == "insert" else "replacement", edit.start, edit.old.strip(), edit.new.strip())
        for edit in script
    }


def _keys(operations: str) -> list[Key]:
    keys = (
        (tuple(scoring_units(operation.old)), tuple(scoring_units(operation.new)))
        for operation in parse_operations(operations).operations
    )
    return [key for key in keys if key[0] != key[1]]
