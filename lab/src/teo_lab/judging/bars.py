"""Wins, ties and losses as a picture (the paper's figure on human evaluation); matplotlib is only needed to draw it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teo.evaluation.plots import make_figure, save_figure
from teo_lab.judging.agreement import Tally

# Told apart by the colour-blind; hatches tell them apart in print.
_STYLES = (("#0072b2", ""), ("#d0d0d0", ".."), ("#e69f00", "//"))
_NARROW = 0.07
"""A share below it has no room for its number."""


def draw_bars(tallies: Mapping[str, Tally], names: tuple[str, str], path: Path) -> None:
    """Write a picture with a bar of win, tie and loss for each tally, from the top in their order."""
    figure, axes = make_figure("drawing the bars", 6.4, 1.2 + 0.45 * len(tallies))
    labels = (f"{names[0]} wins", "tie", f"{names[1]} wins")
    positions = range(len(tallies))
    left = [0.0] * len(tallies)
    for index, (label, (colour, hatch)) in enumerate(zip(labels, _STYLES, strict=True)):
        outcomes = [(tally.win, tally.tie, tally.loss)[index] for tally in tallies.values()]
        widths = [outcome.share or 0.0 for outcome in outcomes]
        axes.barh(positions, widths, left=left, color=colour, hatch=hatch, edgecolor="white", label=label)
        for y, (outcome, width) in enumerate(zip(outcomes, widths, strict=True)):
            if width >= _NARROW:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
                axes.text(left[y] + width / 2, y, str(outcome.count), ha="center", va="center", fontsize=9, bbox=box)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(positions, [f"{name} ({tally.total})" for name, tally in tallies.items()])
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, path)
