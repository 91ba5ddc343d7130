"""Rewrite: the record that Python, the command line and HTTP all give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from teo.edits import EditScript
from teo.layouts import Truncation
from teo.pipelines import Prediction
from teo.rules import Reason


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several rewrites of an utterance."""

    rewrite: str
    edits: EditScript = field(default_factory=EditScript)
    """Applied to the utterance, these give `rewrite`, character for character."""
    operations: str = ""
    """The operations that this rewrite carries out, in the paper's notation."""
    confidence: float | None = None
    """What the calibration makes of `score`; None if no model was called."""
    score: float | None = None
    """The log-probability of what the model generated, to four decimals; None if no model was called."""

    def to_dict(self) -> dict[str, Any]:
        """Return the alternative, ready for JSON."""
        return {
            "rewrite": self.rewrite,
            "edits": self.edits.to_dicts(),
            "operations": self.operations,
            "confidence": self.confidence,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What became of one utterance."""

    rewrite: str
    changed: bool = False
    """False: `rewrite` is the utterance, byte for byte, and `edits` is empty."""
    edits: EditScript = field(default_factory=EditScript)
    """Applied to the utterance, these give `rewrite`, character for character."""
    operations: str = ""
    """The operations of what the model proposed, in the paper's notation, even if the utterance stays unchanged: the
    model's own if its pipeline generates operations, else those between utterance and rewrite."""
    confidence: float | None = None
    """The calibrated probability that what the model proposed is right; None if no model was called."""
    truncated: Truncation = field(default_factory=Truncation)
    """What the model did not get to read."""
    reason: Reason | None = None
    """Why the utterance is unchanged; None if it was changed."""
    alternatives: tuple[Alternative, ...] = ()
    """If several rewrites were asked for: distinct ones, this one first, then by their score."""
    prediction: Prediction | None = field(default=None, compare=False, repr=False)
    """What the pipeline predicted, no part of the record; None if no model was called."""

    def __str__(self) -> str:
        return self.rewrite

    def to_dict(self) -> dict[str, Any]:
        """Return the record, ready for JSON; `alternatives` only if several rewrites were asked for."""
        record: dict[str, Any] = {
            "rewrite": self.rewrite,
            "changed": self.changed,
            "edits": self.edits.to_dicts(),
            "operations": self.operations,
            "confidence": self.confidence,
            "reason": self.reason,
            "truncated": {"turns": self.truncated.turns, "characters": self.truncated.characters},
        }
        if self.alternatives:
            record["alternatives"] = [alternative.to_dict() for alternative in self.alternatives]
        return record
