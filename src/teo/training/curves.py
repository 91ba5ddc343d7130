"""Loss and exact match over a run, as PNG."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


def draw_curves(history: Sequence[Mapping[str, Any]], path: Path, title: str) -> bool:
    """Draw training loss and dev EM over the updates; return whether matplotlib was there to do it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        logger.info("%s: not drawn, since matplotlib is not installed (pip install 'teo-rewriter[plots]')", path.name)
        return False
    losses = [(entry["step"], entry["loss"]) for entry in history if "loss" in entry]
    names = sorted({name for entry in history for name in entry if name.startswith("eval_em_")})
    figure = Figure(figsize=(6, 4))  # no display, no global state
    left = figure.add_subplot()
    left.set_title(title)
    left.set_xlabel("update")
    left.set_ylabel("training loss")
    if losses:
        left.plot(*zip(*losses, strict=True), color="tab:gray", label="loss")
    right = left.twinx()
    right.set_ylabel("dev exact match")
    right.set_ylim(0, 1)
    for name in names:
        points = [(entry["step"], entry[name]) for entry in history if name in entry]
        right.plot(*zip(*points, strict=True), marker="o", label=name.removeprefix("eval_em_"))
    if names:
        right.legend(loc="lower right")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return True
