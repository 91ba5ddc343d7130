"""What a rewriter makes of a prediction: edits of the user's own string, from a threshold on, and alternatives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from teo.abstain import DECIMALS, Abstention
from teo.dialogue import Dialogue
from teo.edits import EditScript, format_operations
from teo.keeping import Reason
from teo.layouts import Truncation
from teo.pipelines import Prediction
from teo.result import Alternative, Rewrite

_SPARE = 64
"""Characters that a rewrite may have beyond all that was said: longer ones have run away."""
_SPACES = re.compile(r"\s+")
_DOUBLED_MARKS = re.compile(r"([^\w\s])(?:\s?\1)+")


@dataclass(frozen=True, slots=True)
class Task:
    """A dialogue for the model: as given, as the model reads it, and what it does not read."""

    dialogue: Dialogue
    fitted: Dialogue
    truncation: Truncation


@dataclass(frozen=True, slots=True)
class Answer:
    """A rewriter's record of one dialogue, and what is behind it."""

    record: Rewrite
    prediction: Prediction | None = None
    """What the pipeline predicted; None where no model was asked."""

    @property
    def reason(self) -> Reason | None:
        """Why the utterance was kept; None where it was changed."""
        return self.record.reason


def decide(abstention: Abstention, task: Task, prediction: Prediction, min_confidence: float | None) -> Answer:
    """Return the answer for what a pipeline predicted: made from the threshold on, else the utterance is kept.

    `min_confidence` takes the place of the model's own thresholds.
    """
    proposed = propose(abstention, task, prediction)
    record = Rewrite(
        task.dialogue.utterance,
        operations=proposed.operations,
        confidence=proposed.confidence,
        truncated=task.truncation + prediction.truncation,
    )
    threshold = abstention.threshold(task.fitted) if min_confidence is None else min_confidence
    if not proposed.edits:
        return Answer(replace(record, reason="complete"), prediction)
    if proposed.confidence is not None and proposed.confidence < threshold:
        return Answer(replace(record, reason="unsure"), prediction)
    return Answer(replace(record, rewrite=proposed.rewrite, changed=True, edits=proposed.edits), prediction)


def propose(abstention: Abstention, task: Task, prediction: Prediction) -> Alternative:
    """Return a prediction as a rewrite of the user's own string, whatever the threshold."""
    utterance = task.dialogue.utterance
    edits = own_edits(utterance, task.fitted, prediction.edits)
    operations = prediction.operations
    if operations is None:
        operations = format_operations(edits.operations)
    confidence = abstention.confidence(prediction)
    return Alternative(edits.apply(utterance), edits, operations, confidence, round(prediction.score(), DECIMALS))


def with_alternatives(
    abstention: Abstention, task: Task, answer: Answer, found: Sequence[Prediction], count: int
) -> Answer:
    """Return the answer with its alternatives: itself, what was predicted first, then what else was found.

    Further texts whose operations cannot be parsed or placed as a whole are no alternatives, nor are rewrites that
    differ from another only in doubled spaces or marks.
    """
    others = sorted((other for other in found[1:] if other.well_formed), key=lambda other: -other.score())
    first, *further = (propose(abstention, task, prediction) for prediction in (found[0], *others))
    record = answer.record
    own = Alternative(record.rewrite, record.edits, record.operations, record.confidence, first.score)
    distinct: dict[str, Alternative] = {}
    for alternative in (own, first, *further):
        distinct.setdefault(without_doubles(alternative.rewrite), alternative)
    return replace(answer, record=replace(record, alternatives=tuple(distinct.values())[:count]))


def alone(answer: Answer) -> Answer:
    """Return an answer without a model call where several were asked for: it is the only alternative."""
    return replace(answer, record=replace(answer.record, alternatives=(Alternative(answer.record.rewrite),)))


def own_edits(utterance: str, fitted: Dialogue, script: EditScript) -> EditScript:
    """Return a pipeline's edits of the utterance that it read as edits of the user's own string.

    A rewrite that is longer than all that was said has run away: there are no edits then.
    """
    longest = len(fitted.utterance) + sum(len(turn) for turn in fitted.history) + _SPARE
    length = len(fitted.utterance.strip()) + sum(len(edit.new) - len(edit.old) for edit in script)
    return script.moved_to(utterance) if length <= longest else EditScript()


def without_doubles(text: str) -> str:
    """Return a text with one space for each run of white space, and one mark for each run of the same mark."""
    return _DOUBLED_MARKS.sub(r"\1", _SPACES.sub(" ", text)).strip()
