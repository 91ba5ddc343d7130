"""evaluate_llm(request): a language model on one split, with the files and numbers of any other evaluation."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.errors import InputError
from teo.evaluation.evaluate import hash_rows
from teo.evaluation.measures import Evaluation, measure
from teo.evaluation.predict import MEANING, PredictedRow, Settings, predict
from teo.evaluation.report import format_report
from teo.files import write_json, write_text
from teo.metrics.meaning import grade
from teo.provenance import git_commit
from teo_lab.llm.cache import Cache, Completion, hash_request
from teo_lab.llm.client import ChatClient, Endpoint
from teo_lab.llm.prompt import (
    PROMPTS,
    SHOTS,
    draw_demonstrations,
    make_langchain_prompt,
    make_prompt,
    read_rewrite,
)

PREFIX = "openai:"
"""What the name of a model begins with if an endpoint is to be asked."""
CACHE = "completions.sqlite"
_DEFAULTS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 256}
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """What to ask which endpoint, on what, and where the results go."""

    endpoint: Endpoint
    data: str
    path: Path
    out: Path
    split: str = "test"
    limit: int | None = None
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    prompt: str = SHOTS
    """One of `PROMPTS`; only `shots` has demonstrations."""
    shots: int = 5
    """Demonstrations in the prompt, drawn by seed."""
    examples: Path | None = None
    """The JSONL file that demonstrations are drawn from; None: the rows for training."""
    concurrency: int = 4
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a request that are added or replaced; null leaves a field out."""
    price_in: float | None = None
    """Price of a million tokens of prompts, in any currency."""
    price_out: float | None = None
    when_answered: Callable[[Sequence[Row]], object] | None = None
    """Called with the rows of each chunk when they are answered: another system can be timed under the same load."""

    def __post_init__(self) -> None:
        if self.prompt not in PROMPTS:
            raise InputError(f"prompt: expected one of {', '.join(PROMPTS)}; found '{self.prompt}'")
        for name, value, least in (
            ("limit", self.limit, 1),
            ("shots", self.shots, 0),
            ("concurrency", self.concurrency, 1),
        ):
            if value is not None and value < least:
                raise InputError(f"{name}: expected a number from {least} on, found {value}")

    @property
    def variant(self) -> str:
        """The name that results are stored under."""
        return f"{self.shots}-shot" if self.prompt == SHOTS else self.prompt


@dataclass(frozen=True, slots=True)
class Usage:
    """What the answers of a run took, those of its cache included."""

    answers: int
    refused: int
    """Answers without text: the utterance stands for the rewrite."""
    prompt_tokens: int
    completion_tokens: int
    not_counted: int
    """Answers whose endpoint did not tell their tokens."""
    cost: float | None
    """None if no price was given, or tokens are not known."""
    median_seconds: float
    p95_seconds: float

    @classmethod
    def of(cls, completions: Sequence[Completion], price_in: float | None, price_out: float | None) -> Usage:
        """Return the sums over completions."""
        prompts = sum(item.prompt_tokens or 0 for item in completions)
        texts = sum(item.completion_tokens or 0 for item in completions)
        unknown = sum(
            item.prompt_tokens is None or item.completion_tokens is None for item in completions if not item.refusal
        )
        priced = not unknown and (price_in is not None or price_out is not None)
        cost = (prompts * (price_in or 0.0) + texts * (price_out or 0.0)) / _MILLION
        seconds = sorted(item.seconds for item in completions) or [0.0]
        return cls(
            len(completions),
            sum(bool(item.refusal) for item in completions),
            prompts,
            texts,
            unknown,
            round(cost, 6) if priced else None,
            round(statistics.median(seconds), 3),
            round(seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))], 3),
        )


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A prompt with its demonstrations, and the client that it is sent with: rows in, predicted rows out."""

    client: ChatClient
    model: str
    demonstrations: Sequence[Row]
    concurrency: int = 4
    body: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = SHOTS
    by_meaning: bool = False
    """Whether predicted rows have verdicts by meaning keys."""

    def predict(self, rows: Sequence[Row]) -> list[PredictedRow]:
        """Return the rows with what the model answered, in order."""
        predicted = [_predicted(row, answer) for row, answer in zip(rows, self.ask(rows), strict=True)]
        if not self.by_meaning:
            return predicted
        return [
            replace(made, detail={**made.detail, MEANING: grade(row, made.prediction)})
            for row, made in zip(rows, predicted, strict=True)
        ]

    def ask(self, rows: Sequence[Row]) -> list[Completion]:
        """Return the model's answers, in order; the first error ends the rest, and what was answered is stored."""
        with ThreadPoolExecutor(self.concurrency) as pool:
            waiting = [pool.submit(self.client.complete, self.request(row.dialogue)) for row in rows]
            try:
                return [future.result() for future in waiting]
            finally:
                for future in waiting:
                    future.cancel()

    def rewrite(self, dialogue: Dialogue) -> str:
        """Return the rewrite of an utterance, empty if the model gives none: the `ask` of a FallbackRewriter."""
        return read_rewrite(self.client.complete(self.request(dialogue)).text, dialogue.utterance)

    def request(self, dialogue: Dialogue) -> dict[str, Any]:
        """Return the body of a dialogue's request."""
        prompt = _ask_with(self.prompt, dialogue, self.demonstrations)
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], **_DEFAULTS, **self.body}
        return {name: value for name, value in body.items() if value is not None}


