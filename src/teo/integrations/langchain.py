"""LangChain: a Runnable that makes a question standalone, and a retriever that is asked with it.

Both take `{"input": ..., "chat_history": [...]}`, as LangChain's own history-aware chains do, so they fit in their
place: one local call in milliseconds where those call a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError
from teo.integrations.conversation import AdaptedRewriter, AnyRewriter, OnRewrite, read_conversation
from teo.integrations.guard import OnError

try:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, convert_to_messages
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.runnables.config import run_in_executor
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.langchain", str(error.name), "langchain") from error


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
        on_error: OnError = "keep",
        timeout: float | None = None,
    ) -> None:
        """Take a rewriter; when it fails or takes longer than `timeout` seconds, the question stays as it is.

        `on_error="raise"` raises instead.
        """
        self._rewriter = AdaptedRewriter(
            "teo.integrations.langchain.RewriteQuery",
            rewriter,
            min_confidence=min_confidence,
            on_rewrite=on_rewrite,
            on_error=on_error,
            timeout=timeout,
        )
        self._input_key, self._history_key = input_key, history_key

    @property
    def failures(self) -> int:
        """How many questions went through as they were because the rewriter failed."""
        return self._rewriter.failures

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any) -> str:  # noqa: A002
        """Return the rewritten question."""
        return self._call_with_config(lambda value: self._rewrite([value])[0], input, config, run_type="chain")

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
            lambda values: list[Exception | str](self._rewrite(values)),
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
        dialogues = [read_input(value, self._input_key, self._history_key) for value in inputs]
        return [result.rewrite for result in self._rewriter.rewrite_all(dialogues)]


def rewriting_retriever(
    retriever: Runnable[str, list[Document]], rewriter: AnyRewriter, **options: Any
) -> Runnable[dict[str, Any], list[Document]]:
    """Return a retriever that takes a question and its chat history, and is asked with the rewritten question.

    `options` are those of `RewriteQuery`.
    """
    return RewriteQuery(rewriter, **options) | retriever


def read_input(value: object, input_key: str, history_key: str) -> Dialogue:
    """Return the dialogue of a chain's input; what neither a person nor the model said is no turn."""
    if not isinstance(value, Mapping) or not isinstance(value.get(input_key), str):
        raise InputError(f"{input_key}: expected a dictionary with a string here, such as {{'{input_key}': '...'}}")
    history = value.get(history_key) or []
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(f"{history_key}: expected a list of messages, found a {type(history).__name__}")
    return read_conversation(
        history if all(isinstance(turn, str) for turn in history) else convert_to_messages(history),
        value[input_key],
        field=history_key,
        message_type=BaseMessage,
        read_message=lambda message: (_role(message), str(message.text)),
    )


def _role(message: BaseMessage) -> str:
    """Return who speaks: LangChain tells by the class, but for ChatMessage, whose role is the caller's own word."""
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    return message.role if isinstance(message, ChatMessage) else "system"
