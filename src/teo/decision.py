"""Rewrite or leave unchanged: the probability that a prediction is right, and the threshold that it must reach.

`confidence` is the probability that a rewrite means what the user meant, or that an utterance which the model would
leave unchanged is complete. It is a logistic function of a few pieces of evidence, fitted to judged outputs for each
language, so that one threshold serves all: an utterance is rewritten if that is more likely right than wrong. The
rules that leave an utterance unchanged without a model call are in `teo.rules`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from teo.arguments import require_share
from teo.dialogue import Dialogue
from teo.edits import EditScript, format_operations
from teo.errors import InputError, ModelError
from teo.layouts import Truncation
from teo.loading import ModelFolder
from teo.pipelines import Prediction
from teo.result import Alternative, Rewrite
from teo.units import holds_cjk

Prefer = Literal["search", "balanced", "careful"]
PREFER: Mapping[Prefer, float] = {"search": 0.2, "balanced": 0.5, "careful": 0.8}
"""Named thresholds: rewrite whenever it may help a search, if it is more likely right than wrong, or only if sure."""
THRESHOLD = PREFER["balanced"]
"""The threshold of every language unless a call asks for another."""
DECIMALS = 4
"""Decimal places of a confidence: what a record shows is what thresholds are compared with."""
LANGUAGES = ("en", "zh")
"""The languages that a calibration may tell apart."""
ANY_LANGUAGE = "any"

_SPARE = 64
"""Characters that a rewrite may have beyond all that was said: a longer one has run away."""
_UNKNOWN = "\ufffd"
_SPACES = re.compile(r"\s+")
_DOUBLED_MARKS = re.compile(r"([^\w\s])(?:\s?\1)+")

ROOT_SCORE = "root_score"
EVIDENCE: Mapping[str, Callable[[Prediction], float]] = {
    ROOT_SCORE: lambda prediction: -math.sqrt(max(-prediction.score, 0.0)),
    "score": lambda prediction: prediction.score,
    "lowest": lambda prediction: min(prediction.token_scores, default=prediction.score),
    "per_token": lambda prediction: prediction.score / max(len(prediction.token_scores), 1),
    "first": lambda prediction: prediction.token_scores[0] if prediction.token_scores else 0.0,
    "added": lambda prediction: math.log1p(sum(len(edit.new) for edit in prediction.edits)),
}
"""What a confidence may rest on, by name: log-probability of the text, its root (which tells likely texts apart better
than unlikely ones), that of the least likely, of the mean and of the first token, and how much was added."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Logistic functions: for each language a bias and the weight of each piece of evidence."""

    evidence: tuple[str, ...]
    """What the confidence of a changed utterance rests on: names of `EVIDENCE`."""
    changed: dict[str, tuple[float, ...]]
    """By language: the bias, then a weight for each piece of evidence."""
    unchanged: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By language: bias and weight of `root_score`, if the model leaves the utterance unchanged."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.evidence if name not in EVIDENCE]
        if unknown or not self.evidence or not self.changed:
            raise ValueError(f"expected evidence among {', '.join(EVIDENCE)}, found {', '.join(unknown) or 'none'}")
        for language, weights in self.changed.items():
            if len(weights) != len(self.evidence) + 1:
                raise ValueError(f"changed.{language}: expected {len(self.evidence) + 1} numbers, found {len(weights)}")

    def confidence(self, prediction: Prediction, language: str, *, changed: bool) -> float:
        """Return the probability that a prediction is right."""
        if changed or not self.unchanged:
            values = [EVIDENCE[name](prediction) for name in self.evidence]
            bias, *weights = self.changed.get(language) or self.changed[ANY_LANGUAGE]
        else:
            values = [EVIDENCE[ROOT_SCORE](prediction)]
            bias, *weights = self.unchanged.get(language) or self.unchanged[ANY_LANGUAGE]
        return logistic(bias + sum(weight * value for weight, value in zip(weights, values, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Return the functions as `teo.json` holds them."""
        return {"evidence": list(self.evidence), "changed": self.changed, "unchanged": self.unchanged}

    @classmethod
    def from_dict(cls, stored: object) -> Calibration:
        """Return the functions that `to_dict` gave."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_python(stored)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise ModelError(f"teo.json: extra.calibration: {reason}; run `teo calibrate` again") from error


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)) for any value."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def language_of(dialogue: Dialogue) -> str:
    """Return the language whose calibration a dialogue has: zh if any of it is in CJK script, else en."""
    return "zh" if any(map(holds_cjk, (dialogue.utterance, *dialogue.history))) else "en"


def choose_threshold(min_confidence: float | None, prefer: Prefer | None, default: float = THRESHOLD) -> float:
    """Return the threshold that a call asks for by number or by name."""
    if prefer is None:
        return default if min_confidence is None else require_share("min_confidence", min_confidence)
    if min_confidence is not None:
        raise InputError("prefer, min_confidence: expected one of them, found both; leave one out")
    if prefer not in PREFER:
        raise InputError(f"prefer: expected {', '.join(PREFER)}; found '{prefer}'")
    return PREFER[prefer]


@dataclass(frozen=True, slots=True)
class Decision:
    """What turns predictions of a pipeline into records."""

    calibration: Calibration | None = None
    """None: the confidence is the probability that the model gives to its whole text."""

    @classmethod
    def of(cls, folder: ModelFolder, variant: str) -> Decision:
        """Return what a model's `teo.json` says of a pipeline."""
        stored = folder.extra.get("calibration", {})
        functions = stored.get(variant) if isinstance(stored, dict) else None
        return cls(None if functions is None else Calibration.from_dict(functions))

    def confidence(self, prediction: Prediction, language: str, *, changed: bool) -> float:
        """Return the probability that a prediction is right, to four decimals."""
        if self.calibration is None:
            return round(math.exp(min(prediction.score, 0.0)), DECIMALS)
        return round(self.calibration.confidence(prediction, language, changed=changed), DECIMALS)

    def propose(self, utterance: str, fitted: Dialogue, prediction: Prediction) -> Alternative:
        """Return a prediction as a rewrite of the user's own string, whatever the threshold."""
        edits = own_edits(utterance, fitted, prediction.edits)
        operations = prediction.operations
        if operations is None:
            operations = format_operations(edits.operations)
        confidence = self.confidence(prediction, language_of(fitted), changed=bool(prediction.edits))
        return Alternative(edits.apply(utterance), edits, operations, confidence, round(prediction.score, DECIMALS))

    def decide(
        self, utterance: str, fitted: Dialogue, truncation: Truncation, prediction: Prediction, threshold: float
    ) -> Rewrite:
        """Return the record of a prediction: changed if its confidence reaches the threshold.

        `fitted` is the dialogue as the model read it, `truncation` what it did not read.
        """
        proposed = self.propose(utterance, fitted, prediction)
        record = Rewrite(
            utterance,
            operations=proposed.operations,
            confidence=proposed.confidence,
            truncated=truncation + prediction.truncation,
            prediction=prediction,
        )
        if has_run_away(fitted, prediction.edits):
            return replace(record, reason="runaway")
        if is_garbled(fitted, prediction.edits):
            return replace(record, confidence=0.0, reason="unsure")
        return take(record, proposed, threshold)

    def with_alternatives(
        self,
        record: Rewrite,
        utterance: str,
        fitted: Dialogue,
        found: Sequence[Prediction],
        count: int,
        threshold: float,
    ) -> Rewrite:
        """Return a record with its alternatives, the most confident first, "unchanged" among them.

        The record is that of the first alternative that reaches the threshold. Texts whose operations cannot be parsed
        or placed as a whole are no alternatives, nor are those that have run away, nor rewrites that differ from a more
        confident one only in doubled spaces or marks.
        """
        usable = [
            each
            for each in found
            if each.well_formed and not has_run_away(fitted, each.edits) and not is_garbled(fitted, each.edits)
        ]
        proposed = [self.propose(utterance, fitted, prediction) for prediction in usable]
        distinct: dict[str, Alternative] = {}
        for alternative in sorted(proposed, key=lambda each: (-(each.confidence or 0.0), -(each.score or 0.0))):
            distinct.setdefault(without_doubles(alternative.rewrite), alternative)
        ranked = list(distinct.values())
        unchanged = next((each for each in ranked if not each.edits), Alternative(utterance))
        others = [each for each in ranked if each is not unchanged][: count - 1]
        chosen = sorted([*others, unchanged], key=lambda each: -(each.confidence or 0.0))
        best = next((each for each in chosen if (each.confidence or 0.0) >= threshold), chosen[0])
        record = replace(record, operations=best.operations, confidence=best.confidence)
        record = replace(record, rewrite=utterance, changed=False, edits=EditScript(), reason=None)
        return replace(take(record, best, threshold), alternatives=tuple(chosen))


def take(record: Rewrite, proposed: Alternative, threshold: float) -> Rewrite:
    """Return the record with the rewrite proposed if its confidence reaches the threshold, else with the reason."""
    if proposed.confidence is not None and proposed.confidence < threshold:
        return replace(record, reason="unsure")
    if not proposed.edits:
        return replace(record, reason="complete")
    return replace(record, rewrite=proposed.rewrite, changed=True, edits=proposed.edits)


def own_edits(utterance: str, fitted: Dialogue, script: EditScript) -> EditScript:
    """Return a pipeline's edits of the utterance that it read as edits of the user's own string.

    There are none if the rewrite has run away.
    """
    return EditScript() if has_run_away(fitted, script) else script.moved_to(utterance)


def has_run_away(fitted: Dialogue, script: EditScript) -> bool:
    """Tell whether the edits make a rewrite that is longer than all that was said."""
    longest = len(fitted.utterance) + sum(len(turn) for turn in fitted.history) + _SPARE
    return len(fitted.utterance.strip()) + sum(len(edit.new) - len(edit.old) for edit in script) > longest


def is_garbled(fitted: Dialogue, script: EditScript) -> bool:
    """Tell whether the edits add a character that the model could not spell, and that the dialogue does not have."""
    added = any(_UNKNOWN in edit.new for edit in script)
    return added and not any(_UNKNOWN in turn for turn in (fitted.utterance, *fitted.history))


def without_doubles(text: str) -> str:
    """Return a text with one space for each run of white space, and one mark for each run of the same mark."""
    return _DOUBLED_MARKS.sub(r"\1", _SPACES.sub(" ", text)).strip()
