"""A saved model is one folder: `teo.json`, one subfolder per set of weights, and the card.

`teo.json` says which subfolder plays which role and what its decoder's text starts with, so that stages can be
separate models or share one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from teo.errors import ModelError
from teo.files import write_json

FORMAT_VERSION = 1
ROLES = ("stage1", "stage2", "rfis", "direct", "fast", "fused")


@dataclass(frozen=True, slots=True)
class Role:
    """Which weights play a role, and the markers that the decoder's text starts with."""

    folder: str
    prompt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What `teo.json` holds."""

    roles: dict[str, Role]
    languages: tuple[str, ...] = ()
    order: str = "position"
    """Order of the operations that stage 1 writes: position or insertions-first."""
    source_limit: int = 256
    """Tokens a source may have; the oldest turns are dropped above it."""
    threshold: float = 0.0
    """Confidence under which an utterance is kept as it is."""
    variant: str = "teo"
    """Variant that a rewriter uses unless told otherwise."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further facts about the model, kept as they are: calibration, training data, scores."""

    def save(self, path: Path) -> None:
        """Write `teo.json` into a folder, whole or not at all."""
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / "teo.json", {"format": FORMAT_VERSION, **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> ModelFolder:
        """Return what a folder's `teo.json` says."""
        file = path / "teo.json"
        if not file.is_file():
            raise ModelError(
                f"{path}: expected a teo model folder, found no teo.json; give the folder that training wrote"
            )
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            version = stored.pop("format")
            if version != FORMAT_VERSION:
                raise ModelError(f"{file}: expected format {FORMAT_VERSION}, found {version}; install a matching teo")
            stored["roles"] = {
                name: Role(role["folder"], tuple(role.get("prompt", ()))) for name, role in stored["roles"].items()
            }
            stored["languages"] = tuple(stored.get("languages", ()))
            return cls(**stored)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ModelError(f"{file}: not a teo model description ({error}); save the model again") from error
