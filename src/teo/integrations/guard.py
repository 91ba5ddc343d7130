"""What happens when a rewriter is down or slow: the utterance goes through unchanged, or the error is raised.

A rewriter stands before something that matters more, such as a search. Whoever sets `on_error="keep"` prefers the
user's own words to no answer at all. `timeout` is the longest that a call may take, whatever the rewriter does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.result import Rewrite

OnError = Literal["keep", "raise"]
Ask = Callable[[Sequence[Dialogue]], list[Rewrite | TeoError]]
"""Gives a rewrite for each dialogue, or its error."""

MOST_ABANDONED = 8
"""Calls out of time that may still run; Python cannot stop a thread, and more of them would only add to the load."""

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)


class SlowError(TeoError):
    """A rewriter did not answer in time."""


class Guard:
    """The setting of one caller for failures, and the count of them."""

    def __init__(
        self,
        caller: str,
        on_error: OnError,
        timeout: float | None,
        *,
        catches: type[Exception] = Exception,
        slow: Callable[[str], TeoError] = SlowError,
    ) -> None:
        """Take the caller's name for the log.

        Errors of other kinds than `catches` are raised whatever the setting. `slow` makes the error of a call that
        is out of time.
        """
        if on_error not in get_args(OnError):
            raise InputError(f"on_error: expected 'keep' or 'raise', found {on_error!r}")
        if timeout is not None and not _is_duration(timeout):
            raise InputError(f"timeout: expected seconds above 0, or None for no limit, found {timeout!r}")
        self._caller, self._on_error, self._timeout = caller, on_error, timeout
        self._catches, self._slow = catches, slow
        self._failures = self._abandoned = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Guard, catches=self._catches, slow=self._slow)
        return make, (self._caller, self._on_error, self._timeout)

    @property
    def failures(self) -> int:
        """How many utterances went through unchanged because the rewriter failed."""
        return self._failures

    def answer(self, dialogues: Sequence[Dialogue], ask: Ask) -> list[Rewrite | TeoError]:
        """Return what `ask` answers; with `keep`, failed dialogues come back unchanged, counted and logged."""
        try:
            answers = self.within(partial(ask, dialogues))
        except self._catches as error:
            if self._on_error == "raise":
                raise
            self._count(len(dialogues), error)
            return [_kept(dialogue) for dialogue in dialogues]
        errors = [answer for answer in answers if isinstance(answer, self._catches)]
        if self._on_error == "raise" or not errors:
            return answers
        self._count(len(errors), errors[0])
        return [
            _kept(dialogue) if isinstance(answer, self._catches) else answer
            for dialogue, answer in zip(dialogues, answers, strict=True)
        ]

    def within(self, call: Callable[[], _T]) -> _T:
        """Return what a call returns, unless it takes longer than the timeout; it then runs on in the background."""
        if self._timeout is None:
            return call()
        if self._abandoned >= MOST_ABANDONED:
            raise self._slow(f"{self._abandoned} earlier calls have not come back yet; the rewriter is not called")
        future: Future[_T] = Future()
        context = copy_context()

        def run() -> None:
            try:
                result = context.run(call)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, name="teo-rewriter", daemon=True).start()
        if wait([future], self._timeout).not_done:
            with self._lock:
                self._abandoned += 1
            future.add_done_callback(self._come_back)
            raise self._slow(f"no answer within {self._timeout:g} s")
        return future.result()

    def _come_back(self, _: Future[Any]) -> None:
        with self._lock:
            self._abandoned -= 1

    def _count(self, utterances: int, error: Exception) -> None:
        with self._lock:
            self._failures += utterances
        # The message of an error that is not ours may quote a user.
        reason = str(error) if isinstance(error, TeoError) else type(error).__name__
        what = "the utterance is" if utterances == 1 else f"{utterances} utterances are"
        _logger.warning("%s: %s left unchanged, the rewriter failed: %s", self._caller, what, reason)


def _is_duration(seconds: object) -> bool:
    """Tell whether a thread can be waited for that long."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    return 0 < seconds <= threading.TIMEOUT_MAX


def _kept(dialogue: Dialogue) -> Rewrite:
    return Rewrite(dialogue.utterance)
