"""What training gives back: dev EM and losses of each set of weights, kept beside its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE = "result.json"
_EM = "eval_em_"


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
        file = folder / _FILE
        if not file.is_file():
            return cls({}, [])
        stored = json.loads(file.read_text(encoding="utf-8"))
        return cls(stored["em"], stored["history"], stored["step"])

    def write(self, folder: Path) -> None:
        """Write the result beside the checkpoints."""
        text = json.dumps({"em": self.em, "step": self.step, "history": self.history}, indent=1)
        (folder / _FILE).write_text(text + "\n", encoding="utf-8")


@dataclass(slots=True)
class TrainResult:
    """A trained model: its folder and, for each set of weights, dev EM and losses."""

    folder: Path
    groups: dict[str, GroupResult] = field(default_factory=dict)

    @property
    def em(self) -> dict[str, float]:
        """Dev EM by role."""
        return {role: score for group in self.groups.values() for role, score in group.em.items()}
