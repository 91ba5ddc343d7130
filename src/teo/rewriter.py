"""Rewriter: dialogue in, rewrite out. It keeps no conversation, and may be used from several threads at once.

    rules -> pipeline -> threshold -> edits of the user's own string

What a model does not read is stated in the record. Turns are left out whole, the oldest first, until the rest fits;
the utterance is never cut: one that leaves no room for any turn before it is kept as it is, without a model call, and
counted as unread where it does not fit itself. `truncation="error"` refuses such dialogues instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from teo.abstain import DECIMALS, Abstention, Reason, reason_to_keep
from teo.dialogue import Dialogue
from teo.edits import EditScript, format_operations
from teo.errors import InputError, TeoError
from teo.layouts import Truncation, TruncationRule
from teo.loading import Model, ModelFolder, Runtime, open_model
from teo.pipelines import PIPELINES, Prediction, find_variant, predict_several, require_one_text, require_roles
from teo.result import Alternative, Rewrite
from teo.stages import Stages, fit_dialogue, source_length
from teo.units import replace_surrogates

DialogueLike = Dialogue | Mapping[str, Any]

MOST_ALTERNATIVES = 16
"""How many rewrites of one utterance may be asked for."""

_BATCH_ROWS = 256
"""Rows that a generator may take at once; `batch_size` decides how many it gets."""
_BEAMS_PER_ALTERNATIVE = 2
"""Texts searched for each rewrite asked for: several texts may say the same rewrite, or none."""
_SPARE = 64
"""Characters that a rewrite may have beyond all that was said: longer ones have run away."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A rewriter's record of one dialogue, and what is behind it."""

    record: Rewrite
    reason: Reason | None = None
    """Why the utterance was kept; None where it was changed."""
    prediction: Prediction | None = None
    """What the pipeline predicted; None where no model was asked."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A dialogue for the model: as given, as the model reads it, and what it does not read."""

    dialogue: Dialogue
    fitted: Dialogue
    truncation: Truncation


