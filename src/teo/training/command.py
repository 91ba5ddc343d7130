"""The training command, behind both `teo train` and `python -m teo.training`: arguments in, a JSON line out."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from teo.training.config import TrainConfig, read_config
from teo.training.settings import list_keys, to_toml, to_tree


def run_command(
    path: Path,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    dry_run: bool = False,
    sweep: str = "",
    out: TextIO | None = None,
) -> None:
    """Train as a configuration says, and write what came of it as one JSON line; a dry run writes the configuration."""
    out = out or sys.stdout
    config = read_config(path, overrides)
    if dry_run:
        out.write(to_toml(to_tree(config)) + "\n")
        return
    log_to_stderr()
    if sweep:
        from teo.training.sweep import Sweep, run_sweep

        points = run_sweep(path, overrides, Sweep.parse(sweep), resume=resume)
        answer: dict[str, object] = {"output": config.output, "sweep": points}
    else:
        from teo.training.finetune import train

        result = train(config, resume=resume)
        answer = {"model": str(result.folder), "dev_em": result.em}
    if is_main_process():
        out.write(json.dumps(answer, ensure_ascii=False) + "\n")


def keys_help() -> str:
    """Return every key of a configuration with its type, default and meaning."""
    lines = []
    for key, kind, default, text in list_keys(TrainConfig):
        shown = f" = {json.dumps(default)}" if default != "" else ""
        lines.append(f"{key}{shown}  ({kind})\n    {text}")
    return "\n".join(lines)


def is_main_process() -> bool:
    """Tell whether this is the process that writes; a launcher numbers them."""
    return os.environ.get("RANK", "0") == "0"


def log_to_stderr() -> None:
    """Send this package's log lines to stderr, with the time; only the main process speaks below a warning."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("teo")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(logging.INFO if is_main_process() else logging.WARNING)
