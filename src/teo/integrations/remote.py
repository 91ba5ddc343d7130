"""A rewriter on a server: the interface of `teo.Rewriter` in front of a `teo serve`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from teo.arguments import require_integer, require_token_text
from teo.decision import Prefer, choose_threshold
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError
from teo.integrations.guard import Guard, OnError
from teo.integrations.wire import Connection, RefusedError, RemoteError, encode_body, read_item, require_url
from teo.interface import BaseRewriter, DialogueLike, require_dialogues, require_truncation
from teo.layouts import TruncationRule
from teo.result import Rewrite

_MOST_BYTES = (1 << 20) - (1 << 10)
"""What the dialogues of one request may take: `teo serve` takes a MiB, options included.

A server may refuse a larger body before it has read it: the connection then ends, and nothing tells why.
"""


class RemoteRewriter(BaseRewriter):
    """The rewriter of a server; needs nothing but Python."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float | None = 30.0,
        retries: int = 3,
        on_error: OnError = "raise",
    ) -> None:
        """Take the server's address, such as http://127.0.0.1:8000.

        `timeout`: the seconds that a request may take, its retries included; None is no limit. A busy server is tried
        again `retries` times, and once if its connection ends before the answer. `on_error="keep"`: when the server is
        down or slow, utterances come back unchanged.
        """
        self._url = require_url(url)
        if token not in (None, ""):
            require_token_text(token)
        self._connection = Connection(self._url, token, timeout, require_integer("retries", retries, 0))
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
        options = _options(prefer, min_confidence, truncation, n_best)
        require_integer("batch_size", batch_size, 1)
        require_dialogues(dialogues)
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
        for part in _requests(sent, batch_size):
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


def _options(
    prefer: Prefer | None, min_confidence: float | None, truncation: TruncationRule, n_best: int
) -> dict[str, Any]:
    """Return the settings of a call that differ from the server's own defaults; raises where no server takes one."""
    threshold = choose_threshold(min_confidence, prefer)
    require_truncation(truncation)
    settings = {
        "prefer": (prefer, None),
        "min_confidence": (None if min_confidence is None else threshold, None),
        "truncation": (truncation, "oldest"),
        "n_best": (require_integer("n_best", n_best, 1), 1),  # how many at most is the server's to say
    }
    return {name: value for name, (value, default) in settings.items() if value != default}


def _requests(sent: Iterable[tuple[int, Dialogue]], most: int) -> Iterator[list[tuple[int, Dialogue]]]:
    """Yield the dialogues of each request, with their positions: at most so many, and alone if one is too large."""
    part: list[tuple[int, Dialogue]] = []
    room = _MOST_BYTES
    for position, dialogue in sent:
        size = len(encode_body(_item(dialogue))) + len(", ")
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], _MOST_BYTES
        part.append((position, dialogue))
        room -= size
    if part:
        yield part


def _item(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as the server reads it: as chat messages if it is known who said what."""
    if dialogue.speakers is None:
        return {"history": list(dialogue.history), "utterance": dialogue.utterance}
    turns = zip(dialogue.speakers, (*dialogue.history, dialogue.utterance), strict=True)
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


def _too_slow(url: str, reason: str) -> RemoteError:
    return RemoteError(f"{url}: {reason}")


__all__ = ["RemoteError", "RemoteRewriter"]