class Rewriter:
    """The stages of a model, the pipeline that runs them, and when its rewrites are made."""

    def __init__(self, stages: Stages, folder: ModelFolder, *, name: str = "model", variant: str | None = None) -> None:
        self._pipeline = find_variant(variant or folder.variant, PIPELINES)
        require_roles(self._pipeline, PIPELINES, stages.by_role, name)
        self._stages = stages
        self._name = name
        self._abstention = Abstention.of(folder, self._pipeline.name)
        self._generator = stages[self._pipeline.roles(stages)[0]].generator

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path | None = None,
        *,
        threads: int | None = None,
        variant: str | None = None,
        runtime: Runtime = "onnx",
    ) -> Rewriter:
        """Return the rewriter of a model: a folder, a hub id, or with no path the one that comes with the package.

        `threads`: processor threads of a call, by default as many as there are, at most four. `variant`: the pipeline,
        by default the model's own. `runtime`: onnx, or torch for a trained folder that was not exported.
        """
        model = open_model(path, runtime=runtime, threads=threads, device="cpu", batch_size=_BATCH_ROWS)
        return cls.of_model(model, variant)

    @classmethod
    def of_model(cls, model: Model, variant: str | None = None) -> Rewriter:
        """Return the rewriter of a model that was opened; its weights are loaded now, which may take a moment."""
        pipeline = find_variant(variant or model.folder.variant, PIPELINES)
        require_roles(pipeline, PIPELINES, model.folder.roles, str(model.path))
        stages = model.load(pipeline.roles(model.folder.roles))
        return cls(stages, model.folder, name=model.name, variant=pipeline.name)

    @property
    def name(self) -> str:
        """The model's name: that of its folder."""
        return self._name

    @property
    def variant(self) -> str:
        """The pipeline's name."""
        return self._pipeline.name

    @property
    def threshold(self) -> float:
        """The confidence below which an utterance is kept, unless its language has its own or a call says otherwise."""
        return self._abstention.thresholds.default

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the languages that have their own."""
        return dict(self._abstention.thresholds.by_language)

    @property
    def source_limit(self) -> int:
        """How many tokens of a dialogue the model reads."""
        return self._generator.source_limit

    def rewrite(
        self,
        history: Sequence[str] | None = None,
        utterance: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> Rewrite:
        """Return the rewrite of an utterance after its history, or of the last of some chat messages.

        `min_confidence`: keep utterances below it, whatever the model's own thresholds. `n_best`: from 2 on, the
        record has so many distinct `alternatives`, or as many as the model finds; its rewrite is the first of them.
        """
        if messages is not None:
            if history is not None or utterance is not None:
                raise InputError("messages: expected either messages or history and utterance, found both")
            dialogue = Dialogue.from_messages(messages)
        elif utterance is None:
            raise InputError(
                "utterance: missing; call rewrite(history=[...], utterance='...') or rewrite(messages=[...])"
            )
        else:
            dialogue = Dialogue.from_turns(() if history is None else history, utterance)
        (answer,) = self.answer_many([dialogue], min_confidence=min_confidence, truncation=truncation, n_best=n_best)
        if isinstance(answer, TeoError):
            raise answer
        return answer.record

    def rewrite_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite]:
        """Return the rewrites of many dialogues, in order: `Dialogue` values or JSON rows.

        The same dialogue gets the same record, byte for byte, alone or among any others.
        """
        results = self.try_many(
            dialogues, batch_size, min_confidence=min_confidence, truncation=truncation, n_best=n_best
        )
        records = []
        for number, result in enumerate(results):
            if isinstance(result, TeoError):
                raise InputError(f"dialogues[{number}]: {result}") from result
            records.append(result)
        return records

    def try_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return what `rewrite_many` does; errors stand in the place of dialogues that cannot be rewritten."""
        answers = self.answer_many(
            dialogues, batch_size, min_confidence=min_confidence, truncation=truncation, n_best=n_best
        )
        return [answer if isinstance(answer, TeoError) else answer.record for answer in answers]

    def answer_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Answer | TeoError]:
        """Return what `try_many` does, each record with the reason for keeping and the prediction behind it."""
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise InputError(f"min_confidence: expected 0 to 1, found {min_confidence}")
        if not 1 <= n_best <= MOST_ALTERNATIVES:
            raise InputError(f"n_best: expected 1 to {MOST_ALTERNATIVES}, found {n_best}")
        if n_best > 1:
            require_one_text(self._pipeline)
        if truncation not in ("oldest", "error"):
            raise InputError(f"truncation: expected oldest or error, found '{truncation}'")
        if batch_size < 1:
            raise InputError(f"batch_size: expected at least 1, found {batch_size}")
        prepared = [self._prepare(dialogue, refuse=truncation == "error") for dialogue in dialogues]
        tasks = [task for task in prepared if isinstance(task, _Task)]
        answers = iter(
            [
                answer
                for start in range(0, len(tasks), batch_size)
                for answer in self._ask(tasks[start : start + batch_size], min_confidence, n_best)
            ]
        )
        return [next(answers) if isinstance(item, _Task) else _alone(item) if n_best > 1 else item for item in prepared]

    def _prepare(self, raw: DialogueLike, *, refuse: bool) -> _Task | Answer | TeoError:
        """Return what to ask the model, or the answer where there is nothing to ask."""
        try:
            dialogue = raw if isinstance(raw, Dialogue) else Dialogue.from_row(raw)
        except InputError as error:
            return error
        utterance = dialogue.utterance
        if reason := reason_to_keep(dialogue):
            return Answer(Rewrite(utterance), reason)
        fitted, truncation = fit_dialogue(self._generator, _encodable(dialogue, self.source_limit))
        if source_length(self._generator, fitted.utterance) > self.source_limit:
            characters = sum(len(turn) for turn in dialogue.history) + len(utterance)
            truncation = Truncation(len(dialogue.history), characters)
        if truncation and refuse:
            return _too_long(truncation, self.source_limit)
        if not any(turn.strip() for turn in fitted.history):  # nothing of the history is left
            return Answer(Rewrite(utterance, truncated=truncation), "too-long")
        return _Task(dialogue, fitted, truncation)

    def _ask(self, tasks: Sequence[_Task], min_confidence: float | None, n_best: int) -> list[Answer]:
        """Return the model's answers to one batch."""
        dialogues = [task.fitted for task in tasks]
        predictions = self._pipeline.run(self._stages, dialogues)
        answers = [self._decide(*pair, min_confidence) for pair in zip(tasks, predictions, strict=True)]
        if n_best == 1:
            return answers
        several = predict_several(self._pipeline, self._stages, dialogues, _BEAMS_PER_ALTERNATIVE * n_best)
        return [
            self._with_alternatives(task, answer, [prediction, *further], n_best)
            for task, answer, prediction, further in zip(tasks, answers, predictions, several, strict=True)
        ]

    def _decide(self, task: _Task, prediction: Prediction, min_confidence: float | None) -> Answer:
        """Return the record of what a pipeline predicted: made from the threshold on, else the utterance is kept."""
        proposed = self._propose(task, prediction)
        record = Rewrite(
            task.dialogue.utterance,
            operations=proposed.operations,
            confidence=proposed.confidence,
            truncated=task.truncation + prediction.truncation,
        )
        threshold = self._abstention.threshold(task.fitted) if min_confidence is None else min_confidence
        if not proposed.edits:
            return Answer(record, "complete", prediction)
        if proposed.confidence < threshold:
            return Answer(record, "unsure", prediction)
        return Answer(replace(record, rewrite=proposed.rewrite, changed=True, edits=proposed.edits), None, prediction)

    def _propose(self, task: _Task, prediction: Prediction) -> Alternative:
        """Return a prediction as a rewrite of the user's own string, whatever the threshold."""
        utterance = task.dialogue.utterance
        edits = own_edits(utterance, task.fitted, prediction.edits)
        operations = prediction.operations
        if operations is None:
            operations = format_operations(edits.operations)
        confidence = self._abstention.confidence(prediction)
        return Alternative(edits.apply(utterance), edits, operations, confidence, round(prediction.score(), DECIMALS))

    def _with_alternatives(self, task: _Task, answer: Answer, found: Sequence[Prediction], count: int) -> Answer:
        """Return the answer with its alternatives: itself, what was predicted first, then what else was found.

        Further texts whose operations cannot be parsed or placed as a whole are no alternatives.
        """
        first = self._propose(task, found[0])
        others = [self._propose(task, prediction) for prediction in found[1:] if prediction.well_formed]
        record = answer.record
        own = Alternative(record.rewrite, record.edits, record.operations, record.confidence, first.score)
        distinct = {own.rewrite: own}
        for alternative in (first, *sorted(others, key=lambda other: -other.score)):
            distinct.setdefault(alternative.rewrite, alternative)
        return replace(answer, record=replace(record, alternatives=tuple(distinct.values())[:count]))


