"""What a run leaves: its record (configuration, versions, data hashes, commit) and the results of its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from teo.errors import ConfigError
from teo.files import write_json, write_text
from teo.provenance import git_commit, versions
from teo.training.config import TrainConfig
from teo.training.settings import to_toml, to_tree

RECORD, CONFIG = "record.json", "config.toml"
_RESULT = "result.json"
_EM = "eval_em_"
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
_FREE = ("overwrite", "device")
"""Keys that a resumed run may have otherwise than the run it resumes."""


def write_record(
    folder: Path, config: TrainConfig, data: Sequence[Mapping[str, Any]], device: str, processes: int = 1
) -> None:
    """Write `record.json` and `config.toml` into a run's folder."""
    record = {
        "config": to_tree(config),
        "versions": versions(_LIBRARIES),
        "git_commit": git_commit(),
        "data": list(data),
        "device": device,
        "processes": processes,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, to_toml(to_tree(config)) + "\n")
    write_json(folder / RECORD, record)


def require_same(folder: Path, config: TrainConfig) -> None:
    """Refuse to resume a run under another configuration; the message names the first difference."""
    before, now = flatten(_read_record(folder)["config"]), flatten(to_tree(config))
    for key in sorted({*before, *now}):
        if key not in _FREE and before.get(key) != now.get(key):
            raise ConfigError(
                f"{key}: the run to resume was started with {json.dumps(before.get(key))}, found "
                f"{json.dumps(now.get(key))}; resume with the same configuration or give another output"
            )


def require_same_data(folder: Path, data: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to resume a run whose data changed; the message names the first file that did."""
    before, now = ({file["file"]: file["sha256"] for file in files} for files in (_read_record(folder)["data"], data))
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            found = "no such file" if name not in now else "other data" if name in before else "a new file"
            raise ConfigError(
                f"{name}: expected the data that the run to resume was started with, found {found}; put it back, start "
                "again with overwrite=true, or give another output"
            )


def _read_record(folder: Path) -> dict[str, Any]:
    file = folder / RECORD
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        whole = isinstance(stored["config"], dict) and all(
            {"file", "sha256"} <= entry.keys() for entry in stored["data"]
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ConfigError(
            f"{file}: expected the record of the run to resume, found none that is whole; start again with "
            "overwrite=true, or give another output"
        )
    record: dict[str, Any] = stored
    return record


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """Return a tree of settings as dotted keys and their values."""
    if isinstance(tree, Mapping):
        items = [(f"{path}.{key}" if path else str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and tree and isinstance(tree[0], Mapping):
        items = [(f"{path}[{k}]", value) for k, value in enumerate(tree)]
    else:
        return {path: tree}
    return {key: value for inner, below in items for key, value in flatten(below, inner).items()}


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What training one set of weights gave."""

    em: Mapping[str, float]
    """Dev EM by role, of the weights that were kept."""
    history: Sequence[Mapping[str, Any]]
    """What was logged: losses and dev EM by step."""
    step: int = 0
    """The update after which the weights were kept."""

    @property
    def losses(self) -> list[tuple[int, float]]:
        """The training loss by step."""
        return [(entry["step"], entry["loss"]) for entry in self.history if "loss" in entry]

    @classmethod
    def of_history(cls, history: Sequence[Mapping[str, Any]], step: int) -> GroupResult:
        """Return the result whose weights were kept after an update."""
        at_best = (entry for entry in history if entry.get("step") == step and "eval_em" in entry)
        chosen: Mapping[str, Any] = next(at_best, {})
        em = {key.removeprefix(_EM): value for key, value in chosen.items() if key.startswith(_EM)}
        return cls(em, history, step)

    @classmethod
    def read(cls, folder: Path) -> GroupResult:
        """Return the result that a folder holds; an empty one for weights that were trained elsewhere."""
        file = folder / _RESULT
        if not file.is_file():
            return cls({}, [])
        stored = json.loads(file.read_text(encoding="utf-8"))
        return cls(stored["em"], stored["history"], stored["step"])

    def write(self, folder: Path) -> None:
        """Write the result beside the checkpoints."""
        write_json(folder / _RESULT, {"em": self.em, "step": self.step, "history": self.history})


@dataclass(slots=True)
class TrainResult:
    """A trained model: its folder and, for each set of weights, dev EM and losses."""

    folder: Path
    groups: dict[str, GroupResult] = field(default_factory=dict)

    @property
    def em(self) -> dict[str, float]:
        """Dev EM by role."""
        return {role: score for group in self.groups.values() for role, score in group.em.items()}
