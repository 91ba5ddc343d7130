"""What a folder of results holds: its runs, how many seeds they have, and the settings that they were made with."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from teo_lab.reproduce.experiments import DATASETS, Run
from teo_lab.reproduce.runs import RUN, Workspace, settings_of

_NAME = re.compile(rf"({'|'.join(DATASETS)})-(.+)-seed(\d+)")
_BASE = "model.base"


def stored_runs(out: Path) -> dict[Run, dict[str, Any]]:
    """Return the runs whose results are in a folder, with what is stored of each."""
    found = {}
    for file in sorted(out.glob(f"*/{RUN}")):
        if named := _NAME.fullmatch(file.parent.name):
            found[Run(named[1], named[2], int(named[3]))] = json.loads(file.read_text(encoding="utf-8"))
    return found


def take_settings(workspace: Workspace) -> Workspace:
    """Return the workspace with the settings of its stored runs: base, T5, and each value that is no recipe's.

    What the workspace names itself stays, and is compared with the stored runs when they are read.
    """
    named = {override.partition("=")[0] for override in workspace.overrides}
    bases: dict[bool, str] = {True: workspace.t5, False: workspace.base}
    taken: dict[str, str] = {}
    for run, stored in stored_runs(workspace.out).items():
        recipe = settings_of(replace(workspace, base="", t5="", overrides=()).config(run))
        settings = {key: value for key, value in stored["settings"].items() if key in recipe and value != recipe[key]}
        is_t5 = run.kind == "t5"
        bases[is_t5] = bases[is_t5] or settings.get(_BASE, "")
        for flat, value in settings.items():
            key = flat.replace("[0]", "")  # a run has one dataset
            if key != _BASE and key not in named:
                taken[key] = f"{key}={json.dumps(value, ensure_ascii=False)}"
    overrides = (*taken.values(), *workspace.overrides)
    return replace(workspace, base=bases[False], t5=bases[True], overrides=overrides)


def count_seeds(workspace: Workspace) -> int:
    """Return how many seeds the stored runs have, at least 1."""
    return max((run.seed + 1 for run in stored_runs(workspace.out)), default=1)
