"""Rewriter: dialogue in, rewrite out. It keeps no conversation, and may be used from several threads at once.

    rules -> pipeline -> threshold -> edits of the user's own string

What a model does not read is stated in the record. A turn that is too long is read in part, and the oldest turns are
dropped where that does not suffice (`teo.layouts.fit_history`); the utterance is never cut: one that leaves no room for
any turn before it is kept as it is, without a model call. `truncation="error"` refuses such dialogues instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.abstain import Abstention
from teo.answers import Answer, Task, alone, decide, with_alternatives
from teo.arguments import describe, require_integer, require_share
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.interface import BaseRewriter, DialogueLike
from teo.keeping import KeepList, reason_to_keep
from teo.layouts import Truncation, TruncationRule
from teo.loading import Dtype, Model, ModelFolder, Runtime, open_model, require_dtype
from teo.pipelines import PIPELINES, find_variant, predict_several, require_one_text, require_roles
from teo.result import Rewrite
from teo.stages import Stages, fit_dialogue
from teo.units import replace_surrogates

logger = logging.getLogger(__name__)

MOST_ALTERNATIVES = 16
"""How many rewrites of one utterance may be asked for."""

_BATCH_ROWS = 256
"""Rows that a generator may take at once; `batch_size` decides how many it gets."""
_BEAMS_PER_ALTERNATIVE = 2
"""Texts searched for each rewrite asked for: several texts may say the same rewrite, or none."""


class Rewriter(BaseRewriter):
    """The stages of a model, the pipeline that runs them, and when its rewrites are made."""

    def __init__(
        self,
        stages: Stages,
        folder: ModelFolder,
        *,
        name: str = "model",
        variant: str | None = None,
        keep: Iterable[str] | KeepList = (),
        model: Model | None = None,
    ) -> None:
        """Take loaded stages and what their `teo.json` says; with the `model` they come from it can be pickled."""
        self._pipeline = find_variant(variant or folder.variant, PIPELINES)
        require_roles(self._pipeline, PIPELINES, stages.by_role, name)
        self._stages, self._model = stages, model
        self._name = name
        self._keep = keep if isinstance(keep, KeepList) else KeepList.of(keep)
        self._abstention = Abstention.of(folder, self._pipeline.name)
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
        """Return the rewriter of a model: a folder, a hub id, or with no path the one that comes with the package.

        `threads`: processor threads of a call, by default as many as there are, at most four. `variant`: the pipeline,
        by default the model's own. `runtime`: onnx, or torch for a trained folder that was not exported. `device` and
        `dtype` are torch's: auto (CUDA where there is one), cpu, cuda or cuda:1; float32, or bfloat16 on CUDA. `keep`:
        utterances to keep without asking the model, each a whole one ("ticket closed") or a `/regular expression/`.
        """
        half = require_dtype(dtype) == "bfloat16"
        model = open_model(path, runtime=runtime, threads=threads, device=device, bf16=half, batch_size=_BATCH_ROWS)
        return cls.of_model(model, variant, keep)

    @classmethod
    def of_model(cls, model: Model, variant: str | None = None, keep: Iterable[str] | KeepList = ()) -> Rewriter:
        """Return the rewriter of a model that was opened; its weights are loaded now, which may take a moment."""
        pipeline = find_variant(variant or model.folder.variant, PIPELINES)
        require_roles(pipeline, PIPELINES, model.folder.roles, str(model.path))
        stages = model.load(pipeline.roles(model.folder.roles))
        return cls(stages, model.folder, name=model.name, variant=pipeline.name, keep=keep, model=model)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made in another process: it loads the model from its folder."""
        if self._model is None:
            raise InputError(
                "Rewriter: expected one of a model folder to pickle, found one of bare stages; "
                "load it with Rewriter.from_pretrained"
            )
        return type(self).of_model, (self._model, self.variant, self._keep)

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

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text is to the model; for very long text a lower bound."""
        return self._generator.measure(text) - 1

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
        if min_confidence is not None:
            min_confidence = require_share("min_confidence", min_confidence)
        if require_integer("n_best", n_best, 1, MOST_ALTERNATIVES) > 1:
            require_one_text(self._pipeline)
        require_integer("batch_size", batch_size, 1)
        if truncation not in ("oldest", "error"):
            raise InputError(f"truncation: expected oldest or error, found '{truncation}'")
        if isinstance(dialogues, str | Mapping) or not isinstance(dialogues, Iterable):
            raise InputError(f"dialogues: expected a list of dialogues, found {describe(dialogues)}")
        if min_confidence is None:
            self._warn_uncalibrated()
        prepared = [self._prepare(dialogue, refuse=truncation == "error") for dialogue in dialogues]
        tasks = [task for task in prepared if isinstance(task, Task)]
        answers = iter(
            [
                answer
                for start in range(0, len(tasks), batch_size)
                for answer in self._ask(tasks[start : start + batch_size], min_confidence, n_best)
            ]
        )
        return [
            next(answers)
            if isinstance(item, Task)
            else alone(item)
            if isinstance(item, Answer) and n_best > 1
            else item
            for item in prepared
        ]

    def _warn_uncalibrated(self) -> None:
        """Say once that thresholds are a default, where they are."""
        if self._abstention.calibration is None and not self._warned:
            self._warned = True
            logger.warning(
                "%s: the variant '%s' was not calibrated: its confidence is the raw probability of the text, and "
                "rewrites below %s are not made; fit it with `teo calibrate`",
                self._name,
                self.variant,
                self.threshold,
            )

    def fit(self, dialogue: Dialogue) -> tuple[Dialogue, Truncation]:
        """Return what the model reads of a dialogue, and what is left out of it."""
        return fit_dialogue(self._generator, dialogue, layout=self._stages.layout)

    def _prepare(self, raw: DialogueLike, *, refuse: bool) -> Task | Answer | TeoError:
        """Return what to ask the model, or the answer where there is nothing to ask."""
        try:
            dialogue = raw if isinstance(raw, Dialogue) else Dialogue.from_row(raw)
        except InputError as error:
            return error
        utterance = dialogue.utterance
        if reason := reason_to_keep(dialogue, self._keep):
            return Answer(Rewrite(utterance, reason=reason))
        encodable = Dialogue(
            tuple(map(replace_surrogates, dialogue.history)), replace_surrogates(utterance), dialogue.speakers
        )
        fitted, truncation = fit_dialogue(self._generator, encodable, layout=self._stages.layout)
        if truncation and refuse:
            return _too_long(truncation, self._generator.source_limit)
        if not any(turn.strip() for turn in fitted.history):  # nothing of the history is left
            return Answer(Rewrite(utterance, truncated=truncation, reason="too-long"))
        return Task(dialogue, fitted, truncation)

    def _ask(self, tasks: Sequence[Task], min_confidence: float | None, n_best: int) -> list[Answer]:
        """Return the model's answers to one batch."""
        dialogues = [task.fitted for task in tasks]
        predictions = self._pipeline.run(self._stages, dialogues)
        answers = [decide(self._abstention, *pair, min_confidence) for pair in zip(tasks, predictions, strict=True)]
        if n_best == 1:
            return answers
        several = predict_several(self._pipeline, self._stages, dialogues, _BEAMS_PER_ALTERNATIVE * n_best)
        return [
            with_alternatives(self._abstention, task, answer, [prediction, *further], n_best)
            for task, answer, prediction, further in zip(tasks, answers, predictions, several, strict=True)
        ]


def _too_long(truncation: Truncation, limit: int) -> InputError:
    return InputError(
        f"history: expected a dialogue of at most {limit} tokens, found one of which {truncation.characters} "
        f"characters do not fit ({truncation.turns} whole turns among them); shorten it, or let it be read in part "
        "(truncation 'oldest')"
    )


__all__ = ["Answer", "DialogueLike", "Rewriter", "Runtime", "TruncationRule"]
