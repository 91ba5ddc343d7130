"""BaseRewriter: what a rewriter in this process and one behind a server have in common, all of it over `try_many`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from teo.arguments import describe
from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.layouts import TruncationRule
from teo.result import Rewrite

DialogueLike = Dialogue | Mapping[str, Any]


class BaseRewriter(ABC):
    """Dialogues in, rewrites out: one or many, at once or awaited."""

    @abstractmethod
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
        """Return what `rewrite_many` does; with an error in the place of each dialogue that cannot be rewritten."""

    def rewrite(
        self,
        history: Sequence[str] | None = None,
        utterance: str | None = None,
        *,
        messages: Sequence[Any] | None = None,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> Rewrite:
        """Return the rewrite of an utterance after its history, or of the last of some chat messages.

        `prefer`: a named threshold: search, balanced (the default) or careful. `min_confidence`: a threshold of your
        own, below which utterances stay unchanged. `n_best`: from 2 on, the record has up to N distinct `alternatives`,
        the most confident first; the first that reaches the threshold is its rewrite.
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
            dialogue = Dialogue.from_turns(history, utterance)
        (result,) = self.try_many([dialogue], **_options(prefer, min_confidence, truncation, n_best))
        if isinstance(result, TeoError):
            raise result
        return result

    def rewrite_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite]:
        """Return the rewrites of many dialogues, in order: `Dialogue` values or JSON rows.

        The same dialogue gets the same record, byte for byte, alone or among any others.
        """
        options = _options(prefer, min_confidence, truncation, n_best)
        records = []
        for number, result in enumerate(self.try_many(dialogues, batch_size, **options)):
            if isinstance(result, InputError):
                raise InputError(f"dialogues[{number}]: {result}") from result
            if isinstance(result, TeoError):
                raise result
            records.append(result)
        return records

    async def arewrite(
        self,
        history: Sequence[str] | None = None,
        utterance: str | None = None,
        *,
        messages: Sequence[Any] | None = None,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> Rewrite:
        """Return what `rewrite` does, from a worker thread, so that the event loop is not blocked.

        A call that is cancelled is not waited for: a result that is already being made is dropped.
        """
        options = _options(prefer, min_confidence, truncation, n_best)
        return await asyncio.to_thread(self.rewrite, history, utterance, messages=messages, **options)

    async def arewrite_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite]:
        """Return what `rewrite_many` does, from a worker thread, so that the event loop is not blocked."""
        options = _options(prefer, min_confidence, truncation, n_best)
        return await asyncio.to_thread(self.rewrite_many, dialogues, batch_size, **options)


def _options(
    prefer: Prefer | None, min_confidence: float | None, truncation: TruncationRule, n_best: int
) -> dict[str, Any]:
    return {"prefer": prefer, "min_confidence": min_confidence, "truncation": truncation, "n_best": n_best}


def require_truncation(truncation: object) -> None:
    """Raise where a call asks for a truncation that there is not."""
    if truncation not in get_args(TruncationRule):
        raise InputError(f"truncation: expected oldest or error, found '{truncation}'")


def require_dialogues(dialogues: object) -> None:
    """Raise where a call gives one thing in the place of several dialogues."""
    if isinstance(dialogues, str | Mapping) or not isinstance(dialogues, Iterable):
        raise InputError(f"dialogues: expected a list of dialogues, found {describe(dialogues)}")
