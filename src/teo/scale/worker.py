"""A worker: the model of one process or actor, which rewrites parts. The output depends on the part alone.

Rows are sorted by length, so that a batch holds rows of like length, and equal dialogues are rewritten once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError, explain
from teo.files import json_line
from teo.interface import BaseRewriter
from teo.layouts import TruncationRule
from teo.loading import Runtime
from teo.result import Rewrite
from teo.scale.inputs import Format
from teo.scale.parts import Done, Part
from teo.scale.rows import Columns, Result, read_rows
from teo.scale.stores import open_store

REMEMBERED = 50_000
"""Dialogues of earlier parts whose rewrites a worker remembers."""
DONE = "_done"
"""The folder in which each part that is done has a file; its name hides it from readers of the output."""
_PROBE = Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?")
"""A dialogue that any model can rewrite: if it fails too, the model is at fault and not the row."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model a worker loads, and how."""

    model: str | None = None
    variant: str | None = None
    runtime: Runtime | None = None
    """None: the one of the folder."""
    device: str = "cpu"
    bf16: bool = False
    threads: int = 1
    keep: tuple[str, ...] = ()
    batch_size: int = 32

    def load(self, number: int = 0) -> BaseRewriter:
        """Return the rewriter of the worker with a number; several workers share the GPUs."""
        from teo.loading import open_model
        from teo.rewriter import Rewriter

        device = self.device
        if device == "cuda" and number:
            import torch

            device = f"cuda:{number % max(torch.cuda.device_count(), 1)}"
        model = open_model(
            self.model,
            runtime=self.runtime,
            threads=self.threads,
            device=device,
            bf16=self.bf16,
            batch_size=self.batch_size,
        )
        return Rewriter.of_model(model, self.variant, self.keep)


@dataclass(frozen=True, slots=True)
class BatchTask:
    """What every worker of a job must know: where to read and write, how, and with which model."""

    input: str
    output: str
    """The folder of the parts."""
    format: Format
    model: ModelChoice = field(default_factory=ModelChoice)
    columns: Columns = field(default_factory=Columns)
    prefer: Prefer | None = None
    min_confidence: float | None = None
    truncation: TruncationRule = "oldest"
    n_best: int = 1

    @property
    def options(self) -> dict[str, Any]:
        """The options of each call of the rewriter."""
        names = ("prefer", "min_confidence", "truncation", "n_best")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's report on a part: that it is done, or why it failed, and how long it took."""

    number: int
    done: Done | None
    seconds: float = 0.0
    failure: str = ""
    status: int = 0
    """The exit status of a failure: 2 for the user's mistake, 1 for ours."""


class Worker:
    """A loaded model, and the parts that it rewrites one after another."""

    def __init__(self, task: BatchTask, number: int = 0) -> None:
        self._task, self._number = task, number
        self._rewriter: BaseRewriter | None = None
        self._source, _ = open_store(task.input)
        self._target, self._folder = open_store(task.output)
        # A model on torch may round otherwise in another batch: its rewrite of a dialogue holds for the part only.
        self._remembers = task.model.device == "cpu" and task.model.runtime != "torch"
        self._known: dict[Any, Result] = {}

    def report(self, part: Part) -> Report:
        """Return the report on a part; a failure is put into words, so that it can cross processes."""
        started = time.perf_counter()
        try:
            done = self.rewrite(part)
        except Exception as error:
            return Report(part.number, None, time.perf_counter() - started, *describe_failure(error))
        return Report(part.number, done, time.perf_counter() - started)

    def rewrite(self, part: Part) -> Done:
        """Rewrite a part and write it; the file that says it is done comes last."""
        task, rewriter = self._task, self._load()
        rows = read_rows(self._source, part, task.format, task.columns)
        if len(rows.dialogues) != part.rows:
            raise InputError(
                f"{part.file}: expected {part.rows} rows from {part.first} on, found {len(rows.dialogues)}; "
                "the file was changed while it was read"
            )
        results, repeated = self._decide(rewriter, rows.dialogues)
        data = rows.encode(results)
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        errors = [(row, result) for row, result in enumerate(results, part.first) if isinstance(result, TeoError)]
        fault = f"{part.file}, row {errors[0][0]}: {errors[0][1]}" if errors else ""
        changed = sum(isinstance(result, Rewrite) and result.changed for result in results)
        done = Done(part.number, part.rows, len(errors), changed, repeated, len(data), digest, fault)
        self._target.write(f"{self._folder}/{part.stem}.{task.format}", data)
        self._target.write(f"{self._folder}/{DONE}/{part.stem}.json", json_line(asdict(done)).encode())
        return done

    def _load(self) -> BaseRewriter:
        """Return the rewriter; loaded with the first part, so that a failure is reported as any other."""
        if self._rewriter is None:
            rewriter = self._task.model.load(self._number)
            rewriter.try_many([_PROBE], 1, **self._task.options)  # options that the model refuses end the job here
            self._rewriter = rewriter
        return self._rewriter

    def _decide(self, rewriter: BaseRewriter, dialogues: Sequence[Dialogue | InputError]) -> tuple[list[Result], int]:
        """Return a result for each row, and how many rows repeat another row's dialogue."""
        places: dict[Any, Dialogue] = {}
        for dialogue in dialogues:
            if isinstance(dialogue, Dialogue):
                places.setdefault(dialogue, dialogue)
        known = {key: self._known[key] for key in places if key in self._known}
        new = sorted((key for key in places if key not in known), key=lambda key: _length(places[key]))
        size = self._task.model.batch_size
        for start in range(0, len(new), size):
            keys = new[start : start + size]
            known |= zip(keys, self._ask(rewriter, [places[key] for key in keys]), strict=True)
        if self._remembers:
            self._known = dict(list((self._known | known).items())[-REMEMBERED:])
        results = [known[dialogue] if isinstance(dialogue, Dialogue) else dialogue for dialogue in dialogues]
        return results, sum(isinstance(dialogue, Dialogue) for dialogue in dialogues) - len(places)

    def _ask(self, rewriter: BaseRewriter, batch: list[Dialogue]) -> list[Result]:
        """Return the results of a batch; if the model fails on it, those of each dialogue alone."""
        try:
            return rewriter.try_many(batch, len(batch), **self._task.options)
        except Exception:
            return [self._ask_alone(rewriter, dialogue) for dialogue in batch]

    def _ask_alone(self, rewriter: BaseRewriter, dialogue: Dialogue) -> Result:
        try:
            return rewriter.try_many([dialogue], 1, **self._task.options)[0]
        except Exception as error:
            rewriter.try_many([_PROBE], 1, **self._task.options)  # raises if it is the model that fails
            return TeoError(f"the model failed: {explain(error)[0]}")


def describe_failure(error: Exception) -> tuple[str, int]:
    """Return a failure in one line, and its exit status: 1 also if the system failed, since that may pass."""
    message, status = explain(error)
    return message, 1 if isinstance(error, OSError) or isinstance(error.__cause__, OSError) else status


def _length(dialogue: Dialogue) -> int:
    """Return the bytes of a dialogue: three for a Chinese character and four for an English token, or nearly so."""
    return sum(len(turn.encode(errors="replace")) for turn in (*dialogue.history, dialogue.utterance))
