"""Rewrite: the record that Python, the command line and HTTP all give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from teo.edits import EditScript
from teo.layouts import Truncation


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What became of one utterance."""

    rewrite: str
    changed: bool = False
    """False: `rewrite` is the utterance, byte for byte, and `edits` is empty."""
    edits: EditScript = field(default_factory=EditScript)
    """Applied to the utterance, these give `rewrite`, character for character."""
    operations: str = ""
    """What stage 1 proposed, in the paper's notation; also where the utterance was kept."""
    confidence: float = 1.0
    """The calibrated chance, 0 to 1, that what the model proposed is right."""
    truncated: Truncation = field(default_factory=Truncation)
    """What the model did not get to read."""

    def __str__(self) -> str:
        return self.rewrite

    def to_dict(self) -> dict[str, Any]:
        """Return the record, ready for JSON."""
        return {
            "rewrite": self.rewrite,
            "changed": self.changed,
            "edits": self.edits.to_dicts(),
            "operations": self.operations,
            "confidence": self.confidence,
            "truncated": {"turns": self.truncated.turns, "characters": self.truncated.characters},
        }
