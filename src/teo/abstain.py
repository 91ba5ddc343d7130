"""When a model's rewrite is made: from a calibrated confidence on, with a threshold for each language.

The rules that keep an utterance without asking a model stand in `teo.keeping`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from teo.dialogue import Dialogue
from teo.errors import InputError, ModelError
from teo.loading import ModelFolder
from teo.pipelines import Prediction
from teo.units import holds_cjk

DECIMALS = 4
"""Decimal places of a confidence: what a record shows is what thresholds are compared with."""
UNCALIBRATED_THRESHOLD = 0.5
"""Threshold of a pipeline without calibration, for the probability that the model gives to its whole text."""
LANGUAGES = ("en", "zh")
"""The languages that have thresholds of their own."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A non-decreasing curve: confidence at some log-probabilities, straight lines between them."""

    scores: tuple[float, ...]
    confidences: tuple[float, ...]
    rest_weight: float = 1.0
    """What the tokens after the first count in a score: the first one says whether to change, the rest what."""

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.confidences):
            raise InputError(
                f"calibration: expected as many scores as confidences and at least one, found {len(self.scores)} "
                f"and {len(self.confidences)}"
            )
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        if not rising or list(self.confidences) != sorted(self.confidences):
            raise InputError("calibration: expected scores that rise and confidences that do not fall")
        if self.confidences[0] < 0 or self.confidences[-1] > 1:
            raise InputError("calibration: expected confidences from 0 to 1")
        if not 0 <= self.rest_weight <= 1:
            raise InputError(f"calibration: rest_weight: expected 0 to 1, found {self.rest_weight}")

    def confidence(self, score: float) -> float:
        """Return the chance that a rewrite of this log-probability is right, to four decimals."""
        return round(float(np.interp(score, self.scores, self.confidences)), DECIMALS)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as `teo.json` holds it."""
        return {
            "scores": list(self.scores),
            "confidences": list(self.confidences),
            "rest_weight": self.rest_weight,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Calibration:
        """Return the curve that `to_dict` gave."""
        try:
            scores, confidences = (tuple(map(float, stored[key])) for key in ("scores", "confidences"))
            return cls(scores, confidences, float(stored.get("rest_weight", 1.0)))
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise ModelError(f"teo.json: extra.calibration: not a calibration curve ({error})") from error


def language_of(dialogue: Dialogue) -> str:
    """Return the language whose threshold a dialogue has: zh where any of it is in CJK script, else en."""
    return "zh" if any(map(holds_cjk, (dialogue.utterance, *dialogue.history))) else "en"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The confidences below which utterances are kept: one for each language that has its own, one for the others."""

    default: float = 0.0
    by_language: Mapping[str, float] = field(default_factory=dict)

    def of_language(self, language: str) -> float:
        """Return the threshold of a language."""
        return self.by_language.get(language, self.default)

    def to_dict(self) -> dict[str, Any]:
        """Return the thresholds as `teo.json` holds them beside a curve."""
        return {"threshold": self.default, "thresholds": dict(self.by_language)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], default: float = 0.0) -> Thresholds:
        """Return the thresholds that `to_dict` gave; a model may have one for all languages, or none of its own."""
        try:
            by_language = {str(name): float(value) for name, value in stored.get("thresholds", {}).items()}
            return cls(float(stored.get("threshold", default)), by_language)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(f"teo.json: extra.calibration: not a threshold for each language ({error})") from error


@dataclass(frozen=True, slots=True)
class Abstention:
    """What decides whether a pipeline's rewrite is made: its confidence, and the threshold of the language."""

    thresholds: Thresholds
    calibration: Calibration | None = None
    """None: the confidence is the probability that the model gives to its whole text."""

    @classmethod
    def of(cls, folder: ModelFolder, variant: str) -> Abstention:
        """Return what a model's `teo.json` says of a pipeline; without calibration a cautious default."""
        stored = folder.extra.get("calibration", {})
        curve = stored.get(variant) if isinstance(stored, dict) else None
        if curve is not None:
            return cls(Thresholds.from_dict(curve, folder.threshold), Calibration.from_dict(curve))
        return cls(Thresholds(folder.threshold or UNCALIBRATED_THRESHOLD))

    def confidence(self, prediction: Prediction) -> float:
        """Return the chance that a predicted rewrite is right, to four decimals."""
        if self.calibration is None:
            return round(math.exp(min(prediction.score(), 0.0)), DECIMALS)
        return self.calibration.confidence(prediction.score(self.calibration.rest_weight))

    def threshold(self, dialogue: Dialogue) -> float:
        """Return the confidence from which on an utterance is changed."""
        return self.thresholds.of_language(language_of(dialogue))
