"""The middleware before every handler: request ids, the token, body limits, headers, logs, counts, last errors."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teo.server.logs import LOGGER, describe_failure
from teo.server.metrics import ServerMetrics
from teo.server.problems import ProblemError, too_large
from teo.server.settings import ServerSettings, is_loopback

OPEN_PATHS = frozenset({"/", "/docs", "/health", "/openapi.json"})
"""Addresses that need no token: they hold no user's text and cost nothing."""
COUNTED_PATHS = OPEN_PATHS | {"/metrics", "/v1/rewrite", "/v1/chat/completions", "/v1/models"}
"""Addresses with a count of their own; others are counted together, so that callers cannot make up new counts."""
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_DISCARDED = 8
"""Times the limit that a too large body is read and thrown away, so that its sender gets to read the answer."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestMiddleware:
    """ASGI middleware for every request except a browser's CORS preflight."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: ServerMetrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = headers.get("x-request-id", "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        scope["teo_request_id"] = request_id
        scope["teo_log"] = fields = dict[str, Any]()
        answer = _Answer(send, request_id, partial(self._count, scope), with_body=scope["method"] != "HEAD")
        started = time.perf_counter()
        try:
            await self._admit(scope, headers, receive, answer)
        except ProblemError as problem:
            await problem.to_response(request_id, scope["path"])(scope, receive, answer)
        except asyncio.CancelledError:
            answer.status = 499  # the caller left, or the server stops
            raise
        except Exception as error:
            fields["failure"] = describe_failure(error, with_text=self._settings.log_text)
            if answer.status == 0:
                failed = ProblemError(500, "internal", "something failed on the server; its log has the request's id")
                await failed.to_response(request_id, scope["path"])(scope, receive, answer)
        finally:
            if not answer.begun:
                self._count(scope, answer.status)
            self._record(scope, answer.status, time.perf_counter() - started)

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, answer: Send) -> None:
        """Pass a request on, if it has the token and its body is one to read."""
        path = scope["path"]
        if self._settings.local_only:
            require_local_name(headers)
        if self._settings.token is not None and needs_token(path):
            require_token(headers, self._settings.token)
        if scope["method"] == "POST":
            body = await self._read_body(headers, receive)
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if path.startswith("/v1/") and content_type != "application/json":
                message = f"expected application/json, found {content_type[:100] or 'nothing'}"
                raise ProblemError(
                    415, "unsupported-media-type", f"Content-Type: {message}", [("Content-Type", message)]
                )
            receive = _replay(body, receive)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, answer)

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        """Return the body; one that is too long or too slow is a problem."""
        limit = self._settings.max_body
        stated = headers.get("content-length", "")
        size, parts = 0, list[bytes]()
        refused = stated.isdigit() and int(stated[:20]) > limit
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                more = not (refused and int(stated[:20]) > _DISCARDED * limit)
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ProblemError(400, "incomplete-body", "body: the connection ended before the body did")
                    part = message.get("body", b"")
                    size += len(part)
                    refused = refused or size > limit
                    more = message.get("more_body", False) and size <= _DISCARDED * limit
                    parts = [] if refused else [*parts, part]
        except TimeoutError:
            seconds = f"{self._settings.body_timeout:g}"
            raise ProblemError(408, "body-timeout", f"body: expected it within {seconds} s, it did not end") from None
        if refused:
            found = stated if stated.isdigit() else f"more than {limit}"
            raise too_large("body", f"expected at most {limit} bytes, found {found[:20]}; send fewer dialogues at once")
        return b"".join(parts)

    def _count(self, scope: Scope, status: int) -> None:
        self._metrics.requests.labels(_counted_path(scope), str(status)).inc()

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Time a request and log it: no text, no address of the caller's."""
        path = _counted_path(scope)
        if path.startswith("/v1/"):
            self._metrics.stages.labels("total").observe(seconds)
        fields = {
            "request_id": scope["teo_request_id"],
            "method": scope["method"],
            "path": path,
            "status": status,
            "ms": round(seconds * 1000, 2),
            **scope["teo_log"],
        }
        quiet = path in {"/health", "/metrics"} and status < 400
        level = logging.ERROR if status in {0, 500} else logging.DEBUG if quiet else logging.INFO
        LOGGER.log(level, "request", extra={"fields": fields})


def _counted_path(scope: Scope) -> str:
    path: str = scope["path"]
    return path if path in COUNTED_PATHS else "other"


class _Answer:
    """A `send` that adds the headers every answer has, remembers the status, and counts the answer before it leaves.

    So no answer goes uncounted, even if the worker is killed right after it. An answer to HEAD loses its body.
    """

    def __init__(self, send: Send, request_id: str, count: Callable[[int], None], *, with_body: bool) -> None:
        self._send, self._request_id, self._count, self._with_body = send, request_id, count, with_body
        self.status, self.begun = 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            self._count(self.status)
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        elif message["type"] == "http.response.body" and not self._with_body:
            message = {**message, "body": b""}
        await self._send(message)


def needs_token(path: str) -> bool:
    """Return whether an address needs the token, if the server has one."""
    return not (path in OPEN_PATHS or path.startswith("/static/"))


def require_token(headers: Headers, token: str) -> None:
    """Raise a problem unless a request carries the token; how long it takes tells nothing about the token."""
    scheme, _, found_token = headers.get("authorization", "").partition(" ")
    matches = hmac.compare_digest(_digest(found_token.strip()), _digest(token))
    if scheme.lower() != "bearer" or not matches:
        found = "another" if found_token else "none"
        raise ProblemError(
            401,
            "unauthorized",
            f"Authorization: expected 'Bearer' and the server's token, found {found}",
            [("Authorization", f"expected 'Bearer' and the server's token, found {found}")],
            {"WWW-Authenticate": 'Bearer realm="teo"'},
        )


def require_local_name(headers: Headers) -> None:
    """Raise a problem unless a request names this machine: a page on the web may have its own name point here."""
    host = headers.get("host", "")
    name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
    if not is_loopback(name):
        message = "expected localhost or a loopback address, found another; set a token to serve other names"
        raise ProblemError(421, "misdirected", f"Host: {message}", [("Host", message)])


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body that was read, then whatever comes after it."""
    replayed = False

    async def again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
