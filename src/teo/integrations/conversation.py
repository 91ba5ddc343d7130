"""What every adapter shares: how it reads a conversation, and how it calls a rewriter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from teo.decision import Prefer, choose_threshold
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.guard import Guard, OnError
from teo.result import Rewrite

OnRewrite = Callable[[Dialogue, Rewrite], None]
"""Called with every dialogue and its rewrite, so that no rewrite is hidden."""


class AnyRewriter(Protocol):
    """A rewriter: `teo.Rewriter` in this process, or `RemoteRewriter` for a server."""

    def try_many(
        self,
        dialogues: Sequence[Dialogue],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
    ) -> list[Rewrite | TeoError]:
        """Return a rewrite for each dialogue, or its error."""


class AdaptedRewriter:
    """A rewriter with the settings of an adapter."""

    def __init__(
        self,
        adapter: str,
        rewriter: AnyRewriter,
        *,
        prefer: Prefer | None,
        min_confidence: float | None,
        on_rewrite: OnRewrite | None,
        on_error: OnError,
        timeout: float | None,
    ) -> None:
        """Refuse settings that cannot be used: later they would pass for failures of the rewriter."""
        if not callable(getattr(rewriter, "try_many", None)):
            raise InputError(f"rewriter: expected a Rewriter or a RemoteRewriter, found a {type(rewriter).__name__}")
        choose_threshold(min_confidence, prefer)
        # What these adapters rewrite goes to a retriever.
        prefer = "search" if prefer is None and min_confidence is None else prefer
        self._rewriter, self._on_rewrite = rewriter, on_rewrite
        self._options: dict[str, Any] = {"prefer": prefer, "min_confidence": min_confidence}
        self._guard = Guard(adapter, on_error, timeout)

    @property
    def failures(self) -> int:
        """How many utterances went through unchanged because the rewriter failed."""
        return self._guard.failures

    def rewrite_all(self, dialogues: Sequence[Dialogue]) -> list[Rewrite]:
        """Return the rewrites, in order; `on_rewrite` is called with each."""
        results = []
        for answer in self._guard.answer(dialogues, self._ask):
            if isinstance(answer, TeoError):
                raise answer
            results.append(answer)
        self._show(dialogues, results)
        return results

    def try_all(self, dialogues: Sequence[Dialogue]) -> list[Rewrite | TeoError]:
        """Return what `rewrite_all` does, with an error in the place of each dialogue that cannot be rewritten."""
        answers = self._guard.answer(dialogues, self._ask)
        self._show(dialogues, answers)
        return answers

    def _show(self, dialogues: Sequence[Dialogue], answers: Sequence[Rewrite | TeoError]) -> None:
        if self._on_rewrite is not None:
            for dialogue, answer in zip(dialogues, answers, strict=True):
                if isinstance(answer, Rewrite):
                    self._on_rewrite(dialogue, answer)

    def _ask(self, dialogues: Sequence[Dialogue]) -> list[Rewrite | TeoError]:
        return self._rewriter.try_many(dialogues, **self._options)


def read_conversation(
    history: object,
    utterance: str,
    *,
    field: str,
    message_type: type[Any],
    read_message: Callable[[Any], tuple[str, object]],
) -> Dialogue:
    """Return the dialogue of a framework's messages, or of strings, and the utterance after them.

    `read_message` gives the role and the content of a message; which roles speak is `Dialogue`'s to know.
    """
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(f"{field}: expected a list of messages, found a {type(history).__name__}")
    if all(isinstance(turn, str) for turn in history):
        return Dialogue.from_turns(history, utterance)
    messages: list[dict[str, object]] = []
    for index, turn in enumerate(history):
        if isinstance(turn, message_type):
            role, content = read_message(turn)
        elif isinstance(turn, str):
            role, content = "user", turn
        else:
            name = message_type.__name__
            raise InputError(f"{field}[{index}]: expected a {name} or a string, found a {type(turn).__name__}")
        messages.append({"role": role, "content": content})
    return Dialogue.from_messages([*messages, {"role": "user", "content": utterance}])
