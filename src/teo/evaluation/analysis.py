"""What went wrong: operations right or wrong, and the wrong rows by what they needed and by what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from teo.alignment import derive_edits
from teo.edits import EditScript, format_operations, parse_operations
from teo.evaluation.predict import PredictedRow
from teo.metrics.base import ScoredExample
from teo.metrics.breakdown import KINDS, kind_of
from teo.placement import placements
from teo.units import is_exact_match, scoring_units

Key = tuple[tuple[str, ...], tuple[str, ...]]
FAULTS = ("over_rewritten", "left_unchanged", "misplaced", "words_missing", "words_added", "mixed")
"""What can be wrong with a rewrite; each wrong row has exactly one."""

OPERATION_KINDS = ("insertion", "replacement")


def operations_match(operations: str, gold: str) -> bool:
    """Tell whether two strings in the paper's notation say the same, in scoring units; case alone is no operation."""
    return _keys(operations) == _keys(gold)


def follows(operations: str, current: str, prediction: str) -> bool:
    """Tell whether a rewrite has exactly the operations that were proposed, wherever they are."""
    made = derive_edits(" ".join(scoring_units(current)), " ".join(scoring_units(prediction))).operations
    return sorted(_keys(operations)) == sorted(_keys(format_operations(made)))


def are_harmless(operations: str, current: str, references: Sequence[str]) -> bool:
    """Tell whether operations make an accepted rewrite at some of their positions."""
    scripts = placements(parse_operations(operations).operations, current)
    return any(is_exact_match(script.apply(current), text) for script in scripts for text in references)


def fault_of(example: ScoredExample) -> str:
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
    complete_operations: Mapping[str, int]
    """The same of complete utterances alone: the operations that should not have been made."""

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
    needed, faults, kinds, of_complete = (Counter[str]() for _ in range(4))
    for row in rows:
        if row.is_right:
            continue
        texts = (row.current, row.reference, row.prediction)
        current, reference, prediction = (tuple(scoring_units(text)) for text in texts)
        example = ScoredExample(current, reference, prediction)
        needed[kind_of(example)] += 1
        faults[fault_of(example)] += 1
        at_fault = _kinds_at_fault(example)
        kinds.update(at_fault)
        of_complete.update(at_fault if current == reference else ())
    return ErrorAnalysis(
        needed.total(),
        {kind: needed[kind] for kind in KINDS},
        {fault: faults[fault] for fault in FAULTS},
        {kind: kinds[kind] for kind in OPERATION_KINDS},
        {kind: of_complete[kind] for kind in OPERATION_KINDS},
    )


def _kinds_at_fault(example: ScoredExample) -> set[str]:
    """Return whether insertions, replacements or both differ, in text or in position, from what was needed."""
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
