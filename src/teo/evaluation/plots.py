"""Pictures of an evaluation; matplotlib is only needed when one is drawn."""

from __future__ import annotations

from pathlib import Path

from teo.errors import MissingExtraError
from teo.evaluation.records import write_whole
from teo.metrics.flow import StageFlow


def draw_flow(flow: StageFlow, path: Path) -> None:
    """Write the right/wrong matrix of the two stages as a PNG (the paper's figure on stage correspondence)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing the stage flow", "matplotlib", "plots") from None
    cells = [[flow.wrong_wrong, flow.wrong_right], [flow.right_wrong, flow.right_right]]
    total = max(flow.n, 1)
    shares = [[100 * cell / total for cell in row] for row in cells]
    figure = Figure(figsize=(4.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            dark = shares[y][x] > 55
            text = f"{shares[y][x]:.1f}%\n{cell}"
            axes.text(x, y, text, ha="center", va="center", color="white" if dark else "black", fontsize=12)
    axes.set_xticks([0, 1], ["wrong", "right"])
    axes.set_yticks([0, 1], ["wrong", "right"], rotation=90, va="center")
    axes.set_xlabel("rewrite (stage 2)")
    axes.set_ylabel("operations (stage 1)")
    axes.set_title(f"{flow.n} rows", fontsize=10)
    figure.colorbar(image, ax=axes, label="share of rows, %", fraction=0.046)
    write_whole(path, lambda beside: figure.savefig(beside, dpi=150, format="png", bbox_inches="tight"))
