"""LangChain: a Runnable that makes a question standalone, and a retriever that gets it.

Both take `{"input": ..., "chat_history": [...]}`, as LangChain's own history-aware chains do, so they can
replace them: one local call in milliseconds instead of a call to a language model. They take LangGraph's state too,
`{"messages": [...]}`, or the messages alone: the last one is the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError, TeoError
from teo.integrations.conversation import AdaptedRewriter, AnyRewriter, OnRewrite, read_conversation
from teo.integrations.guard import OnError
from teo.result import Rewrite

try:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, convert_to_messages
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.runnables.config import run_in_executor
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.langchain", str(error.name), "langchain") from error


class RewriteQuery(Runnable[Any, str]):
    """A Runnable from a question and its chat history, or from messages, to a question that stands on its own."""

    def __init__(
        self,
        rewriter: AnyRewriter,
        *,
        input_key: str = "input",
        history_key: str = "chat_history",
        messages_key: str = "messages",
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        on_rewrite: OnRewrite | None = None,
        on_error: OnError = "keep",
        timeout: float | None = None,
    ) -> None:
        """Take a rewriter; when it fails or takes longer than `timeout` seconds, the question stays unchanged.

        `on_error="raise"` raises instead. Since the question goes to a retriever, `prefer` is "search" unless it or
        `min_confidence` is given.
        """
        self._rewriter = AdaptedRewriter(
            "teo.integrations.langchain.RewriteQuery",
            rewriter,
            prefer=prefer,
            min_confidence=min_confidence,
            on_rewrite=on_rewrite,
            on_error=on_error,
            timeout=timeout,
        )
        self._keys = input_key, history_key, messages_key

    @property
    def failures(self) -> int:
        """How many questions went through unchanged because the rewriter failed."""
        return self._rewriter.failures

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> str:  # noqa: A002
        """Return the rewritten question."""
        return self._call_with_config(lambda value: self._rewrite([value])[0], input, config, run_type="chain")

    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[str]:
        """Return the rewritten questions, in order, from one call of the model.

        With `return_exceptions` an input that cannot be rewritten has its exception in its place.
        """
        if not inputs:
            return []
        rewrite = self._try_rewrite if return_exceptions else self._rewrite
        return self._batch_with_config(
            lambda values: list[Exception | str](rewrite(values)),
            inputs,
            config,
            return_exceptions=return_exceptions,
            run_type="chain",
        )

    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[str]:
        """Return what `batch` does, from a thread, so that the event loop is not blocked."""
        return await run_in_executor(None, self.batch, inputs, config, return_exceptions=return_exceptions)

    def _rewrite(self, inputs: Sequence[Any]) -> list[str]:
        dialogues = [read_input(value, *self._keys) for value in inputs]
        return [result.rewrite for result in self._rewriter.rewrite_all(dialogues)]

    def _try_rewrite(self, inputs: Sequence[Any]) -> list[Exception | str]:
        """Return what `_rewrite` does, with an exception in the place of each input that cannot be rewritten."""
        read = [self._try_read(value) for value in inputs]
        dialogues = [each for each in read if isinstance(each, Dialogue)]
        try:
            answers: list[Rewrite | TeoError] = self._rewriter.try_all(dialogues) if dialogues else []
        except Exception as error:
            return [error if isinstance(each, Dialogue) else each for each in read]
        found = iter([each.rewrite if isinstance(each, Rewrite) else each for each in answers])
        return [next(found) if isinstance(each, Dialogue) else each for each in read]

    def _try_read(self, value: object) -> Dialogue | Exception:
        try:
            return read_input(value, *self._keys)
        except Exception as error:
            return error


def rewriting_retriever(
    retriever: Runnable[str, list[Document]], rewriter: AnyRewriter, **options: Any
) -> Runnable[Any, list[Document]]:
    """Return a retriever that takes what `RewriteQuery` takes, and searches with the rewritten question.

    `options` are those of `RewriteQuery`.
    """
    return RewriteQuery(rewriter, **options) | retriever


def read_input(value: object, input_key: str, history_key: str, messages_key: str) -> Dialogue:
    """Return the dialogue of a chain's input, or of messages; what neither a person nor the model said is no turn."""
    messages = _find_messages(value, input_key, messages_key)
    if messages is not None:
        return Dialogue.from_messages(messages)
    if not isinstance(value, Mapping) or not isinstance(value.get(input_key), str):
        raise InputError(
            f"{input_key}: expected a dictionary with a string here, such as {{'{input_key}': '...'}}, "
            f"or messages: a list of them or {{'{messages_key}': [...]}}; found {_describe(value, input_key)}"
        )
    history = value.get(history_key) or []
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(f"{history_key}: expected a list of messages, found a {type(history).__name__}")
    return read_conversation(
        history if all(isinstance(turn, str) for turn in history) else _convert(history, history_key),
        value[input_key],
        field=history_key,
        message_type=BaseMessage,
        read_message=lambda message: (_role(message), message.content),
    )


def _find_messages(value: object, input_key: str, messages_key: str) -> list[BaseMessage] | None:
    """Return the messages of a list, a prompt value or a graph's state; None if the input is no such thing."""
    if isinstance(value, Mapping):
        found = None if input_key in value else value.get(messages_key)
    else:
        found = value if isinstance(value, list | tuple) else getattr(value, messages_key, None)
    if found is None:
        return None
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise InputError(f"{messages_key}: expected a list of messages, found a {type(found).__name__}")
    return _convert(found, messages_key)


def _convert(messages: Sequence[Any], key: str) -> list[BaseMessage]:
    """Return messages as LangChain's own; raises if LangChain does not know their form."""
    try:
        return convert_to_messages(messages)
    except (ValueError, NotImplementedError) as error:
        sentence = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{key}: expected messages that LangChain can read; found others: {sentence}") from error


def _describe(value: object, input_key: str) -> str:
    """Return what an input is: the keys of a dictionary, the type of what should be a string, or its own type."""
    if isinstance(value, Mapping) and input_key in value:
        return f"a {type(value[input_key]).__name__} here"
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(str, value))}" if value else "no keys"
    return f"a {type(value).__name__}"


def _role(message: BaseMessage) -> str:
    """Return who speaks: LangChain tells by the class, but for ChatMessage, whose role is the caller's own word."""
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    return message.role if isinstance(message, ChatMessage) else "system"
