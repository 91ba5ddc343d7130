"""Connections: a time limit for the head of a request, and room for newcomers.

uvicorn's h11 protocol limits a head's size. This one adds a limit of time, from the first moment of a connection, and
a limit of connections: if it is reached, the connection that has been idle longest is closed, so that silent callers
cannot keep others out.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from teo.server.settings import ServerSettings

LONGEST_HEAD = 32 * 1024
"""Bytes of a request's head that wait for its end; more is answered 400. A head that comes whole may be longer."""
KEEP_ALIVE = 75
"""Seconds that an idle connection is kept: longer than load balancers keep theirs, so that they close it first."""
_OTHER_FILES = 64
"""Descriptors that a worker needs besides its connections."""
_MOST_FILES = 65_536


class LimitedProtocol(H11Protocol):
    """One connection."""

    head_timeout: ClassVar[float] = 10.0
    max_connections: ClassVar[int] = 1000

    @classmethod
    def configure(cls, settings: ServerSettings) -> None:
        """Take a server's limits; no more connections than this process may open files for."""
        cls.head_timeout = settings.head_timeout
        cls.max_connections = max(1, min(settings.max_connections, raise_file_limit() - _OTHER_FILES))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self.active_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered, or its caller does not take the answer."""
        return self.cycle is None or self.cycle.response_complete or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        if len(self.connections) >= self.max_connections:
            idle = [one for one in self.connections if isinstance(one, LimitedProtocol) and one.is_idle]
            if idle:
                oldest = min(idle, key=lambda one: one.active_at)
                self.connections.discard(oldest)
                oldest.transport.abort()
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:  # all of them are being answered
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; the time limit holds until a head is complete."""
        self.active_at = time.monotonic()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._head_timer is None and self.is_idle and not self.transport.is_closing():
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; after an answer has begun, there is none to give."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.active_at = time.monotonic()
        super().on_response_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def raise_file_limit() -> int:
    """Return how many files this process may open, after asking for as many as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    wanted = _MOST_FILES if unlimited else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return _MOST_FILES if soft == resource.RLIM_INFINITY else soft
