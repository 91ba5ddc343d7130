"""ChatClient: asks an OpenAI-compatible endpoint, again if it is busy, and never twice for the same request.

The standard library is enough for one POST at a time in a few threads, so the client needs no other library.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from teo.errors import InputError, TeoError
from teo_lab.llm.cache import Cache, Completion, hash_request

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSED = frozenset({"content_filter", "content_policy_violation", "context_length_exceeded"})
"""Codes of errors that are about one request's text: the row is refused, the others are still asked for."""
_LONGEST_WAIT = 60.0
_SHOWN = 200


class EndpointError(TeoError):
    """An endpoint did not answer as it should."""


class _TryAgainError(Exception):
    """What went wrong this time, and how long the endpoint asks to wait."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the key would go to whoever the endpoint names."""

    def redirect_request(self, *_arguments: Any, **_settings: Any) -> None:
        """Return nothing, which makes the redirection an error."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and how."""

    base_url: str
    """As OpenAI's clients take it, such as http://127.0.0.1:8080/v1."""
    model: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    """Seconds that an answer may take."""
    retries: int = 6
    """How often a request is made again after a busy answer, a failure or a timeout."""
    backoff: float = 1.0
    """Seconds before the first retry; each further one waits twice as long, with up to a half more by chance."""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(f"base-url: expected http:// or https://, found '{self.base_url}'")
        if not self.model:
            raise InputError("model: expected openai:NAME with the name that the endpoint knows, found none")
        if self.timeout <= 0 or self.retries < 0:
            raise InputError(f"expected a timeout over 0 and retries from 0 on, found {self.timeout}, {self.retries}")

    @property
    def url(self) -> str:
        """The address of chat completions."""
        return f"{self.base_url.rstrip('/')}/chat/completions"


class ChatClient:
    """An endpoint with its cache; may be used from several threads at once."""

    def __init__(self, endpoint: Endpoint, cache: Cache, sleep: Callable[[float], object] = time.sleep) -> None:
        """Take where to ask and where answers are kept; `sleep` waits between retries."""
        self._endpoint, self._cache, self._sleep = endpoint, cache, sleep
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._lock = threading.Lock()
        self.requests = self.retried = 0

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """Return the answer to a request, from the cache if it was asked before."""
        if (known := self.recall(body)) is not None:
            return known
        completion = self._ask(body)
        self._cache.store(hash_request(self._endpoint.url, body), completion)
        return completion

    def recall(self, body: Mapping[str, Any]) -> Completion | None:
        """Return the answer that was given to a request before; None if there is none."""
        return self._cache.find(hash_request(self._endpoint.url, body))

    def _ask(self, body: Mapping[str, Any]) -> Completion:
        """Return the answer of the endpoint, which is asked again with growing pauses while it fails."""
        for attempt in range(self._endpoint.retries + 1):
            self._count("requests")
            try:
                return self._post(body)
            except _TryAgainError as error:
                if attempt == self._endpoint.retries:
                    raise EndpointError(
                        f"{self._endpoint.url}: no answer after {attempt + 1} requests, the last: {error}; run again "
                        "to resume"
                    ) from error
                self._count("retried")
                grown = self._endpoint.backoff * 2**attempt * random.uniform(1, 1.5)  # clients must not march in step
                self._sleep(min(_LONGEST_WAIT, max(grown, error.wait or 0.0)))
        raise EndpointError(f"{self._endpoint.url}: no answer")

    def _post(self, body: Mapping[str, Any]) -> Completion:
        headers = {"Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        request = urllib.request.Request(self._endpoint.url, json.dumps(body).encode(), headers)
        started = time.monotonic()
        try:
            with self._opener.open(request, timeout=self._endpoint.timeout) as response:
                data = response.read()
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error, time.monotonic() - started)
        except (OSError, http.client.HTTPException) as error:  # a timeout, a broken line, nobody there
            raise _TryAgainError(f"{type(error).__name__}: {error}") from error
        return _read_completion(data, time.monotonic() - started)

    def _refused(self, error: urllib.error.HTTPError, seconds: float) -> Completion:
        """Return an empty completion if the request's text is refused; raises for all else."""
        try:
            text = error.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            text = ""
        message, code = _read_problem(text)
        if error.code in _AGAIN and code != "insufficient_quota":
            raise _TryAgainError(f"status {error.code}: {message}", _read_wait(error.headers.get("Retry-After")))
        if error.code in (400, 413, 422) and code in _REFUSED:
            return Completion("", seconds, refusal=f"{code}: {message}")
        advice = {401: "; is the key right?", 403: "; is the key right?", 404: "; are --base-url and the name right?"}
        raise EndpointError(f"{self._endpoint.url}: status {error.code}: {message}{advice.get(error.code, '')}")

    def _count(self, name: str) -> None:
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)


def _read_completion(data: bytes, seconds: float) -> Completion:
    """Return the completion of an answer; one that is not of the protocol is asked for again."""
    try:
        answer = json.loads(data)
        choice = answer["choices"][0]
        content = choice["message"].get("content")
        usage = answer.get("usage") or {}
        read, written = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        shown = data[:_SHOWN].decode("utf-8", "replace")
        raise _TryAgainError(f"expected a chat completion in JSON, found '{shown}'") from error
    tokens = (read if isinstance(read, int) else None, written if isinstance(written, int) else None)
    if isinstance(content, str) and content.strip():
        return Completion(content, seconds, *tokens)
    refusal = choice["message"].get("refusal") or choice.get("finish_reason") or "no text"
    return Completion("", seconds, *tokens, refusal=str(refusal))


def _read_problem(text: str) -> tuple[str, str]:
    """Return the message and the code of an error's body, whatever form it has."""
    try:
        problem = json.loads(text)
        inner = problem.get("error", problem)
        if isinstance(inner, dict):
            return str(inner.get("message", text[:_SHOWN])), str(inner.get("code") or inner.get("type") or "")
        return str(inner), ""
    except (ValueError, AttributeError):
        return " ".join(text[:_SHOWN].split()) or "no message", ""


def _read_wait(value: str | None) -> float | None:
    """Return the seconds of a Retry-After; a date or anything else counts as none."""
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None
