"""Pictures of an evaluation; matplotlib is only needed when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teo.errors import MissingExtraError
from teo.evaluation.curves import Bin, RiskPoint
from teo.files import write_whole
from teo.metrics.flow import StageFlow


def draw_flow(flow: StageFlow, path: Path) -> None:
    """Write the right/wrong matrix of the two stages as a picture (the paper's figure on stage correspondence)."""
    figure, axes = make_figure("drawing the stage flow")
    cells = [[flow.wrong_wrong, flow.wrong_right], [flow.right_wrong, flow.right_right]]
    total = max(flow.n, 1)
    shares = [[100 * cell / total for cell in row] for row in cells]
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
    save_figure(figure, path)


def draw_reliability(bins: Sequence[Bin], path: Path) -> None:
    """Write the reliability diagram as a picture: the share of right rewrites in each range of confidence."""
    figure, axes = make_figure("drawing the reliability diagram")
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1, label="what confidence says")
    widths = [part.high - part.low for part in bins]
    right = [part.accuracy for part in bins]
    axes.bar([part.low for part in bins], right, widths, align="edge", alpha=0.35, edgecolor="white", label="right")
    sizes = [10 + 300 * part.share for part in bins]
    axes.scatter([part.confidence for part in bins], right, sizes, zorder=3, label="mean confidence, size by rows")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="share of right rewrites")
    axes.legend(fontsize=8, loc="upper left")
    save_figure(figure, path)


def draw_risk_coverage(points: Sequence[RiskPoint], path: Path) -> None:
    """Write the risk-coverage curve as a picture: how many of the surest rewrites are wrong, for any share of them."""
    figure, axes = make_figure("drawing the risk-coverage curve")
    axes.step(
        [0, *(point.coverage for point in points)], [points[0].risk, *(point.risk for point in points)], where="pre"
    )
    axes.axhline(points[-1].risk, color="grey", linestyle="--", linewidth=1, label="all rows")
    axes.set(
        xlim=(0, 1), ylim=(0, None), xlabel="coverage: share of rows answered", ylabel="risk: share of wrong rewrites"
    )
    axes.legend(fontsize=8, loc="lower right")
    save_figure(figure, path)


def make_figure(feature: str, width: float = 4.2, height: float = 3.6) -> tuple[Any, Any]:
    """Return an empty figure, in inches, and its axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(feature, "matplotlib", "plots") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as SVG or PNG, by the name's end; equal figures give equal bytes."""
    from matplotlib import rc_context

    kind = path.suffix.removeprefix(".")
    settings: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 150}
    with rc_context({"svg.hashsalt": path.stem}):
        write_whole(path, lambda beside: figure.savefig(beside, format=kind, bbox_inches="tight", **settings))
