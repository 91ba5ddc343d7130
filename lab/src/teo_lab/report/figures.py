"""The pictures of the report.

Colours are Okabe and Ito's, which the colour-blind tell apart; in print, hatches, markers and line styles do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teo.evaluation.curves import RiskPoint
from teo.evaluation.plots import make_figure, save_figure
from teo.metrics.base import Interval
from teo.metrics.flow import StageFlow

_STYLES = (
    ("#0072b2", "", "-", "o"),
    ("#e69f00", "//", "--", "s"),
    ("#009e73", "..", ":", "^"),
    ("#cc79a7", "xx", "-.", "D"),
    ("#56b4e9", "\\\\", (0, (5, 1)), "v"),
    ("#d55e00", "++", (0, (1, 1)), "P"),
)
"""Colour, hatch, line and marker of the first, second, ... thing that a picture shows."""
_NARROW = 0.05
"""A share below it has no room for its number."""
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
"""Milliseconds that a logarithmic axis names."""
_FLOW = {
    "operations right, rewrite right": "right_right",
    "operations wrong, rewrite right": "wrong_right",
    "operations right, rewrite wrong": "right_wrong",
    "operations wrong, rewrite wrong": "wrong_wrong",
}


@dataclass(frozen=True, slots=True)
class Point:
    """A system by its latency and quality."""

    name: str
    milliseconds: float
    em: float


def draw_stages(flows: Mapping[str, StageFlow], path: Path) -> None:
    """Write a bar for each dataset: rows by whether operations and rewrite were right."""
    shares = {title: [getattr(flow, cell) / max(flow.n, 1) for flow in flows.values()] for title, cell in _FLOW.items()}
    _draw_shares(list(flows), shares, "share of rows", path)


def draw_errors(errors: Mapping[str, Mapping[str, int]], path: Path) -> None:
    """Write a bar for each dataset: the wrong rewrites by what is wrong with them."""
    kinds = list(next(iter(errors.values())))
    totals = [max(sum(counts.values()), 1) for counts in errors.values()]
    shares = {
        kind.replace("_", " "): [counts[kind] / total for counts, total in zip(errors.values(), totals, strict=True)]
        for kind in kinds
    }
    _draw_shares(list(errors), shares, "share of wrong rows", path)


def _draw_shares(names: Sequence[str], shares: Mapping[str, Sequence[float]], label: str, path: Path) -> None:
    figure, axes = make_figure("drawing the report", 7.2, 1.3 + 0.5 * len(names))
    left = [0.0] * len(names)
    for (title, widths), (colour, hatch, _, _) in zip(shares.items(), _STYLES, strict=False):
        axes.barh(names, widths, left=left, color=colour, hatch=hatch, edgecolor="white", label=title)
        for y, width in enumerate(widths):
            if width >= _NARROW:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
                place = {"ha": "center", "va": "center", "fontsize": 8}
                axes.text(left[y] + width / 2, y, f"{100 * width:.0f}", bbox=box, **place)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel=label)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    figure.legend(loc="outside upper center", ncols=2 if len(shares) < 5 else 3, fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_prob_p(points: Mapping[float, tuple[float, Interval | None]], chosen: float, path: Path) -> None:
    """Write EM against prob_p with its intervals, the paper's own value marked (figure 3)."""
    figure, axes = make_figure("drawing the report", 5.6, 3.4)
    values = sorted(points)
    ems = [100 * points[value][0] for value in values]
    around = [points[value][1] for value in values]
    low = [em - 100 * part.low if part else 0.0 for em, part in zip(ems, around, strict=True)]
    high = [100 * part.high - em if part else 0.0 for em, part in zip(ems, around, strict=True)]
    axes.errorbar(values, ems, yerr=[low, high], color=_STYLES[0][0], marker="o", capsize=3)
    axes.axvline(chosen, color="grey", linestyle="--", linewidth=1, label=f"the paper's choice, {chosen:g}")
    axes.set(xlabel="prob_p", ylabel="test EM, %")
    axes.legend(fontsize=8)
    save_figure(figure, path)


def draw_risks(curves: Mapping[str, Sequence[RiskPoint]], path: Path) -> None:
    """Write a risk-coverage curve for each dataset."""
    figure, axes = make_figure("drawing the report", 5.6, 3.8)
    for (name, points), (colour, _, line, _) in zip(curves.items(), _STYLES, strict=False):
        shown = [point for point in points if point.coverage >= 0.01]  # before, a single row decides
        x, y = [100 * point.coverage for point in shown], [100 * point.risk for point in shown]
        axes.plot(x, y, color=colour, linestyle=line, label=name)
    axes.set(xlim=(0, 100), ylim=(0, None), xlabel="rows answered, the surest first, %", ylabel="wrong among them, %")
    axes.legend(fontsize=8)
    save_figure(figure, path)


def draw_latencies(points: Sequence[Point], path: Path) -> None:
    """Write EM against the time of a rewrite, on a logarithmic scale."""
    figure, axes = make_figure("drawing the report", 6.4, 3.8)
    for point, (colour, _, _, marker) in zip(points, _STYLES, strict=False):
        axes.scatter(point.milliseconds, point.em, s=70, color=colour, marker=marker, label=point.name, zorder=3)
    axes.set(xscale="log", xlabel="milliseconds for a rewrite", ylabel="EM, %", ylim=(0, 100))
    shortest, longest = (edge(point.milliseconds for point in points) for edge in (min, max))
    axes.set_xlim(shortest / 1.6, longest * 1.6)
    ticks = [tick for tick in _TICKS if shortest / 1.6 <= tick <= longest * 1.6]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, alpha=0.25)
    figure.legend(loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_intervals(values: Mapping[str, tuple[float, Interval]], label: str, path: Path) -> None:
    """Write a bar with its interval for each name."""
    figure, axes = make_figure("drawing the report", 6.0, 1.0 + 0.4 * len(values))
    for y, ((name, (value, around)), (colour, hatch, _, _)) in enumerate(zip(values.items(), _STYLES, strict=False)):
        error: Any = [[value - around.low], [around.high - value]]
        axes.barh(name, value, xerr=error, capsize=3, color=colour, hatch=hatch, edgecolor="white")
        axes.text(around.high, y, f"  {value:.3f}", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel=label, xlim=(0, 1.15 * max(around.high for _, around in values.values())))
    save_figure(figure, path)
