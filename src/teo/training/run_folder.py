"""The folder of a run: made ready before training, and described by teo.json after it, which makes it a model."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.errors import ConfigError, ModelError
from teo.layouts import Layout
from teo.loading import DEFAULT_MODEL, ModelFolder, Role
from teo.training.backbones import EMBEDDED, LayoutChoice
from teo.training.config import TrainConfig
from teo.training.examples import PROMPTS
from teo.training.record import CONFIG, RECORD, require_same
from teo.training.saving import drop_unfinished, whole_folder

SHARED = "weights"
"""The folder of weights that all roles share."""
WORK = "training"
"""The folder of checkpoints, record and results."""
DATA = "data"
"""The folder in it that generated rows are written to."""
_MADE = ("teo.json", WORK, SHARED, *PROMPTS)
"""What a run makes in its output folder."""
_PREFERRED = ("stage2", "fused", "rfis", "fast", "direct", "stage1")
"""Roles by preference: the first one that a model has names the pipeline that a rewriter runs by default."""


def open_folder(output: Path, config: TrainConfig, *, resume: bool) -> bool:
    """Tell whether the output folder holds a run to resume; one with another run or with other files is refused."""
    work = output / WORK
    if not _holds_run(output):
        _refuse_others(output)
        return False
    if resume:
        require_same(work, config)
        drop_unfinished(work)
    elif not config.overwrite:
        raise ConfigError(
            f"output: {output} already holds a run; resume it with --resume, start again with overwrite=true, "
            "or give another folder"
        )
    return resume


def clear_folder(output: Path, sources: Sequence[Path]) -> None:
    """Delete the run that a folder holds, if any, but none of the `sources` that the new one is made from."""
    if not _holds_run(output):
        return
    for source in map(Path.resolve, sources):
        if source == output.resolve() or is_made(output, source):
            raise ConfigError(f"output: expected another folder than that of the source {source}; give another folder")
    (output / "teo.json").unlink(missing_ok=True)
    for name in (SHARED, *PROMPTS):
        shutil.rmtree(output / name, ignore_errors=True)
    # The record last: until then the folder is that of a run.
    for path in sorted(_list(output / WORK), key=lambda path: path.name == RECORD):
        if path.is_dir() and path.name != DATA:
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_file():
            path.unlink()


def is_made(output: Path, path: Path) -> bool:
    """Tell whether a run makes this file or folder of its output; the rows that it generates are not meant."""
    path, output = path.resolve(), output.resolve()
    parts = path.relative_to(output).parts if path.is_relative_to(output) else ()
    return parts[:1] in {(name,) for name in _MADE} and parts[:2] != (WORK, DATA)


def _holds_run(output: Path) -> bool:
    return (output / WORK / RECORD).is_file() or (output / "teo.json").is_file()


def _refuse_others(output: Path) -> None:
    """Refuse a folder without a run whose files a run would take for its own; a start that failed leaves no others."""
    left = {output / WORK / name for name in (DATA, CONFIG)}
    for path in (*(output / name for name in (SHARED, *PROMPTS)), *_list(output / WORK)):
        if path.exists() and path not in left:
            raise ConfigError(
                f"output: expected a new folder or that of a run, found {path} in it; give another folder"
            )


def _list(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def find_stage1(source: Path, layout: LayoutChoice) -> Path:
    """Return the folder of a trained model's stage 1; one of another layout is refused."""
    import transformers

    stored = ModelFolder.load(source)
    roles = stored.roles
    if "stage1" not in roles or roles["stage1"].prompt:
        raise ModelError(f"{source}: expected a stage 1 with weights of its own, found {', '.join(roles)}")
    config = transformers.AutoConfig.from_pretrained(str(source / roles["stage1"].folder))
    if layout.of_model(config) != stored.layout:
        raise ConfigError(
            f"model.layout: expected that of {source} (version {stored.layout.version}, speakers "
            f"{str(stored.layout.speakers).lower()}), since its stage 1 is taken; set the same or train stage 1 here"
        )
    return source / roles["stage1"].folder


def adopt_stage1(source: Path, target: Path, layout: LayoutChoice) -> None:
    """Copy the stage 1 of a trained model, unless it was copied before."""
    weights = find_stage1(source, layout)
    if not target.is_dir():
        with whole_folder(target) as folder:
            shutil.copytree(weights, folder, dirs_exist_ok=True)


def describe(
    output: Path,
    config: TrainConfig,
    groups: Mapping[str, Sequence[str]],
    dev_em: Mapping[str, float],
    layout: Layout,
) -> None:
    """Write teo.json: the weights and the prompt of each role, and the pipeline that a rewriter runs by default."""
    roles = {
        role: Role(name, tuple(str(marker) for marker in PROMPTS[role]) if config.shared else ())
        for name, members in groups.items()
        for role in members
    }
    if config.model.stage1:
        roles.setdefault("stage1", Role("stage1"))
    first = next(role for role in _PREFERRED if role in roles)
    ModelFolder(
        roles=roles,
        languages=config.languages,
        order=config.order,
        source_limit=config.model.source_limit,
        variant="teo" if first == "stage2" else first,
        layout=layout,
        extra={
            "dev_em": dict(dev_em),
            "data": [settings.name for settings in config.data],
            **inherited_calibration(config.model.base, roles),
        },
    ).save(output)


def inherited_calibration(base: str, roles: Collection[str]) -> dict[str, Any]:
    """Return the calibration of the model that training starts from, for the pipelines that the new one has too.

    It serves until `teo calibrate` fits the new model's own.
    """
    source = DEFAULT_MODEL if base == EMBEDDED else Path(base)
    if not (source / "teo.json").is_file():
        return {}
    stored = ModelFolder.load(source).extra.get("calibration", {})
    known = {name: functions for name, functions in stored.items() if name in roles}
    return {"calibration": known} if known else {}
