"""LlamaIndex: a query transform that makes a question standalone before the index gets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import MissingExtraError
from teo.integrations.conversation import AdaptedRewriter, AnyRewriter, OnRewrite, read_conversation
from teo.integrations.guard import OnError

try:
    from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
    from llama_index.core.llms import ChatMessage
    from llama_index.core.prompts.mixin import PromptDictType
    from llama_index.core.schema import QueryBundle
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.llama_index", str(error.name), "llama-index") from error

Turn = ChatMessage | str


class RewriteTransform(BaseQueryTransform):
    """A query transform from a question to one that stands on its own.

    The turns before the question come from `history`, which is called for every query (`memory.get` fits), or from
    the transform's metadata: `transform.run("...", metadata={"chat_history": [...]})`.
    """

    def __init__(
        self,
        rewriter: AnyRewriter,
        history: Callable[[], Sequence[Turn]] | None = None,
        *,
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
            "teo.integrations.llama_index.RewriteTransform",
            rewriter,
            prefer=prefer,
            min_confidence=min_confidence,
            on_rewrite=on_rewrite,
            on_error=on_error,
            timeout=timeout,
        )
        self._history = history

    @property
    def failures(self) -> int:
        """How many questions went through unchanged because the rewriter failed."""
        return self._rewriter.failures

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Change nothing: there is no prompt."""

    def _run(self, query_bundle: QueryBundle, metadata: Mapping[str, Any]) -> QueryBundle:
        history = metadata.get("chat_history")
        if history is None:
            history = self._history() if self._history is not None else ()
        rewrite = self._rewriter.rewrite_all([read_dialogue(history, query_bundle.query_str)])[0].rewrite
        if rewrite == query_bundle.query_str:
            return query_bundle
        # The embedding of the original question does not fit the rewrite: it is made anew.
        return QueryBundle(query_str=rewrite, image_path=query_bundle.image_path, custom_embedding_strs=[rewrite])


def read_dialogue(history: object, question: str) -> Dialogue:
    """Return the dialogue of a chat history and the question after it."""
    return read_conversation(
        history,
        question,
        field="chat_history",
        message_type=ChatMessage,
        read_message=lambda message: (message.role.value, message.content or ""),
    )
