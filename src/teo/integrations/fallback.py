"""FallbackRewriter: a rewriter that asks a language model if its own proposal is below the threshold."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from teo.alignment import derive_edits
from teo.arguments import kind_of, require_integer
from teo.decision import Prefer, own_edits
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.errors import InputError, TeoError
from teo.interface import BaseRewriter, DialogueLike
from teo.layouts import TruncationRule
from teo.result import Rewrite

_logger = logging.getLogger(__name__)


class FallbackRewriter(BaseRewriter):
    """A rewriter, and the language model that is asked if it is unsure."""

    def __init__(self, rewriter: BaseRewriter, ask: Callable[[Dialogue], str], *, concurrency: int = 4) -> None:
        """Take both; only utterances that the rewriter leaves unchanged for the reason `unsure` reach `ask`.

        `ask` gets a dialogue and returns the rewritten utterance alone, or an empty text if it has none. It is called
        from up to `concurrency` threads at once.
        """
        require_integer("concurrency", concurrency, 1)
        self._rewriter, self._ask, self._concurrency = rewriter, ask, concurrency
        self.asked = self.failures = 0

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
        """Return what the rewriter returns, with the language model's rewrites for unsure utterances.

        These have no confidence and no alternatives. If `ask` fails, the utterance is left unchanged.
        """
        rows = list(dialogues)
        results = self._rewriter.try_many(
            rows, batch_size, prefer=prefer, min_confidence=min_confidence, truncation=truncation, n_best=n_best
        )
        unsure = [
            (number, result, row if isinstance(row, Dialogue) else Dialogue.from_row(row))
            for number, (row, result) in enumerate(zip(rows, results, strict=True))
            if isinstance(result, Rewrite) and result.reason == "unsure"
        ]
        if unsure:
            with ThreadPoolExecutor(self._concurrency) as pool:
                answers = list(pool.map(self._try, [dialogue for _, _, dialogue in unsure]))
            self.asked += len(answers)
            self.failures += answers.count(None)
            for (number, record, dialogue), answer in zip(unsure, answers, strict=True):
                results[number] = _taken_over(record, dialogue, (answer or "").strip())
        return results

    def _try(self, dialogue: Dialogue) -> str | None:
        """Return the language model's answer; None if there is none because of an error."""
        try:
            return _require_answer(self._ask(dialogue))
        except Exception as error:
            # The message of an error that is not ours may quote a user.
            reason = str(error) if isinstance(error, TeoError) else type(error).__name__
            _logger.warning("the fallback failed, the utterance is left unchanged: %s", reason)
            return None


def _require_answer(answer: object) -> str:
    """Return what a language model was asked for; raises if it is no string."""
    if isinstance(answer, str):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()  # nobody awaits it
    raise InputError(f"ask: expected a function that returns a string, found one that returned {kind_of(answer)}")


def _taken_over(record: Rewrite, dialogue: Dialogue, rewrite: str) -> Rewrite:
    """Return the record with the language model's rewrite; unchanged if there is none, or one that ran away."""
    if not rewrite:
        return record
    edits = derive_edits(dialogue.utterance, rewrite)
    if not edits:
        return replace(record, operations="", confidence=None, reason="complete", alternatives=())
    if not own_edits(dialogue.utterance, dialogue, edits):
        return record
    return replace(
        record,
        rewrite=rewrite,
        changed=True,
        edits=edits,
        operations=format_operations(edits.operations),
        confidence=None,
        reason=None,
        alternatives=(),
    )


__all__ = ["FallbackRewriter"]
