"""Haystack: a component that makes a question standalone before a retriever gets it.

Its settings are plain values, so that a pipeline with it can be saved as YAML and loaded again.
"""

# No `from __future__ import annotations`: older versions of Haystack 2 do not resolve annotations that are strings.
import asyncio
from typing import Any, Union

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError
from teo.integrations.conversation import AdaptedRewriter, AnyRewriter, OnRewrite, read_conversation
from teo.integrations.guard import OnError
from teo.integrations.remote import RemoteRewriter

try:
    from haystack import component, default_from_dict, default_to_dict
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret, deserialize_secrets_inplace
except ModuleNotFoundError as error:
    raise MissingExtraError("teo.integrations.haystack", str(error.name), "haystack") from error

# The same versions connect nothing to a type that is written with `|`.
History = Union[list[ChatMessage], list[str], None]  # noqa: UP007


@component
class QueryRewriter:
    """A component from a question and the messages before it to a question that stands on its own.

    Inputs: `query`, and `history`, a list of ChatMessage or strings. Outputs: `query`, the rewritten question, and
    `record`, the whole record of the rewrite.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        url: str | None = None,
        token: Secret | None = None,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        on_error: OnError = "keep",
        timeout: float | None = None,
        rewriter: AnyRewriter | None = None,
        on_rewrite: OnRewrite | None = None,
    ) -> None:
        """Take a model folder or hub:owner/name (by default the embedded model), or the `url` of a running `teo serve`.

        When the rewriter fails or takes longer than `timeout` seconds, the question stays unchanged;
        `on_error="raise"` raises instead. Since the question goes to a retriever, `prefer` is "search" unless it or
        `min_confidence` is given. A `rewriter` or `on_rewrite` of one's own cannot be saved with the pipeline.
        """
        if sum(choice is not None for choice in (model, url, rewriter)) > 1:
            raise InputError("model: expected at most one of model, url and rewriter, found several")
        self._settings: dict[str, Any] = {
            "model": model,
            "url": url,
            "prefer": prefer,
            "min_confidence": min_confidence,
            "on_error": on_error,
            "timeout": timeout,
        }
        self._token, self._own, self._on_rewrite = token, rewriter, on_rewrite
        self._rewriter: AdaptedRewriter | None = None
        if rewriter is not None or url is not None:
            self.warm_up()  # nothing to load: bad settings are named now

    @property
    def failures(self) -> int:
        """How many questions went through unchanged because the rewriter failed."""
        return 0 if self._rewriter is None else self._rewriter.failures

    def warm_up(self) -> None:
        """Load the model, unless it is loaded."""
        self._adapted()

    def _adapted(self) -> AdaptedRewriter:
        if self._rewriter is None:
            self._rewriter = AdaptedRewriter(
                "teo.integrations.haystack.QueryRewriter",
                self._own or self._load(),
                prefer=self._settings["prefer"],
                min_confidence=self._settings["min_confidence"],
                on_rewrite=self._on_rewrite,
                on_error=self._settings["on_error"],
                timeout=self._settings["timeout"],
            )
        return self._rewriter

    @component.output_types(query=str, record=dict[str, Any])
    def run(self, query: str, history: History = None) -> dict[str, Any]:
        """Return the rewritten question and its record."""
        dialogue = read_dialogue(history or [], query)
        result = self._adapted().rewrite_all([dialogue])[0]
        return {"query": result.rewrite, "record": result.to_dict()}

    @component.output_types(query=str, record=dict[str, Any])
    async def run_async(self, query: str, history: History = None) -> dict[str, Any]:
        """Return what `run` does, from a thread, so that the event loop is not blocked."""
        return await asyncio.to_thread(self.run, query, history)

    def to_dict(self) -> dict[str, Any]:
        """Return the component as it is saved with a pipeline."""
        if self._own is not None or self._on_rewrite is not None:
            raise InputError("rewriter, on_rewrite: cannot be saved with a pipeline; give the component model or url")
        token = None if self._token is None else self._token.to_dict()
        saved: dict[str, Any] = default_to_dict(self, token=token, **self._settings)
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "QueryRewriter":
        """Return the component that was saved."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["token"])
        loaded: QueryRewriter = default_from_dict(cls, data)
        return loaded

    def _load(self) -> AnyRewriter:
        if self._settings["url"] is not None:
            token = None if self._token is None else self._token.resolve_value()
            limit = self._settings["timeout"]  # a request that nobody waits for any more should end, too
            return RemoteRewriter(self._settings["url"], token=token, **({} if limit is None else {"timeout": limit}))
        from teo.rewriter import Rewriter

        return Rewriter.from_pretrained(self._settings["model"])


def read_dialogue(history: object, query: str) -> Dialogue:
    """Return the dialogue of a conversation and the question after it."""
    if not isinstance(query, str):
        raise InputError(f"query: expected a string, found a {type(query).__name__}")
    return read_conversation(
        history,
        query,
        field="history",
        message_type=ChatMessage,
        read_message=lambda message: (message.role.value, " ".join(message.texts)),
    )
