"""The worker pool: uvicorn's, with workers replaced whatever ends them.

All workers accept from one socket that the parent keeps open, so what waits there outlives any of them. A worker that
ends, or that stops answering the parent, is replaced; so is one that could not be started, after a pause.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from socket import socket
from typing import TYPE_CHECKING

from prometheus_client import multiprocess
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from teo.server.logs import LOGGER

if TYPE_CHECKING:
    from uvicorn import Config

ACCEPTED = 1
"""Connections that a worker accepts at a time: few, so that the others get their share."""
CANNOT_START = 78
"""Exit status of a worker whose model cannot be loaded."""
_START_SECONDS = 120.0
"""Seconds that a new worker has before it must answer."""
_LONGEST_PAUSE = 5.0


@dataclass(slots=True)
class _Watched:
    """What is known of the worker in one place of the pool."""

    heard: float
    answered: bool = False
    failures: int = 0
    retry_at: float | None = None
    """When another is started; None while one runs."""


class WorkerPool(Multiprocess):
    """Workers that are kept running until the server is told to stop."""

    def __init__(self, config: Config, sockets: list[socket], *, hung_after: float, stop_within: float) -> None:
        super().__init__(config, sockets)
        self._hung_after, self._stop_within = hung_after, stop_within
        self._watched: list[_Watched] = []
        self._was_up = False
        self.cannot_start = False
        """Whether the pool gave up because no worker could load the model."""

    def init_processes(self) -> None:
        """Start all workers; who connects before they are ready waits."""
        for bound in self.sockets:
            bound.listen()
        for _ in range(self.processes_num):
            self._watched.append(_Watched(0.0))
            self.processes.append(Process(self.config, self.sockets))
            self._start(len(self.processes) - 1)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended or hang, unless the server stops; never wait for one."""
        if self.should_exit.is_set():
            return
        now = time.monotonic()
        for index, (process, watched) in enumerate(zip(self.processes, self._watched, strict=True)):
            if watched.retry_at is not None:
                if now >= watched.retry_at:
                    self.processes[index] = Process(self.config, self.sockets)
                    self._start(index)
                continue
            if process.process.is_alive():
                self._listen(process, watched, now)
                if now - watched.heard < (self._hung_after if watched.answered else _START_SECONDS):
                    continue
            self._bury(index, now)

    def terminate_all(self) -> None:
        """Tell all workers to finish what they have and end."""
        for process in self.processes:
            if process.pid is not None:
                process.terminate()

    def join_all(self) -> None:
        """Wait for all workers; kill those that do not end in time."""
        end = time.monotonic() + self._stop_within
        for process in self.processes:
            if process.pid is None:
                continue
            process.process.join(max(0.0, end - time.monotonic()))
            if process.process.is_alive():
                process.process.kill()
                process.process.join()

    def handle_hup(self) -> None:
        """Stop: the terminal is gone, and there are no settings to read again."""
        self.should_exit.set()

    def handle_ttin(self) -> None:
        """Ignore the signal: the number of workers stays as it is."""

    def handle_ttou(self) -> None:
        """Ignore the signal: the number of workers stays as it is."""

    def _listen(self, process: Process, watched: _Watched, now: float) -> None:
        """Take the answer to the last question, if it has come, and ask again; the answer says whether it serves."""
        with suppress(OSError, EOFError):
            if process.parent_conn.poll():
                serves = bool(process.parent_conn.recv())
                watched.heard, watched.answered, self._was_up = now, True, self._was_up or serves
            process.parent_conn.send(b"ping")

    def _start(self, index: int) -> None:
        watched = self._watched[index]
        watched.heard, watched.answered, watched.retry_at = time.monotonic(), False, None
        try:
            self.processes[index].start()
        except OSError as error:  # no memory, no process or no descriptor left: later there may be
            LOGGER.error("worker-not-started", extra={"fields": {"error": error.strerror or str(error)}})
            self._retry(watched)

    def _bury(self, index: int, now: float) -> None:
        process, watched = self.processes[index], self._watched[index]
        hung = process.process.is_alive()
        process.kill()
        process.process.join()
        if process.pid is not None:
            multiprocess.mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
        fields = {"pid": process.pid, "status": process.exitcode, "hung": hung}
        LOGGER.error("worker-ended", extra={"fields": fields})
        if process.exitcode == CANNOT_START and not self._was_up:
            self.cannot_start = True
            self.should_exit.set()
            return
        if watched.answered:
            watched.failures, watched.retry_at = 0, now
        else:
            self._retry(watched)

    @staticmethod
    def _retry(watched: _Watched) -> None:
        watched.failures += 1
        watched.retry_at = time.monotonic() + min(0.1 * 2**watched.failures, _LONGEST_PAUSE)