def evaluate_llm(request: LlmRequest, progress: TextIO | None = None) -> Evaluation:
    """Return the metrics of a language model, with predictions.jsonl, metrics.json, report.md and its cache in `out`.

    A stopped run is resumed: finished rows are not asked for again, and neither are answers that are stored already.
    """
    stream = progress or sys.stderr
    rows = _load(request, request.split, stream)
    shown = _demonstrations(request, rows, stream)
    endpoint = request.endpoint
    settings = Settings(
        data=request.data,
        split=request.split,
        options=dict(request.options),
        data_hash=hash_rows(rows),
        variant=request.variant,
        model=PREFIX + endpoint.model,
        model_hash=_hash_prompt(request, shown),
        seed=request.seed,
        precision="remote",
    )
    run: dict[str, Any] = {"base_url": endpoint.base_url, "limit": request.limit, "git_commit": git_commit()}
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{request.out}: cannot be made the output folder: {error.strerror}") from None
    cache = Cache(request.out / CACHE)
    try:
        client = ChatClient(endpoint, cache)
        keyed = any(row.keys and row.keys.need for row in rows)
        asked = (shown, request.concurrency, request.body, request.prompt)
        model = LanguageModel(client, endpoint.model, *asked, by_meaning=keyed)
        started = time.monotonic()
        wanted, chunk = rows[: request.limit], 4 * request.concurrency

        def predict_chunk(chunk_rows: Sequence[Row]) -> list[PredictedRow]:
            answered = model.predict(chunk_rows)
            if request.when_answered is not None:
                request.when_answered(chunk_rows)
            return answered

        predicted = predict(predict_chunk, wanted, request.out, settings, chunk=chunk, run=run, progress=stream)
        run["asked"] = {"requests": client.requests, "retried": client.retried}
        run["seconds"] = round(time.monotonic() - started, 3)
        answers = [client.recall(model.request(row.dialogue)) for row in wanted]
        usage = Usage.of([answer for answer in answers if answer], request.price_in, request.price_out)
    finally:
        cache.close()
    run["usage"] = {name: getattr(usage, name) for name in Usage.__slots__}
    prompted = f"{request.shots} demonstrations in the prompt" if request.prompt == SHOTS else "LangChain's prompt"
    described = f"{endpoint.model} at {endpoint.base_url}, {prompted}"
    evaluation = Evaluation(measure(predicted), settings, run, described)
    write_json(request.out / "metrics.json", evaluation.to_dict())
    write_text(request.out / "report.md", format_report(evaluation, predicted))
    return evaluation


def summarise_usage(evaluation: Evaluation) -> str:
    """Return what the answers took, in a line."""
    usage = evaluation.run["usage"]
    cost = "not known" if usage["cost"] is None else f"{usage['cost']:.4f}"
    return (
        f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens, cost {cost}, latency median "
        f"{usage['median_seconds']} s, 95% within {usage['p95_seconds']} s, refused {usage['refused']}"
    )


def _predicted(row: Row, completion: Completion) -> PredictedRow:
    """Return a row with the rewrite in an answer; without one the utterance stands, and the row says so."""
    utterance = row.dialogue.utterance
    rewrite = read_rewrite(completion.text, utterance)
    gold = format_operations(derive_edits(utterance, row.rewrite).operations)
    detail = {"answer": completion.text} if rewrite else {"answer": completion.text, "refusal": completion.refusal}
    made = PredictedRow(row.id, row.dialogue.history, utterance, row.rewrite, rewrite or utterance, None, gold)
    return replace(made, well_formed=bool(rewrite), detail=detail, references=row.references)


def _load(request: LlmRequest, split: str, stream: TextIO) -> tuple[Row, ...]:
    options: dict[str, Any] = dict(request.options)
    loaded = load_rows(request.data, request.path, split, **options)
    if loaded.skipped:
        stream.write(f"{len(loaded.skipped)} malformed rows left out, the first: {loaded.skipped[0]}\n")
    return loaded.rows


def _demonstrations(request: LlmRequest, rows: Sequence[Row], stream: TextIO) -> list[Row]:
    if not request.shots or request.prompt != SHOTS:
        return []
    if request.examples is not None:
        return draw_demonstrations(load_rows("jsonl", request.examples, "all").rows, request.shots, request.seed, rows)
    try:
        train = _load(request, "train", stream)
    except InputError as error:
        raise InputError(
            f"demonstrations: expected rows for training, found none ({error}); or ask with --shots 0"
        ) from error
    return draw_demonstrations(train, request.shots, request.seed, rows)


def _ask_with(prompt: str, dialogue: Dialogue, demonstrations: Sequence[Row]) -> str:
    return make_prompt(dialogue, demonstrations) if prompt == SHOTS else make_langchain_prompt(dialogue)


def _hash_prompt(request: LlmRequest, demonstrations: Sequence[Row]) -> str:
    """Return a hash of all that decides a request except its dialogue."""
    empty = _ask_with(request.prompt, Dialogue((), ""), demonstrations)
    return hash_request(
        request.endpoint.url, {**_DEFAULTS, **request.body, "prompt": empty, "name": request.endpoint.model}
    )
