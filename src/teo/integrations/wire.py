"""The connection to a `teo serve`: requests with their retries, records and refusals as the package's own values."""

from __future__ import annotations

import http.client
import json
import math
import time
import urllib.error
import urllib.parse
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


class RemoteError(TeoError):
    """A server did not answer as it should."""


class RefusedError(InputError):
    """A server refused a request, or one of its dialogues, for what is in it."""

    def __init__(self, detail: str, status: int) -> None:
        """Take the server's sentence and its status."""
        super().__init__(detail)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: the token and the dialogues would go to whomever the server names."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


_OPENER = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True, slots=True)
class Connection:
    """A server's address, and how to call it."""

    url: str
    token: str | None = field(repr=False)
    timeout: float | None
    """Seconds that a request may take, with its retries; None: no limit."""
    retries: int
    """How often a busy server is tried again."""

    def request(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the server's answer; a refusal raises the server's own sentence.

        A busy server is tried again, and once a connection that ended before the answer: rewriting a dialogue again
        gives the same record.
        """
        data = None if body is None else encode_body(body)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, data, headers)
        end = math.inf if self.timeout is None else time.monotonic() + self.timeout
        busy, was_reset = 0, False
        while True:
            left = None if self.timeout is None else max(0.001, end - time.monotonic())
            try:
                with _OPENER.open(request, timeout=left) as response:
                    return _read_answer(response.read(), request.full_url)
            except urllib.error.HTTPError as error:
                with error:
                    pause = min(2**busy * 0.25, 5)
                    if error.code not in _BUSY or busy == self.retries or time.monotonic() + pause > end:
                        raise _refusal(error) from None
                busy += 1
                time.sleep(pause)
            except (OSError, http.client.HTTPException) as error:
                if was_reset or not _is_reset(error):
                    raise RemoteError(
                        f"{request.full_url}: the server cannot be reached ({error}); is teo serve running?"
                    ) from error
                was_reset = True
            except ValueError:  # its text may quote the headers, the token among them
                raise RemoteError(
                    f"{request.full_url}: expected an address and a token of which a request can be made, found others"
                ) from None


def require_url(url: object) -> str:
    """Return a server's address without a slash at its end; raises where no request can be made to it."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InputError(f"url: expected http:// or https://, found '{url}'")
    if "@" in url.split("/")[2]:
        raise InputError("url: expected no name and password before the host, found some; pass token instead")
    try:
        parts = urllib.parse.urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is no number
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or any(mark in url for mark in " ?#"):
        raise InputError(f"url: expected a server's address such as http://127.0.0.1:8000, found {url!r}")
    return url.rstrip("/")


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return a request's body: JSON in UTF-8, which has no form of a lone surrogate but JSON's own escape."""
    return json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")


def _read_answer(answer: bytes, url: str) -> dict[str, Any]:
    """Return the object that an answer holds; an empty one if it holds another value."""
    try:
        value = json.loads(answer)
    except ValueError:
        raise RemoteError(f"{url}: expected JSON in the answer, found something else; is it a teo serve?") from None
    return value if isinstance(value, dict) else {}


def _is_reset(error: Exception) -> bool:
    """Tell whether a connection was made and ended before the answer: its worker died, or it was idle too long."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, ConnectionResetError | BrokenPipeError | http.client.IncompleteRead)


def read_item(record: Mapping[str, Any]) -> Rewrite | TeoError:
    """Return the rewrite that one of several records describes, or the error in its place."""
    if "error" not in record:
        return read_record(record)
    try:
        return RefusedError(str(record["error"]["message"]), record["error"].get("status", 422))
    except (KeyError, TypeError) as error:
        raise RemoteError(f"expected an item's error, found one without {error}") from None


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
    if error.code in range(300, 400):
        return RemoteError(f"status {error.code}: the server redirects elsewhere, which is not followed; use its url")
    try:
        detail = str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        detail = str(error.reason)
    if error.code not in _CALLERS_FAULT:
        return RemoteError(f"status {error.code}: {detail}")
    return RefusedError(detail, error.code)
