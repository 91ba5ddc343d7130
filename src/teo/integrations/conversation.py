"""What every adapter shares: what it needs of a rewriter, wherever that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from teo.dialogue import Dialogue
from teo.result import Rewrite

OnRewrite = Callable[[Dialogue, Rewrite], None]
"""Called with every dialogue and what became of it, so that a rewrite is never hidden."""


class AnyRewriter(Protocol):
    """A rewriter: `teo.Rewriter` in this process, or `RemoteRewriter` for a server."""

    def rewrite_many(
        self, dialogues: Sequence[Dialogue], batch_size: int = 32, *, min_confidence: float | None = None
    ) -> list[Rewrite]:
        """Return the rewrites of many dialogues, in order."""


def rewrite_all(
    rewriter: AnyRewriter, dialogues: Sequence[Dialogue], min_confidence: float | None, on_rewrite: OnRewrite | None
) -> list[str]:
    """Return the rewritten utterances, in order, each told to `on_rewrite`."""
    results = rewriter.rewrite_many(dialogues, min_confidence=min_confidence)
    for dialogue, result in zip(dialogues, results, strict=True):
        if on_rewrite is not None:
            on_rewrite(dialogue, result)
    return [result.rewrite for result in results]
