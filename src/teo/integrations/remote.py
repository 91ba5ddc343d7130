"""A rewriter on a server: the interface of `teo.Rewriter` in front of a `teo serve`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.guard import Guard, OnError
from teo.integrations.wire import Connection, RefusedError, RemoteError, read_item
from teo.interface import BaseRewriter, DialogueLike
from teo.layouts import TruncationRule
from teo.result import Rewrite


class RemoteRewriter(BaseRewriter):
    """The rewriter of a server; needs nothing but Python."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        on_error: OnError = "raise",
    ) -> None:
        """Take the server's address, such as http://127.0.0.1:8000.

        `timeout`: the seconds that a request may take, its retries included. A busy server is tried again `retries`
        times, and once if its connection ends before the answer. `on_error="keep"`: when the server is down or slow,
        utterances come back unchanged.
        """
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InputError(f"url: expected http:// or https://, found '{url}'")
        self._url = url.rstrip("/")
        self._connection = Connection(self._url, token, timeout, retries)
        self._guard = Guard(
            "teo.integrations.remote.RemoteRewriter",
            on_error,
            timeout,
            catches=RemoteError,
            slow=partial(_too_slow, self._url),
        )

    @property
    def failures(self) -> int:
        """How many utterances came back unchanged because the server failed."""
        return self._guard.failures

    @property
    def name(self) -> str:
        """The name of the server's model; requested each time, as the other properties are."""
        return str(self._state("model"))

    @property
    def variant(self) -> str:
        """The pipeline's name."""
        return str(self._state("variant"))

    @property
    def threshold(self) -> float:
        """The confidence below which an utterance stays unchanged, unless the call has its own."""
        return float(self._state("threshold"))

    @property
    def source_limit(self) -> int:
        """How many tokens of a dialogue the model reads."""
        return int(self._state("source_limit"))

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
        """Return the rewrite of each dialogue, or its error."""
        if batch_size < 1:
            raise InputError(f"batch_size: expected at least 1, found {batch_size}")
        # Only what differs from the server's own defaults is sent.
        settings = {
            "prefer": (prefer, None),
            "min_confidence": (min_confidence, None),
            "truncation": (truncation, "oldest"),
            "n_best": (n_best, 1),
        }
        options = {name: value for name, (value, default) in settings.items() if value != default}
        results: list[Rewrite | TeoError] = []
        sent: list[tuple[int, Dialogue]] = []
        for number, row in enumerate(dialogues):
            try:
                dialogue = row if isinstance(row, Dialogue) else Dialogue.from_row(row)
            except InputError as error:
                results.append(error)
            else:
                results.append(Rewrite(dialogue.utterance))
                sent.append((number, dialogue))
        for start in range(0, len(sent), batch_size):
            part = sent[start : start + batch_size]
            answers = self._guard.answer([dialogue for _, dialogue in part], partial(self._ask, options=options))
            for (number, _), answer in zip(part, answers, strict=True):
                results[number] = answer
        return results

    def _ask(self, dialogues: Sequence[Dialogue], options: Mapping[str, Any]) -> list[Rewrite | TeoError]:
        """Return the server's answers; a request that is too large is sent in halves."""
        items = [_item(dialogue) for dialogue in dialogues]
        try:
            records = self._connection.request("/v1/rewrite", {"items": items, **options}).get("items")
        except RefusedError as refusal:
            if refusal.status != 413:
                raise
            if len(dialogues) == 1:
                return [refusal]
            half = len(dialogues) // 2  # too much at once, though each may be small enough
            return self._ask(dialogues[:half], options) + self._ask(dialogues[half:], options)
        if not isinstance(records, list) or len(records) != len(dialogues):
            raise RemoteError(f"{self._url}/v1/rewrite: expected {len(dialogues)} records, found something else")
        return [read_item(record) for record in records]

    def _state(self, key: str) -> Any:
        """Return a field of the server's status."""
        state = self._guard.within(lambda: self._connection.request("/health"))
        if key not in state:
            raise RemoteError(f"{self._url}/health: expected '{key}' in the answer, found none; is the server older?")
        return state[key]


def _item(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as the server reads it: as chat messages if it is known who said what."""
    if dialogue.speakers is None:
        return {"history": list(dialogue.history), "utterance": dialogue.utterance}
    turns = zip(dialogue.speakers, (*dialogue.history, dialogue.utterance), strict=True)
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


def _too_slow(url: str, reason: str) -> RemoteError:
    return RemoteError(f"{url}: {reason}")


__all__ = ["RemoteError", "RemoteRewriter"]
