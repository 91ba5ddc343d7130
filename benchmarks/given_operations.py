"""What a model makes of the operations it is given, on rows whose gold operations are known: EM, TEO-Gold, E2C, C2E."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.edits import Operation, format_operations
from teo.evaluation.analysis import follows
from teo.metrics.flow import stage_flow
from teo.training.dev import same_operations
from teo.units import is_exact_match

Operations = tuple[Operation, ...]
RewriteGiven = Callable[[Sequence[Row], Sequence[Operations]], list[str]]
"""Rewrites rows given the operations of each."""
Measured = tuple[dict[str, Any], dict[str, str]]
"""Figures in percent, and for each kind of output which rows are right, as a string of 0 and 1."""


def measure_stage1(rows: Sequence[Row], proposed: Sequence[Operations]) -> Measured:
    """Return how many proposed operations are right."""
    right = _are_right(proposed, rows)
    return {"n": len(rows), "stage1_em": percent(right)}, {"operations": _bits(right)}


def measure_direct(rows: Sequence[Row], proposed: Sequence[Operations], rewrite: RewriteGiven) -> Measured:
    """Return EM of a model that reads no operations, on all rows and on those whose proposed operations are wrong."""
    right = _are_exact(rewrite(rows, proposed), rows)
    known = _are_right(proposed, rows)
    wrong = [exact for exact, operations in zip(right, known, strict=True) if not operations]
    figures = {"n": len(rows), "em": percent(right), "em_where_operations_wrong": percent(wrong)}
    return figures, {"predicted": _bits(right)}


def measure_stage2(rows: Sequence[Row], proposed: Sequence[Operations], rewrite: RewriteGiven) -> Measured:
    """Return EM with stage 1's operations and with the gold ones, and what becomes of right and wrong ones."""
    gold = [_gold(row) for row in rows]
    with_gold = rewrite(rows, gold)
    # Equal operations give an equal rewrite: only those that differ are decoded again.
    differ = [k for k, operations in enumerate(gold) if proposed[k] != operations]
    again = rewrite([rows[k] for k in differ], [proposed[k] for k in differ])
    second = dict(zip(differ, again, strict=True))
    with_proposed = [second.get(k, text) for k, text in enumerate(with_gold)]
    right, right_gold, known = _are_exact(with_proposed, rows), _are_exact(with_gold, rows), _are_right(proposed, rows)
    flow, wrong = stage_flow(known, right), [k for k, operations in enumerate(known) if not operations]
    obeyed_wrong = [_follow(proposed[k], rows[k], with_proposed[k]) for k in wrong]
    figures = {
        "n": len(rows),
        "stage1_em": percent(known),
        "em": percent(right),
        "gold_em": percent(right_gold),
        "gold_minus_em": round(percent(right_gold) - percent(right), 2),
        "gold_em_where_operations_wrong": percent([right_gold[k] for k in wrong]),
        "e2c": None if flow.e2c is None else round(100 * flow.e2c, 2),
        "c2e": None if flow.c2e is None else round(100 * flow.c2e, 2),
        "followed_wrong": percent(obeyed_wrong),
        "followed_gold": percent([_follow(*case) for case in zip(gold, rows, with_gold, strict=True)]),
        "flow": [flow.right_right, flow.right_wrong, flow.wrong_right, flow.wrong_wrong],
    }
    return figures, {"predicted": _bits(right), "gold": _bits(right_gold), "operations": _bits(known)}


def percent(values: Sequence[bool]) -> float:
    """Return the share of true values in percent; 0 without any value."""
    return round(100 * sum(values) / len(values), 2) if values else 0.0


def _gold(row: Row) -> Operations:
    return derive_edits(row.dialogue.utterance, row.rewrite).operations


def _are_right(proposed: Sequence[Operations], rows: Sequence[Row]) -> list[bool]:
    return [same_operations(operations, _gold(row)) for operations, row in zip(proposed, rows, strict=True)]


def _are_exact(texts: Sequence[str], rows: Sequence[Row]) -> list[bool]:
    return [is_exact_match(text, row.rewrite) for text, row in zip(texts, rows, strict=True)]


def _follow(operations: Operations, row: Row, text: str) -> bool:
    return follows(format_operations(operations), row.dialogue.utterance, text)


def _bits(values: Sequence[bool]) -> str:
    return "".join("01"[value] for value in values)
