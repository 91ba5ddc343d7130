"""The wire to a `teo serve`: requests with their retries, records and refusals as the package's own values."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from teo.edits import EditScript, make_edit
from teo.errors import InputError, TeoError
from teo.layouts import Truncation
from teo.result import Alternative, Rewrite

_BUSY = frozenset({429, 503})
_CALLERS_FAULT = frozenset({400, 413, 422})
_ITEM = re.compile(r"items\[(\d+)\]\.?(.*)")


class RemoteError(TeoError):
    """A server did not answer as it should."""


class RefusedError(InputError):
    """A server refused a request for what is in it."""

    def __init__(self, detail: str, status: int, faults: Mapping[int, str]) -> None:
        """Take the server's sentence and what it says of single items, by their number."""
        super().__init__(detail)
        self.status, self.faults = status, faults


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a server is, and how it is asked."""

    url: str
    token: str | None = field(repr=False)
    timeout: float
    """Seconds that the server may be silent."""
    retries: int
    """How often a busy server is asked again."""

    def request(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the server's answer; a busy server is waited for, its refusal is an error with its own sentence."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, data, headers)
        for attempt in range(self.retries + 1):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    answer = json.load(response)
                    return answer if isinstance(answer, dict) else {}
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _BUSY or attempt == self.retries:
                        raise _refusal(error) from None
                time.sleep(min(2**attempt * 0.25, 5))
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise RemoteError(
                    f"{request.full_url}: the server cannot be reached ({error}); is teo serve running?"
                ) from error
        raise RemoteError(f"{request.full_url}: no answer")


def read_record(record: Mapping[str, Any]) -> Rewrite:
    """Return the rewrite that a record describes."""
    try:
        return Rewrite(
            record["rewrite"],
            record["changed"],
            _read_edits(record),
            record["operations"],
            record["confidence"],
            Truncation(record["truncated"]["turns"], record["truncated"]["characters"]),
            record.get("reason"),
            tuple(
                Alternative(
                    other["rewrite"], _read_edits(other), other["operations"], other["confidence"], other["score"]
                )
                for other in record.get("alternatives") or ()
            ),
        )
    except (KeyError, TypeError) as error:
        raise RemoteError(f"expected a rewrite's record, found one without {error}") from None


def _read_edits(record: Mapping[str, Any]) -> EditScript:
    return EditScript(tuple(make_edit(edit["start"], edit["old"], edit["new"]) for edit in record["edits"]))


def _refusal(error: urllib.error.HTTPError) -> TeoError:
    """Return the error that a server's problem JSON describes; a field's fault is the caller's."""
    try:
        problem = json.load(error)
        detail = str(problem["detail"])
        fields = [(str(fault["field"]), str(fault["message"])) for fault in problem.get("errors", ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, fields = str(error.reason), []
    if error.code not in _CALLERS_FAULT:
        return RemoteError(f"status {error.code}: {detail}")
    faults: dict[int, str] = {}
    for name, message in fields:
        if match := _ITEM.fullmatch(name):
            faults.setdefault(int(match[1]), f"{match[2]}: {message}" if match[2] else message)
    return RefusedError(detail, error.code, faults)
