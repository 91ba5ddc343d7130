"""A rewriter that runs elsewhere: the interface of `teo.Rewriter`, the answers of a `teo serve`."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from teo.dialogue import Dialogue
from teo.edits import EditScript, make_edit
from teo.errors import InputError, TeoError
from teo.layouts import Truncation, TruncationRule
from teo.result import Rewrite

_BUSY = frozenset({429, 503})


class RemoteError(TeoError):
    """A server did not answer as it should."""


class RemoteRewriter:
    """The rewriter of a server; needs nothing but Python."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, retries: int = 3) -> None:
        """Take the server's address, such as http://127.0.0.1:8000; a busy server is asked again `retries` times."""
        if not url.startswith(("http://", "https://")):
            raise InputError(f"url: expected http:// or https://, found '{url}'")
        self._url = url.rstrip("/") + "/v1/rewrite"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout, self._retries = timeout, retries

    def rewrite(
        self,
        history: Sequence[str] | None = None,
        utterance: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        min_confidence: float | None = None,
    ) -> Rewrite:
        """Return the rewrite of an utterance after its history, or of the last of some chat messages."""
        turns = {"history": [] if history is None else history, "utterance": utterance}
        row = turns if messages is None else {"messages": messages}
        return self.rewrite_many([Dialogue.from_row(row)], min_confidence=min_confidence)[0]

    def rewrite_many(
        self,
        dialogues: Sequence[Dialogue],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: TruncationRule = "oldest",
    ) -> list[Rewrite]:
        """Return the rewrites of many dialogues, in order, asked for `batch_size` at a time."""
        results: list[Rewrite] = []
        for start in range(0, len(dialogues), batch_size):
            part = dialogues[start : start + batch_size]
            items = [{"history": list(one.history), "utterance": one.utterance} for one in part]
            body: dict[str, Any] = {"items": items, "truncation": truncation}
            if min_confidence is not None:
                body["min_confidence"] = min_confidence
            records = self._post(body).get("items")
            if not isinstance(records, list) or len(records) != len(part):
                raise RemoteError(f"{self._url}: expected {len(part)} records, found something else")
            results += [read_record(record) for record in records]
        return results

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's answer; a busy server is waited for, its refusal is an error with its own sentence."""
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
        for attempt in range(self._retries + 1):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as response:
                    answer = json.load(response)
                    return answer if isinstance(answer, dict) else {}
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _BUSY or attempt == self._retries:
                        raise _refusal(error) from None
                time.sleep(min(2**attempt * 0.25, 5))
            except (OSError, ValueError) as error:
                raise RemoteError(
                    f"{self._url}: the server cannot be reached ({error}); is teo serve running?"
                ) from error
        raise RemoteError(f"{self._url}: no answer")


def read_record(record: Mapping[str, Any]) -> Rewrite:
    """Return the rewrite that a record describes."""
    try:
        edits = EditScript(tuple(make_edit(edit["start"], edit["old"], edit["new"]) for edit in record["edits"]))
        unread = Truncation(record["truncated"]["turns"], record["truncated"]["characters"])
        return Rewrite(
            record["rewrite"],
            record["changed"],
            edits,
            record["operations"],
            record["confidence"],
            unread,
            record.get("reason"),
        )
    except (KeyError, TypeError) as error:
        raise RemoteError(f"expected a rewrite's record, found one without {error}") from None


def _refusal(error: urllib.error.HTTPError) -> TeoError:
    """Return the error that a server's problem JSON describes; a field's fault is the caller's."""
    try:
        detail = str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = str(error.reason)
    return InputError(detail) if error.code in {400, 413, 422} else RemoteError(f"status {error.code}: {detail}")
