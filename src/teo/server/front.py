"""The front of a server with several workers: it keeps each request until a worker has answered.

A worker that ends in the middle of a request costs the caller nothing but time: rewriting the same dialogue again gives
the same record, so the request goes to another worker. The front reads bodies, with their limits, and passes everything
else on; token, counts and logs are the workers'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from teo.server.crew import Crew, Reply, Request, WorkerDownError, WorkerLostError
from teo.server.gate import Gate
from teo.server.metrics import ServerMetrics
from teo.server.problems import ProblemError
from teo.server.settings import CORS_HEADERS, ServerSettings

_TRIES = 3
"""Workers that may end over one request: it may be what ends them."""
_SPARE = 5.0
"""Seconds beyond the request's own time limit that a worker gets to say that it is over."""
_OWN_HEADERS = {b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"expect", b"x-request-id"}
"""Headers of the connection to the caller, not of the request."""


def create_front(crew: Crew, settings: ServerSettings) -> ASGIApp:
    """Return the application that starts a crew, passes requests to it and stops it."""
    front: ASGIApp = Front(crew, settings, ServerMetrics())
    if settings.cors_origins:  # so that a page can read why the front refused it
        front = CORSMiddleware(front, allow_origins=settings.cors_origins, **CORS_HEADERS)
    return front


class Front(Gate):
    """The gate of a server whose application is in other processes."""

    def __init__(self, crew: Crew, settings: ServerSettings, metrics: ServerMetrics) -> None:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            await crew.start()
            yield
            await crew.stop()

        super().__init__(Starlette(lifespan=lifespan), settings, metrics)
        self._crew = crew

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, answer: Send) -> None:
        """Pass a request on and its answer back."""
        body = await self._read_body(headers, receive) if scope["method"] == "POST" else b""
        kept = [(name, value) for name, value in scope["headers"] if name.lower() not in _OWN_HEADERS]
        target = scope.get("raw_path") or scope["path"].encode()
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        request = Request(scope["method"], target, [*kept, (b"x-request-id", scope["teo_request_id"].encode())], body)
        reply = await self._ask(request, receive)
        scope["teo_relayed"] = True
        passed = [(name, value) for name, value in reply.headers if name.lower() not in _OWN_HEADERS]
        length = [] if scope["method"] == "HEAD" else [(b"content-length", str(len(reply.body)).encode())]
        await answer({"type": "http.response.start", "status": reply.status, "headers": [*passed, *length]})
        await answer({"type": "http.response.body", "body": reply.body})

    def _count(self, scope: Scope, status: int) -> None:
        """Count what no worker has counted."""
        if not scope.get("teo_relayed"):
            super()._count(scope, status)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Time and log what no worker has timed and logged."""
        if not scope.get("teo_relayed"):
            super()._record(scope, status, seconds)

    async def _ask(self, request: Request, receive: Receive) -> Reply:
        """Return the answer of a worker, of another one where the first ends, unless the caller leaves first."""
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            for _ in range(_TRIES):
                asked = asyncio.ensure_future(self._ask_one(request))
                try:
                    await asyncio.wait({asked, gone}, return_when="FIRST_COMPLETED")
                    if not asked.done():
                        raise ProblemError(400, "client-left", "the connection ended before the answer")
                    return asked.result()
                except WorkerLostError:
                    continue
                finally:
                    asked.cancel()
        except TimeoutError:
            raise _unavailable("timeout", "no worker answered in time; try again") from None
        finally:
            gone.cancel()
        raise _unavailable("worker-lost", f"{_TRIES} workers ended before they had answered; try again")

    async def _ask_one(self, request: Request) -> Reply:
        """Return the answer of the first worker that can be asked."""
        seconds = self._settings.request_timeout
        while True:
            worker = await self._crew.choose(seconds)
            with suppress(WorkerDownError):
                async with asyncio.timeout(seconds + _SPARE):
                    return await worker.ask(request)


def _unavailable(name: str, detail: str) -> ProblemError:
    return ProblemError(503, name, detail, headers={"Retry-After": "1"})


async def _disconnected(receive: Receive) -> None:
    """Return when the caller has left."""
    while (await receive())["type"] != "http.disconnect":
        await asyncio.sleep(0)
