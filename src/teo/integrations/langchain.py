"""LangChain: a Runnable that makes a question standalone, and a retriever that is asked with it.

Both take `{"input": ..., "chat_history": [...]}`, as LangChain's own history-aware chains do, so they fit in their
place: one local call in milliseconds where those call a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError
from teo.integrations.conversation import AnyRewriter, OnRewrite, rewrite_all

try:
    from langchain_core.documents import Document
    from langchain_core.messages import convert_to_messages
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.runnables.config import run_in_executor
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.langchain", str(error.name), "langchain") from error

_SPEAKERS = frozenset({"human", "ai"})


class RewriteQuery(Runnable[dict[str, Any], str]):
    """A Runnable from a question and its chat history to a question that stands alone."""

    def __init__(
        self,
        rewriter: AnyRewriter,
        *,
        input_key: str = "input",
        history_key: str = "chat_history",
        min_confidence: float | None = None,
        on_rewrite: OnRewrite | None = None,
    ) -> None:
        self._rewriter = rewriter
        self._input_key, self._history_key = input_key, history_key
        self._min_confidence, self._on_rewrite = min_confidence, on_rewrite

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any) -> str:  # noqa: A002
        """Return the rewritten question."""
        return self._call_with_config(lambda given: self._rewrite([given])[0], input, config, run_type="chain")

    def batch(
        self,
        inputs: list[dict[str, Any]],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[str]:
        """Return the rewritten questions, in order, from one call of the model."""
        if not inputs:
            return []
        return self._batch_with_config(
            lambda given: list[Exception | str](self._rewrite(given)),
            inputs,
            config,
            return_exceptions=return_exceptions,
            run_type="chain",
        )

    async def abatch(
        self,
        inputs: list[dict[str, Any]],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[str]:
        """Return what `batch` does, from a thread, so that the event loop goes on."""
        return await run_in_executor(None, self.batch, inputs, config, return_exceptions=return_exceptions)

    def _rewrite(self, inputs: Sequence[dict[str, Any]]) -> list[str]:
        dialogues = [read_input(one, self._input_key, self._history_key) for one in inputs]
        return rewrite_all(self._rewriter, dialogues, self._min_confidence, self._on_rewrite)


def rewriting_retriever(
    retriever: Runnable[str, list[Document]], rewriter: AnyRewriter, **options: Any
) -> Runnable[dict[str, Any], list[Document]]:
    """Return a retriever that takes a question and its chat history, and is asked with the rewritten question.

    `options` are those of `RewriteQuery`.
    """
    return RewriteQuery(rewriter, **options) | retriever


def read_input(given: object, input_key: str, history_key: str) -> Dialogue:
    """Return the dialogue of a chain's input; messages of other roles than human and ai are no turns."""
    if not isinstance(given, Mapping) or not isinstance(given.get(input_key), str):
        raise InputError(f"{input_key}: expected a dictionary with a string here, such as {{'{input_key}': '...'}}")
    history = given.get(history_key) or []
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(f"{history_key}: expected a list of messages, found a {type(history).__name__}")
    turns = [str(message.text) for message in convert_to_messages(history) if message.type in _SPEAKERS]
    return Dialogue.from_turns(turns, given[input_key])