def own_edits(utterance: str, fitted: Dialogue, script: EditScript) -> EditScript:
    """Return a pipeline's edits of the utterance that it read as edits of the user's own string.

    A rewrite that is longer than all that was said has run away: there are no edits then.
    """
    longest = len(fitted.utterance) + sum(len(turn) for turn in fitted.history) + _SPARE
    length = len(fitted.utterance.strip()) + sum(len(edit.new) - len(edit.old) for edit in script)
    return script.moved_to(utterance) if length <= longest else EditScript()


def _encodable(dialogue: Dialogue, limit: int) -> Dialogue:
    """Return the dialogue without lone surrogates; turns that cannot be reached are left as they are."""
    reached = max(0, len(dialogue.history) - limit)  # every turn takes a token at least
    history = (*dialogue.history[:reached], *map(replace_surrogates, dialogue.history[reached:]))
    return Dialogue(history, replace_surrogates(dialogue.utterance))


def _too_long(truncation: Truncation, limit: int) -> InputError:
    return InputError(
        f"history: expected a dialogue of at most {limit} tokens, found one of which {truncation.turns} turns "
        f"({truncation.characters} characters) do not fit; shorten it, or let the oldest turns go (truncation 'oldest')"
    )


def _alone(answer: Answer | TeoError) -> Answer | TeoError:
    """Return an answer without a model call as one of several were asked for: it is the only alternative."""
    if isinstance(answer, TeoError):
        return answer
    alternatives = (Alternative(answer.record.rewrite),)
    return replace(answer, record=replace(answer.record, alternatives=alternatives))


__all__ = ["Answer", "DialogueLike", "Rewriter", "Runtime", "TruncationRule"]
