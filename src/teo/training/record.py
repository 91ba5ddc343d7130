"""What a run was: resolved configuration, versions, data hashes and git commit, written beside its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from teo.errors import ConfigError
from teo.provenance import git_commit, versions
from teo.training.config import TrainConfig
from teo.training.settings import to_toml, to_tree

RECORD = "record.json"
_LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "safetensors", "numpy")
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
    (folder / "config.toml").write_text(to_toml(to_tree(config)) + "\n", encoding="utf-8")
    (folder / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def require_same(folder: Path, config: TrainConfig) -> None:
    """Refuse to resume a run under another configuration; the message names the first difference."""
    stored = json.loads((folder / RECORD).read_text(encoding="utf-8"))["config"]
    before, now = _flatten(stored), _flatten(to_tree(config))
    for key in sorted({*before, *now}):
        if key not in _FREE and before.get(key) != now.get(key):
            raise ConfigError(
                f"{key}: the run to resume was started with {json.dumps(before.get(key))}, found "
                f"{json.dumps(now.get(key))}; resume with the same configuration or give another output"
            )


def _flatten(tree: Any, path: str = "") -> dict[str, Any]:
    if isinstance(tree, Mapping):
        items = [(f"{path}.{key}" if path else str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and tree and isinstance(tree[0], Mapping):
        items = [(f"{path}[{k}]", value) for k, value in enumerate(tree)]
    else:
        return {path: tree}
    return {key: value for inner, below in items for key, value in _flatten(below, inner).items()}
