"""Rewriter: dialogue in, rewrite out. It keeps no conversation, and may be used from several threads at once.

What a model does not read is stated in the record. Turns are left out whole, the oldest first, until the rest fits;
the utterance is never cut: one that leaves no room for any turn before it is kept as it is, without a model call, and
counted as unread where it does not fit itself. `truncation="error"` refuses such dialogues instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from teo.calibration import PLACES
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import InputError, TeoError
from teo.evaluation.abstain import calibration_of
from teo.folder import ModelFolder
from teo.layouts import Truncation
from teo.own_text import edits_of
from teo.pipelines import Prediction, Variant, find_variant, predict_several, require_read, require_roles
from teo.result import Alternative, Rewrite
from teo.runtime.generator import Generator
from teo.runtime.locate import locate_model
from teo.runtime.onnx_codec import replace_surrogates
from teo.runtime.rules import reason_to_keep
from teo.stages import Cast, fit_dialogue

Runtime = Literal["onnx", "torch"]
TruncationRule = Literal["oldest", "error"]
DialogueLike = Dialogue | Mapping[str, Any]

MOST_ALTERNATIVES = 16
"""How many rewrites of one utterance may be asked for."""

_BATCH_ROWS = 256
"""Rows that a generator may take at once; `batch_size` decides how many it gets."""
_WIDER = 2
"""Texts searched for each rewrite asked for: several texts may say the same rewrite, or none."""


class Rewriter:
    """A loaded model and the pipeline that it plays."""

    def __init__(self, cast: Cast, folder: ModelFolder, *, name: str = "model", variant: str | None = None) -> None:
        self._cast = cast
        self._variant = _playable(variant or folder.variant)
        require_roles(self._variant, cast, tuple(folder.roles), name)
        self._name = name
        self._calibration, self._thresholds = calibration_of(folder, self._variant.name)
        # Every player is loaded now: later there may be several threads, and no one to wait for.
        players = [cast.player(role) for group in self._variant.needs for role in group if cast.has(role)]
        self._generator: Generator = players[0].generator

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
        if threads is not None and threads < 1:
            raise InputError(f"threads: expected at least 1, found {threads}")
        folder = locate_model(path)
        if runtime == "onnx":
            from teo.runtime.onnx_generator import load_system

            system = load_system(folder, threads=threads or 0, batch_size=_BATCH_ROWS)
        elif runtime == "torch":
            system = _load_torch(folder, threads)
        else:
            raise InputError(f"runtime: expected onnx or torch, found '{runtime}'")
        return cls(system, system.folder, name=folder.name if path else "default", variant=variant)

    @property
    def name(self) -> str:
        """The model's name: that of its folder."""
        return self._name

    @property
    def variant(self) -> str:
        """The pipeline's name."""
        return self._variant.name

    @property
    def threshold(self) -> float:
        """The confidence below which an utterance is kept, unless its language has its own or a call says otherwise."""
        return self._thresholds.default

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the languages that have their own."""
        return dict(self._thresholds.by_language)

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
        results = self.try_many([dialogue], min_confidence=min_confidence, truncation=truncation, n_best=n_best)
        return _raised(results[0])

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
        return [_raised(one, f"dialogues[{number}]: ") for number, one in enumerate(results)]

    def try_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return what `rewrite_many` does, with the error of a dialogue that cannot be rewritten in its place."""
        if min_confidence is not None and not 0 <= min_confidence <= 2:  # above 1: nothing is changed
            raise InputError(f"min_confidence: expected 0 to 1, found {min_confidence}")
        if not 1 <= n_best <= MOST_ALTERNATIVES:
            raise InputError(f"n_best: expected 1 to {MOST_ALTERNATIVES}, found {n_best}")
        if n_best > 1:
            require_read(self._variant)
        if truncation not in ("oldest", "error"):
            raise InputError(f"truncation: expected oldest or error, found '{truncation}'")
        if batch_size < 1:
            raise InputError(f"batch_size: expected at least 1, found {batch_size}")
        results: list[Rewrite | TeoError] = []
        asked: list[tuple[int, _Task]] = []
        for number, one in enumerate(dialogues):
            prepared = self._prepare(one, refuse=truncation == "error")
            if isinstance(prepared, _Task):
                asked.append((number, prepared))
                results.append(Rewrite(prepared.dialogue.utterance))
            elif isinstance(prepared, Rewrite) and n_best > 1:
                results.append(replace(prepared, alternatives=(Alternative(prepared.rewrite),)))
            else:
                results.append(prepared)
        for start in range(0, len(asked), batch_size):
            part = asked[start : start + batch_size]
            answers = self._ask([task for _, task in part], min_confidence, n_best)
            for (number, _), answer in zip(part, answers, strict=True):
                results[number] = answer
        return results

    def _prepare(self, given: DialogueLike, *, refuse: bool) -> _Task | Rewrite | TeoError:
        """Return what to ask the model, or the answer where there is nothing to ask."""
        try:
            dialogue = given if isinstance(given, Dialogue) else Dialogue.from_row(given)
        except InputError as error:
            return error
        utterance = dialogue.utterance
        if reason_to_keep(dialogue):
            return Rewrite(utterance)
        fitted, truncation = fit_dialogue(self._generator, _readable(dialogue, self.source_limit))
        if self._generator.measure(fitted.utterance) + 2 > self.source_limit:
            characters = sum(len(turn) for turn in dialogue.history) + len(utterance)
            truncation = Truncation(len(dialogue.history), characters)
        if truncation and refuse:
            return _too_long(truncation, self.source_limit)
        if reason_to_keep(fitted):  # nothing of the history is left
            return Rewrite(utterance, truncated=truncation)
        return _Task(dialogue, fitted, truncation)

    def _ask(self, tasks: Sequence[_Task], min_confidence: float | None, n_best: int) -> list[Rewrite]:
        """Return the model's answers to one batch."""
        rows = [Row(str(number), task.fitted, task.fitted.utterance) for number, task in enumerate(tasks)]
        predictions = self._variant.run(self._cast, rows, 0)
        others: list[list[Prediction]] = [[] for _ in tasks]
        if n_best > 1:
            others = predict_several(self._variant, self._cast, rows, _WIDER * n_best)
        answers = []
        for task, prediction, further in zip(tasks, predictions, others, strict=True):
            threshold = self._thresholds.of(task.fitted) if min_confidence is None else min_confidence
            answer = self._finish(task, prediction, threshold)
            answers.append(self._list(task, answer, [prediction, *further], n_best) if n_best > 1 else answer)
        return answers

    def _finish(self, task: _Task, prediction: Prediction, threshold: float) -> Rewrite:
        """Return the record of what a pipeline predicted: edits of the user's own string."""
        utterance = task.dialogue.utterance
        further = prediction.truncation
        truncated = Truncation(task.truncation.turns + further.turns, task.truncation.characters + further.characters)
        made = self._propose(task, prediction)
        kept = Rewrite(utterance, operations=made.operations, confidence=made.confidence, truncated=truncated)
        if not made.edits or made.confidence < threshold:
            return kept
        return Rewrite(made.rewrite, True, made.edits, made.operations, made.confidence, truncated)

    def _propose(self, task: _Task, prediction: Prediction) -> Alternative:
        """Return what a pipeline predicted as a rewrite of the user's own string, whatever the threshold."""
        utterance, score = task.dialogue.utterance, sum(prediction.scores.values())
        evidence = prediction.evidence(self._calibration.rest_weight)
        script = edits_of(utterance, task.fitted, prediction.rewrite)
        operations = prediction.operations if prediction.operations is not None else _operations(script)
        confidence = self._calibration.confidence(evidence)
        return Alternative(script.apply(utterance), script, operations, confidence, round(score, PLACES))

    def _list(self, task: _Task, answer: Rewrite, found: Sequence[Prediction], count: int) -> Rewrite:
        """Return the answer with its alternatives: itself, what was predicted first, then what else was found.

        Further texts whose operations cannot be read or placed as a whole are no alternatives.
        """
        first, *others = (self._propose(task, one) for one in found if one is found[0] or one.well_formed)
        own = Alternative(answer.rewrite, answer.edits, answer.operations, answer.confidence, first.score)
        distinct = {own.rewrite: own}
        for one in (first, *sorted(others, key=lambda other: -other.score)):
            distinct.setdefault(one.rewrite, one)
        return replace(answer, alternatives=tuple(distinct.values())[:count])


