"""What the judges of `judge.py` are worth beside `fast` and forced scores: EM, confidence, and the stop rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teo.evaluation.curves import area_under_risk, expected_calibration_error, risk_coverage
from teo.metrics.significance import compare_paired

LEAST_GAIN = 0.015
"""EM that a judge must gain over `fast`."""
REST_WEIGHTS = (1.0, 0.5, 0.2, 0.1, 0.0)
"""What tokens after the first count in the confidence of `fast`: the best of them is what a judge has to beat."""
RESAMPLES = 500
FAST = ("fast, greedy", "fast, beam")
"""The two forms of `fast` alone; a judge is compared with the better one."""
RULED = "unseen"
"""The judge that the stop rule is read off: the mean of the two fold judges."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """What one way to choose gives for the rows of a dataset: whether each is right, and how sure it is of it."""

    right: Floats
    confidence: Floats

    @property
    def em(self) -> float:
        """Exact match."""
        return float(self.right.mean())

    @property
    def area(self) -> float:
        """Area under risk and coverage: the mean share of wrong rewrites over all coverages."""
        return area_under_risk(risk_coverage(self.confidence.tolist(), (self.right > 0).tolist()))


def report(records: Sequence[dict[str, Any]], judged: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Any]:
    """Return EM, area and calibration of every way to choose, by dataset, and whether the rule lets the judge go on."""
    datasets = dict.fromkeys(record["id"].split("-")[0] for record in records)
    found: dict[str, Any] = {}
    for dataset in datasets:
        numbers = [k for k, record in enumerate(records) if record["id"].startswith(f"{dataset}-")]
        part = {name: [rows[k] for k in numbers] for name, rows in judged.items()}
        found[dataset] = _measure([records[k] for k in numbers], part)
    passes = {name: found[name]["passes"] for name in datasets}
    return {"datasets": found, "passes": passes, "verdict": "go on" if all(passes.values()) else "stop"}


def _measure(records: Sequence[dict[str, Any]], judged: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Any]:
    choices = _choices(records, judged)
    rival = max(FAST, key=lambda name: choices[name].em)
    least_area = min(choices[name].area for name in FAST)
    ways = {}
    for name, choice in choices.items():
        ways[name] = {"em": choice.em, "area": choice.area, **_calibration(choice)}
        if name in judged:
            ways[name] |= _compare(choices[rival], choice)
    ruled = choices[RULED]
    candidates = [record["candidates"] for record in records]
    return {
        "rows": len(records),
        "candidates": float(np.mean([len(row) for row in candidates])),
        "oracle": float(np.mean([any(candidate["right"] for candidate in row) for row in candidates])),
        "compared_with": rival,
        "ways": ways,
        "passes": ruled.em - choices[rival].em >= LEAST_GAIN and ruled.area < least_area,
    }


def _choices(records: Sequence[dict[str, Any]], judged: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Choice]:
    rows = [record["candidates"] for record in records]
    greedy = [_greedy(records, weight) for weight in REST_WEIGHTS]
    fast, direct = ([_softmax([candidate[role] for candidate in row]) for row in rows] for role in ("fast", "direct"))
    both = [_softmax([candidate["fast"] + candidate["direct"] for candidate in row]) for row in rows]
    first = [0] * len(rows)
    choices = {
        FAST[0]: min(greedy, key=lambda choice: choice.area),
        FAST[1]: _choose(rows, fast, first),
        "forced score of fast": _choose(rows, fast),
        "forced score of direct": _choose(rows, direct),
        "sum of both": _choose(rows, both),
    }
    choices |= {name: _choose(rows, found) for name, found in judged.items()}
    # How much of a gain is in the confidence alone: the choice of `fast`, as sure as the judge is of it.
    choices["fast, beam, as sure as the judge"] = _choose(rows, judged[RULED], first)
    return choices


def _choose(
    rows: Sequence[Sequence[Mapping[str, Any]]],
    probabilities: Sequence[Sequence[float]],
    chosen: Sequence[int] | None = None,
) -> Choice:
    """Return the choice of the most probable candidates, or of those given."""
    picked = [int(np.argmax(row)) for row in probabilities] if chosen is None else chosen
    right = [float(row[k]["right"]) for row, k in zip(rows, picked, strict=True)]
    return Choice(np.array(right), np.array([row[k] for row, k in zip(probabilities, picked, strict=True)]))


def _greedy(records: Sequence[dict[str, Any]], weight: float) -> Choice:
    texts = [record["greedy"] for record in records]
    scores = [text["first"] + weight * (text["score"] - text["first"]) for text in texts]
    return Choice(np.array([float(text["right"]) for text in texts]), np.exp(np.minimum(scores, 0.0)))


def _softmax(scores: Sequence[float]) -> list[float]:
    powers = np.exp(np.array(scores) - max(scores))
    return [float(value) for value in powers / powers.sum()]


def _calibration(choice: Choice) -> dict[str, float]:
    return {"ece": expected_calibration_error(choice.confidence.tolist(), (choice.right > 0).tolist())}


def _compare(first: Choice, second: Choice) -> dict[str, Any]:
    """Return what the second choice gains over the first: EM with interval and p, and the area with its interval."""
    ones = np.ones(len(first.right))
    before, after = (np.stack([choice.right, ones], axis=1) for choice in (first, second))
    gain = compare_paired(before, after, lambda sums: sums[..., :1] / sums[..., 1:])[0]
    draw = np.random.default_rng(0)
    areas = []
    for _ in range(RESAMPLES):
        rows = draw.integers(0, len(ones), len(ones))
        areas.append(_take(second, rows).area - _take(first, rows).area)
    low, high = np.percentile(areas, [2.5, 97.5])
    return {
        "gain": gain.value if gain else None,
        "gain_interval": [gain.interval.low, gain.interval.high] if gain else None,
        "p": gain.p if gain else None,
        "area_change": second.area - first.area,
        "area_interval": [float(low), float(high)],
    }


def _take(choice: Choice, rows: NDArray[np.int64]) -> Choice:
    return Choice(choice.right[rows], choice.confidence[rows])


def to_text(summary: Mapping[str, Any]) -> str:
    """Return a report as lines to print."""
    lines = []
    for name, found in summary["datasets"].items():
        lines.append(
            f"{name}: {found['rows']} rows, {found['candidates']:.1f} candidates, right one among them "
            f"{100 * found['oracle']:.1f}; compared with {found['compared_with']}"
        )
        for way, figures in found["ways"].items():
            line = f"  {way:34} EM {100 * figures['em']:5.1f}  area {figures['area']:.4f}  ECE {figures['ece']:.3f}"
            if figures.get("gain") is not None:
                low, high = figures["gain_interval"]
                line += f"  {100 * figures['gain']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] p={figures['p']:.3f}"
                line += "  area {:+.4f} [{:+.4f}, {:+.4f}]".format(figures["area_change"], *figures["area_interval"])
            lines.append(line)
    return "\n".join([*lines, f"stop rule: {summary['verdict']} ({summary['passes']})"])
