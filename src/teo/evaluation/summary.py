"""The few lines that a command prints after an evaluation, and the reading of its dataset options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from teo.errors import InputError
from teo.evaluation.report import percent


def summarise(metrics: Mapping[str, Any], out: Path) -> str:
    """Return the numbers that one looks at first, and where the rest is."""
    settings, intervals, broken = metrics["settings"], metrics["intervals"], metrics["breakdown"]
    low, high = intervals.get("em", (None, None))
    lines = [
        f"{settings['variant']} on {settings['data']} ({settings['split']}), {metrics['n']} rows, in percent",
        f"EM {percent(metrics['em'])} ({percent(low)} to {percent(high)})  "
        f"complete {percent(broken['complete']['em'])}  incomplete {percent(broken['incomplete']['em'])}",
        f"BLEU-4 {percent(metrics['bleu4'])}  ROUGE-2 {percent(metrics['rouge2'])}  F1 {percent(metrics['run_f1'])}",
    ]
    flow = metrics["stage_flow"]
    if flow is not None:
        lines.append(f"stage-1 EM {percent(flow['stage1_em'])}  E2C {percent(flow['e2c'])}  C2E {percent(flow['c2e'])}")
    return "\n".join([*lines, f"written to {out}"])


def read_options(given: Iterable[str]) -> dict[str, str]:
    """Return NAME=VALUE pairs as a mapping."""
    options = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise InputError(f"option: expected NAME=VALUE such as history=last-two, found '{one}'")
        options[name] = value
    return options
