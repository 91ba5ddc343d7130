"""What was stored of a system, over its seeds: means, an interval of EM, and the paired test against another system."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import InputError
from teo.metrics.base import FloatArray, Interval
from teo.metrics.exact_match import ExactMatch
from teo.metrics.significance import Difference, bootstrap_intervals, compare_paired
from teo_lab.reproduce.stored_rows import read_right

_OURS: Mapping[str, str] = {
    "rougeL": "rougeL_rouge_1_0_1",
    **{f"{kind}{size}": f"run_{kind}{size}" for kind in "prf" for size in (1, 2, 3)},
}
"""Our names of the published metrics, if they differ."""


@dataclass(frozen=True, slots=True)
class SeedResults:
    """A system's stored evaluations, one for each seed, on the same rows."""

    metrics: tuple[Mapping[str, Any], ...]
    statistics: FloatArray
    """EM's statistics per row, averaged over the seeds."""

    @classmethod
    def read(cls, files: Sequence[Path]) -> SeedResults:
        """Return what the files of the seeds hold; raises if they are not of the same rows."""
        metrics = tuple(json.loads(file.read_text(encoding="utf-8")) for file in files)
        rows = [read_right(file) for file in files]
        ids = list(rows[0])
        for file, stored, right in zip(files, metrics, rows, strict=True):
            if stored["settings"]["data_hash"] != metrics[0]["settings"]["data_hash"] or list(right) != ids:
                raise InputError(f"{file}: expected the rows of {files[0]}, found others; remove one and run again")
        mean = np.mean([[float(right[key]) for key in ids] for right in rows], axis=0)
        return cls(metrics, np.stack([mean, np.ones(len(ids))], axis=1))

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.statistics)

    @property
    def ems(self) -> list[float]:
        """EM of each seed."""
        return [float(stored["em"]) for stored in self.metrics]

    @property
    def interval(self) -> Interval | None:
        """The 95% interval of the mean EM, by drawing rows; the seeds are not drawn."""
        return bootstrap_intervals(self.statistics, ExactMatch().aggregate)[0]

    def mean(self, name: str) -> float | None:
        """Return a metric's mean over the seeds, by its published name; None if a seed has none."""
        return _mean([stored[_OURS.get(name, name)] for stored in self.metrics])

    def flow(self, name: str) -> float | None:
        """Return the mean of stage1_em, e2c or c2e."""
        return _mean([(stored["stage_flow"] or {}).get(name) for stored in self.metrics])

    def minus(self, other: SeedResults) -> Difference | None:
        """Return this system's EM minus the other's, with its interval and p-value."""
        if self.metrics[0]["settings"]["data_hash"] != other.metrics[0]["settings"]["data_hash"]:
            raise InputError("paired test: expected two evaluations of the same rows, found two of different rows")
        return compare_paired(other.statistics, self.statistics, ExactMatch().aggregate)[0]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if values and len(known) == len(values) else None
