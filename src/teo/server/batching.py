"""Batches across requests: what waits together is rewritten together.

Every dialogue gets a turn when it arrives: the number of batches so far, plus its position within its request. The
dialogue whose turn is earliest always goes into the next batch, so none starves, and the last of a request with many
dialogues does not hold up a request with one. It is joined by those that are nearest to it in length, so that little
is padding. Nothing here waits on the event loop: the model has a thread of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import TeoError
from teo.layouts import TruncationRule
from teo.result import Rewrite
from teo.server.settings import ServerSettings

LOOKAHEAD = 4
"""How many batches of waiting dialogues are searched for ones of like length."""


class ServedRewriter(Protocol):
    """What the server needs of a rewriter; `teo.Rewriter` has it."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def variant(self) -> str:
        """The pipeline's name."""

    @property
    def threshold(self) -> float:
        """The confidence below which an utterance stays unchanged."""

    @property
    def source_limit(self) -> int:
        """How many tokens of a dialogue the model reads."""

    def try_many(
        self,
        dialogues: Sequence[Dialogue],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return a rewrite for each dialogue, or its error."""


@runtime_checkable
class CountsTokens(Protocol):
    """A rewriter that can say how many of its model's tokens a text is."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """What a caller may ask of the model; only dialogues that ask the same share a batch."""

    prefer: Prefer | None = None
    min_confidence: float | None = None
    truncation: TruncationRule = "oldest"
    n_best: int = 1


@dataclass(frozen=True, slots=True)
class BatchedAnswer:
    """The answer to one dialogue, and where its time went."""

    result: Rewrite | TeoError
    queue_seconds: float
    model_seconds: float
    batch_size: int


class QueueFullError(Exception):
    """The queue is full."""


class ClosedError(Exception):
    """The server is stopping and takes nothing new."""


class ModelFailedError(Exception):
    """The model raised what it should not; the cause is chained."""


@dataclass(slots=True, eq=False)
class _Job:
    """A dialogue that waits."""

    dialogue: Dialogue
    options: RewriteOptions
    turn: tuple[int, int]
    arrived: float
    length: int
    answer: asyncio.Future[BatchedAnswer]


class Batcher:
    """The queue before one model, and the task that empties it."""

    def __init__(
        self,
        rewriter: ServedRewriter,
        settings: ServerSettings,
        *,
        on_batch: Callable[[int, float], None] = lambda size, seconds: None,
        on_queue: Callable[[int], None] = lambda waiting: None,
    ) -> None:
        self._rewriter = rewriter
        self._settings = settings
        self._on_batch, self._on_queue = on_batch, on_queue
        self._waiting: list[_Job] = []
        self._batches = self._arrivals = 0
        self._arrived = asyncio.Event()
        self._closed = False
        self._called_at: float | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="teo-model")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many dialogues wait for the model."""
        return len(self._waiting)

    @property
    def model_seconds(self) -> float:
        """How long the call of the model that runs now has taken; 0 if none runs."""
        called_at = self._called_at  # read once: another thread may end the call meanwhile
        return 0.0 if called_at is None else time.monotonic() - called_at

    def start(self) -> None:
        """Begin to empty the queue; call it inside the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Finish what waits, take nothing new, and stop; after `shutdown_timeout` what is left is given up."""
        self._closed = True
        self._arrived.set()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=self._settings.shutdown_timeout)
            for task in late:
                task.cancel()
        for job in self._waiting:
            job.answer.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def rewrite(self, dialogues: Sequence[Dialogue], options: RewriteOptions) -> list[BatchedAnswer]:
        """Return the answers to the dialogues of one request, in order; cancelling it takes them off the queue."""
        jobs = self._enqueue(dialogues, options)
        try:
            return list(await asyncio.gather(*(job.answer for job in jobs)))
        finally:
            unanswered = {job for job in jobs if not job.answer.done() or job.answer.cancelled()}
            for job in jobs:
                job.answer.cancel()
            if unanswered:
                self._waiting = [job for job in self._waiting if job not in unanswered]
                self._on_queue(len(self._waiting))

    def _enqueue(self, dialogues: Sequence[Dialogue], options: RewriteOptions) -> list[_Job]:
        if self._closed:
            raise ClosedError
        if len(self._waiting) + len(dialogues) > self._settings.max_queue:
            raise QueueFullError
        loop, now, jobs = asyncio.get_running_loop(), time.perf_counter(), []
        for place, dialogue in enumerate(dialogues):
            self._arrivals += 1
            length = sum(map(len, dialogue.history)) + len(dialogue.utterance) + 1
            turn = (self._batches + place, self._arrivals)
            jobs.append(_Job(dialogue, options, turn, now, length, loop.create_future()))
        self._waiting += jobs
        self._on_queue(len(self._waiting))
        self._arrived.set()
        return jobs

    async def _run(self) -> None:
        """Empty the queue, batch by batch, until closed and empty."""
        while True:
            if not self._waiting:
                if self._closed:
                    return
                self._arrived.clear()
                await self._arrived.wait()
                await self._wait_for_company()
                continue
            batch = self._take()
            self._batches += 1
            await self._rewrite_batch(batch)

    async def _wait_for_company(self) -> None:
        """Wait out the window; a full batch, or a closing server, ends it early."""
        end = time.perf_counter() + self._settings.window_ms / 1000
        while self._waiting and len(self._waiting) < self._settings.max_batch and not self._closed:
            left = end - time.perf_counter()
            if left <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except TimeoutError:
                return

    def _take(self) -> list[_Job]:
        """Return the next batch and take it off the queue: the earliest turn, and others of like length."""
        limits = self._settings
        self._waiting.sort(key=lambda job: job.turn)
        first, near = self._waiting[0], self._waiting[1 : LOOKAHEAD * limits.max_batch]
        like = sorted(
            (job for job in near if job.options == first.options),
            key=lambda job: (abs(job.length - first.length), job.turn),
        )
        batch, longest = [first], first.length
        # Each of several rewrites is a row of the search: a dialogue that wants them takes as many.
        most = max(1, limits.max_batch // first.options.n_best)
        for job in like:
            wider = max(longest, job.length)
            if len(batch) == most or wider * (len(batch) + 1) > limits.max_batch_characters:
                break
            batch.append(job)
            longest = wider
        taken = set(batch)
        self._waiting = [job for job in self._waiting if job not in taken]
        self._on_queue(len(self._waiting))
        return batch

    async def _rewrite_batch(self, batch: Sequence[_Job]) -> None:
        """Answer a batch; if the model fails on it, each dialogue alone, so that one cannot fail the others."""
        started = time.perf_counter()
        results: Sequence[Rewrite | TeoError | Exception]
        try:
            try:
                results = await self._ask(batch)
            except Exception as error:
                results = [error] if len(batch) == 1 else [await self._ask_alone(job) for job in batch]
            seconds = time.perf_counter() - started
            self._on_batch(len(batch), seconds)
            for job, result in zip(batch, results, strict=True):
                _settle(job, result, started, seconds, len(batch))
        finally:
            for job in batch:  # a server that stops in the middle of a batch leaves no caller waiting
                job.answer.cancel()

    async def _ask_alone(self, job: _Job) -> Rewrite | TeoError | Exception:
        if job.answer.done():
            return TeoError("the caller left")
        try:
            return (await self._ask([job]))[0]
        except Exception as error:
            return error

    async def _ask(self, batch: Sequence[_Job]) -> list[Rewrite | TeoError]:
        options, dialogues = batch[0].options, [job.dialogue for job in batch]

        def call() -> list[Rewrite | TeoError]:
            self._called_at = time.monotonic()
            try:
                results = self._rewriter.try_many(
                    dialogues,
                    len(dialogues),
                    prefer=options.prefer,
                    min_confidence=options.min_confidence,
                    truncation=options.truncation,
                    n_best=options.n_best,
                )
            finally:
                self._called_at = None
            if len(results) != len(dialogues):
                raise RuntimeError(f"expected {len(dialogues)} results of the model, found {len(results)}")
            return results

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _settle(job: _Job, result: Rewrite | TeoError | Exception, started: float, seconds: float, size: int) -> None:
    """Give a caller its answer, unless it left."""
    if job.answer.done():
        return
    if isinstance(result, Rewrite | TeoError):
        job.answer.set_result(BatchedAnswer(result, started - job.arrived, seconds, size))
        return
    failure = ModelFailedError()
    failure.__cause__ = result
    job.answer.set_exception(failure)