@dataclass(frozen=True, slots=True)
class _Task:
    """A dialogue for the model: as given, as the model reads it, and what it does not read."""

    dialogue: Dialogue
    fitted: Dialogue
    truncation: Truncation


def _load_torch(folder: Path, threads: int | None) -> Any:
    from teo.errors import MissingExtraError
    from teo.loading import System

    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingExtraError("runtime='torch'", str(error.name), "train") from error
    if threads:
        torch.set_num_threads(threads)
    return System.load(folder, device="cpu", batch_size=_BATCH_ROWS)


def _playable(name: str) -> Variant:
    variant = find_variant(name)
    if variant.name == "gold":
        raise InputError("variant: 'gold' reads the reference rewrites of a dataset; use it with `teo evaluate`")
    return variant


def _readable(dialogue: Dialogue, limit: int) -> Dialogue:
    """Return the dialogue with a sign for every lone surrogate; turns that cannot be reached are left as they are."""
    reached = max(0, len(dialogue.history) - limit)  # every turn takes a token at least
    history = (*dialogue.history[:reached], *map(replace_surrogates, dialogue.history[reached:]))
    return Dialogue(history, replace_surrogates(dialogue.utterance))


def _too_long(truncation: Truncation, limit: int) -> InputError:
    return InputError(
        f"history: expected a dialogue of at most {limit} tokens, found one of which {truncation.turns} turns "
        f"({truncation.characters} characters) do not fit; shorten it, or let the oldest turns go (truncation 'oldest')"
    )


def _operations(script: EditScript) -> str:
    from teo.edits import format_operations

    return format_operations(script.operations)


def _raised(result: Rewrite | TeoError, where: str = "") -> Rewrite:
    if isinstance(result, TeoError):
        raise type(result)(f"{where}{result}") if where else result
    return result


__all__ = ["DialogueLike", "Rewriter", "Runtime", "TruncationRule", "locate_model"]
