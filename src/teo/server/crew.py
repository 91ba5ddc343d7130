"""The workers of a server with several: processes that are started, asked, replaced when they end, and stopped."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import h11

from teo.errors import TeoError
from teo.server.logs import LOGGER

_LONGEST_HEAD = 1 << 20
_CHUNK = 1 << 16
_POLL = 0.02
"""Seconds between two looks at whether a worker that starts is up."""
_MOST_FAILURES = 3
"""Workers that may end before they were ever up, one after another, before a server gives up starting."""
_LONGEST_PAUSE = 5.0
"""Seconds before a worker is started again that does not come up."""


class WorkerLostError(Exception):
    """A worker ended before it had answered."""


class WorkerDownError(WorkerLostError):
    """A worker could not be asked: it has ended, or takes nothing new."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as a worker gets it; kept until one has answered."""

    method: str
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""

    def encode(self) -> bytes:
        """Return the request in the form of HTTP/1.1."""
        length = [(b"content-length", str(len(self.body)).encode())] if self.body or self.method == "POST" else []
        headers = [*self.headers, *length, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"%b %b HTTP/1.1\r\n%b\r\n%b" % (self.method.encode(), self.target, head, self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker's whole answer."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes


@dataclass(slots=True, eq=False)
class Worker:
    """A process and the socket at which it serves."""

    socket: Path
    process: asyncio.subprocess.Process
    was_up: bool = False
    is_up: bool = False
    asked: int = 0
    """Requests that it has not answered yet."""

    async def ask(self, request: Request) -> Reply:
        """Return the worker's answer to a request; nothing of it is passed on before it is whole."""
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket)
        except OSError as error:
            self.is_up = False
            raise WorkerDownError(str(error)) from error
        self.asked += 1
        try:
            writer.write(request.encode())
            await writer.drain()
            return await _read_reply(reader, request.method)
        except (OSError, h11.RemoteProtocolError) as error:
            raise WorkerLostError(str(error)) from error
        finally:
            self.asked -= 1
            writer.close()  # where the caller left, the worker learns it from this


async def _read_reply(reader: asyncio.StreamReader, method: str) -> Reply:
    """Return the answer that comes; one that ends early is an error of the protocol."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "worker"), ("connection", "close")]))
    connection.send(h11.EndOfMessage())
    status, headers, parts = 0, list[tuple[bytes, bytes]](), list[bytes]()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, list(event.headers)
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return Reply(status, headers, b"".join(parts))
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the connection ended before the answer")


@dataclass(slots=True, eq=False)
class Crew:
    """Several workers, each replaced as soon as it ends."""

    size: int
    folder: Path
    """A private folder for their sockets."""
    shutdown_timeout: float
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _workers: list[Worker] = field(default_factory=list)
    _keepers: list[asyncio.Task[None]] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _started: int = 0
    _failures: int = 0

    async def start(self) -> None:
        """Start all workers and return when the first is up."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self.size)]
        async with self._changed:
            await self._changed.wait_for(lambda: self._ready() or self._failures >= _MOST_FAILURES)
        if not self._ready():
            await self.stop()
            raise TeoError("workers: expected one to start, found that each ended at once; their log says why")

    async def choose(self, seconds: float) -> Worker:
        """Return the worker with the fewest requests; raises TimeoutError where none is up for so long."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(self._ready)
            return min(self._ready(), key=lambda worker: worker.asked)

    async def stop(self) -> None:
        """Let every worker finish what it has, and end."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(self._end(worker.process) for worker in self._workers))

    def _ready(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.is_up]

    async def _keep(self) -> None:
        """Keep one worker running: when it ends, another takes its place."""
        while True:
            if self._failures:
                await asyncio.sleep(min(0.1 * 2**self._failures, _LONGEST_PAUSE))
            self._started += 1
            socket = self.folder / f"{self._started}.sock"
            worker = Worker(socket, await self._spawn(socket))
            self._workers.append(worker)
            watched = asyncio.create_task(worker.process.wait())
            await self._wait_until_up(worker, watched)
            status = await watched
            async with self._changed:
                self._failures = 0 if worker.was_up else self._failures + 1
                worker.is_up = False
                self._workers.remove(worker)
                self._changed.notify_all()
            socket.unlink(missing_ok=True)
            LOGGER.error("worker-ended", extra={"fields": {"pid": worker.process.pid, "status": status}})

    async def _wait_until_up(self, worker: Worker, ended: asyncio.Task[int]) -> None:
        health = Request("GET", b"/health", [(b"host", b"worker")])
        while not ended.done():
            try:
                worker.was_up = worker.is_up = (await worker.ask(health)).status == 200
            except WorkerLostError:
                await asyncio.sleep(_POLL)
            if worker.is_up:
                async with self._changed:
                    self._changed.notify_all()
                return

    async def _spawn(self, socket: Path) -> asyncio.subprocess.Process:
        """Start a process in a session of its own, so that a terminal's Ctrl+C reaches the front alone."""
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "teo.server.worker",
            str(socket),
            str(self.shutdown_timeout),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={**self.environment, "PYTHONPATH": paths},
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), self.shutdown_timeout + 2)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
