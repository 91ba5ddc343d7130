"""`teo-lab train`: a training run on rows that were encoded beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.training import is_main_process, training_libraries
from teo.errors import InputError
from teo_lab.cli.logs import log_both_to_stderr

_SUFFIX = ".npz"


def train(
    config: Annotated[Path, typer.Argument(help="Configuration in TOML, such as lab/configs/shipped/default.toml.")],
    words: Annotated[
        list[str],
        typer.Argument(metavar="FILE.npz... [KEY=VALUE]...", help="Files of teo-lab encode, and values to override."),
    ],
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a run that was stopped.")] = False,
) -> None:
    """Train on rows encoded beforehand. Prints the model's folder as one JSON line.

    The datasets of the configuration are not read, dev rows neither: the last weights are taken. Without encoded rows,
    use teo train.

    Example: teo-lab train lab/configs/shipped/default.toml runs/rows.npz output=runs/f2 seed=92
    """
    files = [Path(word) for word in words if word.endswith(_SUFFIX) and "=" not in word]
    overrides = [word for word in words if "=" in word]
    if not files or len(files) + len(overrides) < len(words):
        raise InputError(f"expected one or more files {_SUFFIX} and then key=value, found {' '.join(words)}")
    log_both_to_stderr()
    with training_libraries("training"):
        from teo.training.config import read_config
        from teo_lab.encoded import train_encoded

        result = train_encoded(read_config(config, overrides), files, resume=resume)
    if is_main_process():
        typer.echo(json.dumps({"model": str(result.folder)}, ensure_ascii=False))
