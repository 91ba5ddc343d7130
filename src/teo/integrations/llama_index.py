"""LlamaIndex: a query transform that makes a question standalone before the index is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError
from teo.integrations.conversation import AnyRewriter, OnRewrite, rewrite_all

try:
    from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
    from llama_index.core.llms import ChatMessage
    from llama_index.core.prompts.mixin import PromptDictType
    from llama_index.core.schema import QueryBundle
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.llama_index", str(error.name), "llama-index") from error

Turn = ChatMessage | str
_SPEAKERS = frozenset({"user", "assistant"})


class RewriteTransform(BaseQueryTransform):
    """A query transform from a question to one that stands alone.

    The turns before the question come from `history`, which is called for every query (`memory.get` fits), or from
    the transform's metadata: `transform.run("...", metadata={"chat_history": [...]})`.
    """

    def __init__(
        self,
        rewriter: AnyRewriter,
        history: Callable[[], Sequence[Turn]] | None = None,
        *,
        min_confidence: float | None = None,
        on_rewrite: OnRewrite | None = None,
    ) -> None:
        self._rewriter, self._history = rewriter, history
        self._min_confidence, self._on_rewrite = min_confidence, on_rewrite

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Change nothing: there is no prompt."""

    def _run(self, query_bundle: QueryBundle, metadata: Mapping[str, Any]) -> QueryBundle:
        given = metadata.get("chat_history")
        if given is None:
            given = self._history() if self._history is not None else ()
        dialogue = Dialogue.from_turns(read_turns(given), query_bundle.query_str)
        rewrite = rewrite_all(self._rewriter, [dialogue], self._min_confidence, self._on_rewrite)[0]
        if rewrite == query_bundle.query_str:
            return query_bundle
        # What was embedded for the question as asked does not fit the rewrite: it is embedded anew.
        return QueryBundle(query_str=rewrite, image_path=query_bundle.image_path, custom_embedding_strs=[rewrite])


def read_turns(history: object) -> list[str]:
    """Return what users and assistants said; messages of other roles are no turns."""
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(f"chat_history: expected a list of messages, found a {type(history).__name__}")
    turns = []
    for index, turn in enumerate(history):
        if isinstance(turn, str):
            turns.append(turn)
        elif isinstance(turn, ChatMessage):
            if turn.role.value in _SPEAKERS:
                turns.append(turn.content or "")
        else:
            raise InputError(
                f"chat_history[{index}]: expected a ChatMessage or a string, found a {type(turn).__name__}"
            )
    return turns
