"""A rewriter that runs elsewhere: the interface of `teo.Rewriter`, the answers of a `teo serve`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.guard import Guard, OnError
from teo.integrations.wire import Connection, RefusedError, RemoteError, read_record
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

        `timeout`: the seconds that a request may take, its retries included. A busy server is asked again `retries`
        times. `on_error="keep"`: when the server is down or slow, utterances come back as they are.
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
        """How many utterances came back as they were because the server failed."""
        return self._guard.failures

    @property
    def name(self) -> str:
        """The name of the server's model; asked for anew each time, as the other properties."""
        return str(self._state("model"))

    @property
    def variant(self) -> str:
        """The pipeline's name."""
        return str(self._state("variant"))

    @property
    def threshold(self) -> float:
        """The confidence below which an utterance is kept, unless its language has its own or a call says otherwise."""
        return float(self._state("threshold"))

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the languages that have their own."""
        return dict(self._state("thresholds"))

    @property
    def source_limit(self) -> int:
        """How many tokens of a dialogue the model reads."""
        return int(self._state("source_limit"))

    def try_many(
        self,
        dialogues: Iterable[DialogueLike],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return what `rewrite_many` does, with the error of a dialogue that cannot be rewritten in its place."""
        if batch_size < 1:
            raise InputError(f"batch_size: expected at least 1, found {batch_size}")
        # Only what differs from the server's own defaults is sent.
        settings = {
            "min_confidence": (min_confidence, None),
            "truncation": (truncation, "oldest"),
            "n_best": (n_best, 1),
        }
        options = {name: value for name, (value, default) in settings.items() if value != default}
        results: list[Rewrite | TeoError] = []
        asked: list[tuple[int, Dialogue]] = []
        for number, row in enumerate(dialogues):
            try:
                dialogue = row if isinstance(row, Dialogue) else Dialogue.from_row(row)
            except InputError as error:
                results.append(error)
            else:
                results.append(Rewrite(dialogue.utterance))
                asked.append((number, dialogue))
        for start in range(0, len(asked), batch_size):
            part = asked[start : start + batch_size]
            answers = self._guard.answer([dialogue for _, dialogue in part], partial(self._ask, options=options))
            for (number, _), answer in zip(part, answers, strict=True):
                results[number] = answer
        return results

    def _ask(self, dialogues: Sequence[Dialogue], options: Mapping[str, Any]) -> list[Rewrite | TeoError]:
        """Return the server's answers; where it refuses a request for some dialogues, the others are asked again."""
        items = [{"history": list(dialogue.history), "utterance": dialogue.utterance} for dialogue in dialogues]
        try:
            records = self._connection.request("/v1/rewrite", {"items": items, **options}).get("items")
        except RefusedError as refusal:
            faults = {number: text for number, text in refusal.faults.items() if number < len(dialogues)}
            if faults:
                rest = [dialogue for number, dialogue in enumerate(dialogues) if number not in faults]
                answers = iter(self._ask(rest, options) if rest else ())
                return [InputError(faults[k]) if k in faults else next(answers) for k in range(len(dialogues))]
            if refusal.status != 413:
                raise
            if len(dialogues) == 1:
                return [refusal]
            half = len(dialogues) // 2  # too much at once, though each may be small enough
            return self._ask(dialogues[:half], options) + self._ask(dialogues[half:], options)
        if not isinstance(records, list) or len(records) != len(dialogues):
            raise RemoteError(f"{self._url}/v1/rewrite: expected {len(dialogues)} records, found something else")
        return [read_record(record) for record in records]

    def _state(self, key: str) -> Any:
        """Return what the server tells of itself."""
        state = self._guard.within(lambda: self._connection.request("/health"))
        if key not in state:
            raise RemoteError(f"{self._url}/health: expected '{key}' in the answer, found none; is the server older?")
        return state[key]


def _too_slow(url: str, reason: str) -> RemoteError:
    return RemoteError(f"{url}: {reason}")


__all__ = ["RemoteError", "RemoteRewriter"]
