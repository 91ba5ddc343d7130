"""score_rows and compare_rows: all metrics of the field for one system, or for two side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from teo.metrics.base import FloatArray, Score, Signature, Suite
from teo.metrics.bleu import Bleu
from teo.metrics.breakdown import GROUPS, Breakdown, count_groups
from teo.metrics.exact_match import ExactMatch
from teo.metrics.restoration import Restoration
from teo.metrics.rouge import Rouge
from teo.metrics.rows import ScoredRow, as_examples, as_rows, require_same_rows
from teo.metrics.significance import (
    Difference,
    bootstrap_intervals,
    bootstrap_signature,
    compare_paired,
    paired_signature,
)

AnyRow = ScoredRow | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """All numbers of one system. `report["em"]` is a number; `to_dict()` is the JSON of `teo score`."""

    n: int
    scores: tuple[Score, ...]
    breakdown: tuple[Score, ...]
    groups: Mapping[str, int]
    """How many rows each group of the breakdown has."""

    def __getitem__(self, name: str) -> float | None:
        return {score.name: score.value for score in (*self.scores, *self.breakdown)}[name]

    @property
    def intervals(self) -> dict[str, list[float]]:
        """The 95% intervals by name, those of the breakdown too; empty if none were requested."""
        listed = (*self.scores, *self.breakdown)
        return {score.name: [score.interval.low, score.interval.high] for score in listed if score.interval}

    @property
    def signatures(self) -> dict[str, Signature]:
        """The signature of each score by name, and that of the intervals if there are any."""
        signatures = {score.name: score.signature for score in (*self.scores, *self.breakdown)}
        return signatures | ({"intervals": bootstrap_signature()} if self.intervals else {})

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's keys at the top, then the breakdown, the intervals if any, and the signatures."""
        broken: dict[str, Any] = {name: {"n": count, "em": self[f"em_{name}"]} for name, count in self.groups.items()}
        broken |= {name: self[name] for name in ("over_rewrite_rate", "under_rewrite_rate")}
        result: dict[str, Any] = {"n": self.n, **{score.name: score.value for score in self.scores}}
        result["breakdown"] = broken
        if self.intervals:
            result["intervals"] = self.intervals
        result["signatures"] = {name: str(signature) for name, signature in self.signatures.items()}
        return result


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same rows: both reports, and second minus first for each number."""

    first: ScoreReport
    second: ScoreReport
    differences: Mapping[str, Difference | None]
    signature: Signature

    def to_dict(self) -> dict[str, Any]:
        """Return both reports and the differences by name; null if a number is undefined."""
        return {
            "n": self.first.n,
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "differences": {name: _difference_dict(difference) for name, difference in self.differences.items()},
            "signature": str(self.signature),
        }


def score_rows(rows: Iterable[AnyRow], pretokenized: bool = False, *, intervals: bool = False) -> ScoreReport:
    """Return every number for rows {"current", "reference", "prediction"}; 95% intervals on request."""
    suite = make_suite()
    statistics = suite.collect(as_examples(as_rows(rows), pretokenized=pretokenized))
    return _report(suite, statistics, _units_name(pretokenized), intervals)


def compare_rows(
    first: Iterable[AnyRow], second: Iterable[AnyRow], pretokenized: bool = False, *, intervals: bool = False
) -> Comparison:
    """Return two systems' numbers and their paired differences; both must hold the same rows in the same order."""
    first_rows, second_rows = as_rows(first, "first"), as_rows(second, "second")
    require_same_rows(first_rows, second_rows)
    suite, units = make_suite(), _units_name(pretokenized)
    first_statistics, second_statistics = (
        suite.collect(as_examples(rows, pretokenized=pretokenized)) for rows in (first_rows, second_rows)
    )
    differences = compare_paired(first_statistics, second_statistics, suite.aggregate)
    return Comparison(
        first=_report(suite, first_statistics, units, intervals),
        second=_report(suite, second_statistics, units, intervals),
        differences=dict(zip(suite.names, differences, strict=True)),
        signature=paired_signature(),
    )


def make_suite() -> Suite:
    """Return all metrics of the field, the breakdown last."""
    return Suite([ExactMatch(), Bleu(), Rouge(), Restoration("run"), Restoration("pan"), Breakdown()])


def _report(suite: Suite, statistics: FloatArray, units: str, intervals: bool) -> ScoreReport:
    sums = statistics.sum(axis=0)
    scores = suite.score(sums, units)
    if intervals:
        pairs = zip(scores, bootstrap_intervals(statistics, suite.aggregate), strict=True)
        scores = tuple(dataclasses.replace(score, interval=interval) for score, interval in pairs)
    counts = count_groups(suite.split(sums)[-1]).tolist()
    main = len(suite.names) - len(Breakdown.names)
    return ScoreReport(
        n=len(statistics),
        scores=scores[:main],
        breakdown=scores[main:],
        groups={group: round(count) for group, count in zip(GROUPS, counts, strict=True)},
    )


def _units_name(pretokenized: bool) -> str:
    return "as-given" if pretokenized else "teo"


def _difference_dict(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    interval = difference.interval
    return {"difference": difference.value, "interval": [interval.low, interval.high], "p": difference.p}
