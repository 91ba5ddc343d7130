"""Rewriter: dialogue in, rewrite out. It is stateless, and may be used from several threads at once.

    plain text -> rules -> reading -> pipeline -> decision -> edits of the user's own string

The history is read as plain text (`teo.plain_text`): no mark of Markdown or HTML reaches a rewrite. The utterance is
read without polite words around it, Traditional characters as Simplified ones (`teo.reading`). The record says
what the model did not read. A turn that is too long is read in part, and if that is not enough, the oldest turns are
dropped (`teo.layouts.fit_history`). The utterance is never cut: if it is so long that no history fits beside it, it
stays unchanged, without a model call. `truncation="error"` refuses such dialogues instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teo.arguments import require_integer
from teo.decision import THRESHOLD, Decision, Prefer, choose_threshold
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.interface import BaseRewriter, DialogueLike, require_dialogues, require_truncation
from teo.layouts import Truncation, TruncationRule
from teo.loading import Dtype, Model, ModelFolder, Runtime, open_model, require_dtype
from teo.pipelines import Pipeline, choose_pipeline, predict_several, predict_unchanged, require_one_text
from teo.plain_text import read_history
from teo.reading import Reading
from teo.result import Alternative, Rewrite
from teo.rules import KeepList, Reason, reason_unchanged
from teo.stages import Stages, fit_dialogue

logger = logging.getLogger(__name__)

MOST_ALTERNATIVES = 16
"""How many rewrites of one utterance may be asked for."""

_BATCH_ROWS = 256
"""Rows that a generator may take at once; `batch_size` decides how many it gets."""
_BEAMS_PER_ALTERNATIVE = 2
"""Texts searched for each rewrite asked for: several texts may say the same rewrite, or none."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A dialogue for the model: as given, how it is read, as much of that as fits, and what the model does not read."""

    dialogue: Dialogue
    reading: Reading
    fitted: Dialogue
    truncation: Truncation


