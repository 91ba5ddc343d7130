"""Every number of an evaluation, typed: what `metrics.json` holds and what reports are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from teo.errors import TeoError
from teo.evaluation.analysis import ErrorAnalysis, analyse_errors, are_harmless, follows, operations_match
from teo.evaluation.predict import MEANING, PredictedRow, Settings
from teo.metrics import ScoredRow, ScoreReport, StageFlow, final_em_from_rates, score_rows, stage_flow
from teo.metrics.meaning import COMPLETE, INCOMPLETE, MeaningReport
from teo.units import is_exact_match


@dataclass(frozen=True, slots=True)
class Measures:
    """Every number of predicted rows: the field's metrics, complete and incomplete apart, flow and errors."""

    scores: ScoreReport
    """All rows, with intervals."""
    groups: Mapping[str, ScoreReport | None]
    """Complete and incomplete utterances; None if there are none."""
    flow: StageFlow | None
    """None if the variant has no operations."""
    wrong_operations: Mapping[str, int]
    """Of the rows with wrong operations: rewrites that follow them, and operations that do no harm."""
    errors: ErrorAnalysis
    truncated_rows: int
    not_well_formed_rows: int
    chosen: Mapping[str, int]
    """How often each kind of candidate won; empty if a variant has no candidates."""

    meaning: MeaningReport | None = None
    """Verdicts by meaning; None if the rows have no keys."""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as `metrics.json` holds them."""
        numbers = {**self.scores.to_dict(), "groups": {name: _group(part) for name, part in self.groups.items()}}
        numbers["stage_flow"] = None if self.flow is None else {**check_flow(self.flow), **self.wrong_operations}
        numbers["errors"] = self.errors.to_dict()
        numbers |= {"truncated_rows": self.truncated_rows, "not_well_formed_rows": self.not_well_formed_rows}
        if self.meaning is not None:
            numbers["meaning"] = self.meaning.to_dict()
        return {**numbers, "chosen": dict(self.chosen)} if self.chosen else numbers


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measures of one request, and the conditions of the run."""

    measures: Measures
    settings: Settings
    run: Mapping[str, Any]
    """Device, batch size, versions, commit: reported, not compared."""
    pipeline: str
    """What was measured, in a phrase."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `metrics.json` holds."""
        return {**self.measures.to_dict(), "settings": asdict(self.settings), "run": dict(self.run)}


def measure(rows: Sequence[PredictedRow]) -> Measures:
    """Return every number of predicted rows."""
    parts: dict[str, list[PredictedRow]] = {"complete": [], "incomplete": []}
    for row in rows:
        parts["complete" if is_exact_match(row.current, row.reference) else "incomplete"].append(row)
    proposed = all(row.operations is not None for row in rows)
    return Measures(
        scores=score_rows(map(_scored, rows), intervals=True),
        groups={name: score_rows(map(_scored, part)) if part else None for name, part in parts.items()},
        flow=flow_of(rows) if proposed else None,
        wrong_operations=count_wrong_operations(rows) if proposed else {},
        errors=analyse_errors(rows),
        truncated_rows=sum(bool(row.truncated) for row in rows),
        not_well_formed_rows=sum(not row.well_formed for row in rows),
        chosen=Counter(str(row.detail["chosen"]) for row in rows if "chosen" in row.detail),
        meaning=meaning_of(rows),
    )


def meaning_of(rows: Sequence[PredictedRow]) -> MeaningReport | None:
    """Return how many rows got each verdict by meaning; None if no row has one."""
    verdicts = Counter(str(row.detail[MEANING]) for row in rows if MEANING in row.detail)
    known = {verdict: verdicts[verdict] for verdict in (*INCOMPLETE, *COMPLETE)}
    return MeaningReport(known) if verdicts else None


def flow_of(rows: Sequence[PredictedRow]) -> StageFlow:
    """Return operations right or wrong against rewrites right or wrong (figure 2 of the paper)."""
    right = [operations_match(row.operations or "", row.gold_operations) for row in rows]
    return stage_flow(right, [row.is_right for row in rows])


def count_wrong_operations(rows: Sequence[PredictedRow]) -> dict[str, int]:
    """Return what becomes of wrong operations: rewrites that follow them, and those that can make the reference."""
    wrong = [row for row in rows if not operations_match(row.operations or "", row.gold_operations)]
    return {
        "wrong_followed": sum(follows(row.operations or "", row.current, row.prediction) for row in wrong),
        "wrong_harmless": sum(
            are_harmless(row.operations or "", row.current, (row.reference, *row.references)) for row in wrong
        ),
    }


def check_flow(flow: StageFlow) -> dict[str, Any]:
    """Return the flow with its identity to the final EM checked: e (1 - C2E) + (1 - e) E2C, e being stage-1 EM."""
    implied = final_em_from_rates(flow.stage1_em or 0.0, flow.e2c or 0.0, flow.c2e or 0.0)
    if abs(implied - (flow.final_em or 0.0)) > 1e-9:
        raise TeoError(f"stage flow: its rates give EM {implied}, the rows {flow.final_em}; please report this")
    return {**flow.to_dict(), "implied_em": implied}


def _scored(row: PredictedRow) -> ScoredRow:
    return ScoredRow(row.current, row.reference, row.prediction, f"row {row.id}", row.references)


def _group(report: ScoreReport | None) -> dict[str, Any]:
    if report is None:
        return {"n": 0}
    return {name: value for name, value in report.to_dict().items() if name not in ("breakdown", "signatures")}
