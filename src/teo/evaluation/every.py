"""evaluate_every(request): all variants that a model can play, each in a folder of its own, and one table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TextIO

from teo.errors import ModelError
from teo.evaluation.evaluate import Request, evaluate
from teo.evaluation.report import percent
from teo.files import write_json, write_text
from teo.loading import System
from teo.pipelines import VARIANTS, Variant
from teo.runtime.locate import locate_model

EVERY = "all"
"""The variant's name that means: each that the model can play."""
_KEPT = ("n", "em", "bleu4", "run_f1")


def evaluate_every(request: Request, progress: TextIO | None = None) -> dict[str, dict[str, Any]]:
    """Return the metrics of every variant that the model has the roles for, with variants.json and variants.md."""
    system = System.load(locate_model(request.model))
    playable = [variant for variant in VARIANTS.values() if _can_play(system, variant)]
    if not playable:
        raise ModelError(f"{request.model}: expected at least one role, found none that any variant needs")
    metrics = {
        variant.name: evaluate(replace(request, variant=variant.name, out=request.out / variant.name), progress)
        for variant in playable
    }
    write_json(request.out / "variants.json", {name: _summary(numbers) for name, numbers in metrics.items()})
    write_text(request.out / "variants.md", format_variants(metrics))
    return metrics


def format_variants(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a Markdown table with a line for each variant, in percent."""
    head = ("variant", "EM", "95% interval", "complete", "incomplete", "BLEU-4", "F1", "stage-1 EM", "E2C", "C2E")
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for name, numbers in metrics.items():
        low, high = numbers["intervals"].get("em", (None, None))
        flow, broken = numbers["stage_flow"] or {}, numbers["breakdown"]
        cells = (
            name,
            percent(numbers["em"]),
            f"{percent(low)} to {percent(high)}",
            percent(broken["complete"]["em"]),
            percent(broken["incomplete"]["em"]),
            percent(numbers["bleu4"]),
            percent(numbers["run_f1"]),
            *(percent(flow[key]) if key in flow else "-" for key in ("stage1_em", "e2c", "c2e")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _can_play(system: System, variant: Variant) -> bool:
    return all(any(map(system.has, group)) for group in variant.needs)


def _summary(numbers: Mapping[str, Any]) -> dict[str, Any]:
    flow = {"stage_flow": numbers["stage_flow"]}
    return {**{key: numbers[key] for key in _KEPT}, "breakdown": numbers["breakdown"], **flow}