class Rewriter(BaseRewriter):
    """Completes the last utterance of a dialogue.

    Load a model once with `Rewriter.from_pretrained()`; then `rewrite` takes one dialogue, `rewrite_many` a list of
    them, and `arewrite` and `arewrite_many` can be awaited:

        rewriter = Rewriter.from_pretrained()
        rewriter.rewrite(["Who wrote Dune?", "Frank Herbert."], "When was he born?").rewrite

    Each gives a `Rewrite`: the rewritten utterance, its edits, a confidence, and the reason if it is unchanged.
    """

    def __init__(
        self,
        stages: Stages,
        folder: ModelFolder,
        *,
        name: str = "model",
        variant: str | Pipeline | None = None,
        keep: Iterable[str] | KeepList = (),
        model: Model | None = None,
    ) -> None:
        """Take loaded stages and what their `teo.json` says; with the `model` they come from it can be pickled."""
        self._pipeline = choose_pipeline(variant or folder.variant, stages.by_role, name)
        self._stages, self._model = stages, model
        self._name = name
        self._keep = keep if isinstance(keep, KeepList) else KeepList.of(keep)
        self._decision = Decision.of(folder, self._pipeline.name)
        self._threshold = folder.threshold or THRESHOLD
        self._generator = stages[self._pipeline.roles(stages.by_role)[0]].generator
        self._warned = False

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path | None = None,
        *,
        threads: int | None = None,
        variant: str | None = None,
        runtime: Runtime = "onnx",
        device: str = "auto",
        dtype: Dtype = "float32",
        keep: Iterable[str] = (),
    ) -> Rewriter:
        """Return the rewriter of a model: a folder, hub:owner/name, or without a path the one of the package.

        `threads`: processor threads of a call, by default as many as there are, at most four. `variant`: the pipeline,
        by default the model's own. `runtime`: onnx, or torch for a trained folder that was not exported. `device` and
        `dtype` are torch's: auto (CUDA if there is one), cpu, cuda or cuda:1; float32, or bfloat16 on CUDA. `keep`:
        utterances to leave unchanged without a model call, each a whole one ("ticket closed") or a
        `/regular expression/`.
        """
        bf16 = require_dtype(dtype) == "bfloat16"
        model = open_model(path, runtime=runtime, threads=threads, device=device, bf16=bf16, batch_size=_BATCH_ROWS)
        return cls.of_model(model, variant, keep)

    @classmethod
    def of_model(cls, model: Model, variant: str | None = None, keep: Iterable[str] | KeepList = ()) -> Rewriter:
        """Return the rewriter of a model that was opened; its weights are loaded now, which may take a moment."""
        pipeline = choose_pipeline(variant or model.folder.variant, model.folder.roles, str(model.path))
        stages = model.load(pipeline.roles(model.folder.roles))
        return cls(stages, model.folder, name=model.name, variant=pipeline, keep=keep, model=model)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made in another process: it loads the model from its folder."""
        if self._model is None:
            raise InputError(
                "Rewriter: expected one of a model folder to pickle, found one of bare stages; "
                "load it with Rewriter.from_pretrained"
            )
        return type(self).of_model, (self._model, self.variant, self._keep)

    def __repr__(self) -> str:
        return f"Rewriter({self.name!r}, variant={self.variant!r}, source_limit={self.source_limit})"

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
        """The confidence below which an utterance stays unchanged, unless a call asks for another."""
        return self._threshold

    @property
    def source_limit(self) -> int:
        """How many tokens of a dialogue the model reads."""
        return self._generator.source_limit

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text is to the model; for very long text a lower bound."""
        return self._generator.measure(text) - 1

    def try_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return what `rewrite_many` does, with an error in the place of each dialogue that cannot be rewritten."""
        threshold = choose_threshold(min_confidence, prefer, self._threshold)
        if min_confidence is None:
            self._warn_uncalibrated()
        if require_integer("n_best", n_best, 1, MOST_ALTERNATIVES) > 1:
            require_one_text(self._pipeline)
        require_integer("batch_size", batch_size, 1)
        require_truncation(truncation)
        require_dialogues(dialogues)
        results: list[Rewrite | TeoError] = []
        tasks: list[tuple[int, _Task]] = []  # what the model is called for, by position
        for number, dialogue in enumerate(dialogues):
            prepared = self._prepare(dialogue, truncation, n_best)
            if isinstance(prepared, _Task):
                tasks.append((number, prepared))
                prepared = Rewrite(prepared.dialogue.utterance)  # until the model has answered
            results.append(prepared)
        for start in range(0, len(tasks), batch_size):
            batch = tasks[start : start + batch_size]
            records = self._predict([task for _, task in batch], threshold, n_best)
            for (number, _), record in zip(batch, records, strict=True):
                results[number] = record
        return results

    def fit(self, dialogue: Dialogue) -> tuple[Dialogue, Truncation]:
        """Return what the model reads of a dialogue, and what is left out of it."""
        return fit_dialogue(self._generator, dialogue, layout=self._stages.layout)

    def _prepare(self, raw: DialogueLike, rule: TruncationRule, n_best: int) -> _Task | Rewrite | TeoError:
        """Return what to call the model for, or the result if no call is needed."""
        try:
            dialogue = raw if isinstance(raw, Dialogue) else Dialogue.from_row(raw)
        except InputError as error:
            return error
        plain = read_history(dialogue)
        if reason := reason_unchanged(plain, self._keep):
            return _without_call(dialogue, reason, Truncation(), n_best)
        reading = Reading.of(plain)
        if reason := reason_unchanged(reading.dialogue):  # a reaction in Traditional characters
            return _without_call(dialogue, reason, Truncation(), n_best)
        fitted, truncation = self.fit(reading.dialogue)
        if truncation and rule == "error":
            return _too_long(truncation, self._generator.source_limit)
        if not any(turn.strip() for turn in fitted.history):  # nothing of the history is left
            return _without_call(dialogue, "too-long", truncation, n_best)
        return _Task(dialogue, reading, fitted, truncation)

    def _predict(self, tasks: Sequence[_Task], threshold: float, n_best: int) -> list[Rewrite]:
        """Return the records of one batch."""
        dialogues = [task.fitted for task in tasks]
        predictions = [
            task.reading.restore(prediction)
            for task, prediction in zip(tasks, self._pipeline.run(self._stages, dialogues), strict=True)
        ]
        records = [
            self._decision.decide(task.dialogue.utterance, task.fitted, task.truncation, prediction, threshold)
            for task, prediction in zip(tasks, predictions, strict=True)
        ]
        if n_best == 1:
            return records
        several = predict_several(self._pipeline, self._stages, dialogues, _BEAMS_PER_ALTERNATIVE * n_best)
        unchanged = predict_unchanged(self._pipeline, self._stages, dialogues)
        return [
            self._decision.with_alternatives(
                record,
                task.dialogue.utterance,
                task.fitted,
                [prediction, *map(task.reading.restore, (*further, same))],
                n_best,
                threshold,
            )
            for record, task, prediction, further, same in zip(
                records, tasks, predictions, several, unchanged, strict=True
            )
        ]

    def _warn_uncalibrated(self) -> None:
        """Say once that the threshold is a default if it is one."""
        if self._decision.calibration is None and not self._warned:
            self._warned = True
            logger.warning(
                "%s: the variant '%s' was not calibrated: its confidence is the raw probability of the text, and "
                "rewrites below %s are not made; fit it with `teo calibrate`",
                self._name,
                self.variant,
                self.threshold,
            )


def _without_call(dialogue: Dialogue, reason: Reason, truncation: Truncation, n_best: int) -> Rewrite:
    """Return the record of an utterance that stays unchanged without a model call; alone among its alternatives."""
    alternatives = (Alternative(dialogue.utterance),) if n_best > 1 else ()
    return Rewrite(dialogue.utterance, truncated=truncation, reason=reason, alternatives=alternatives)


def _too_long(truncation: Truncation, limit: int) -> InputError:
    return InputError(
        f"history: expected a dialogue of at most {limit} tokens, found one of which {truncation.characters} "
        f"characters do not fit ({truncation.turns} whole turns among them); shorten it, or let it be read in part "
        "(truncation 'oldest')"
    )


__all__ = ["Rewriter"]
