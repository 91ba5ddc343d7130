"""Two engines for one job: the cores of this machine, or the actors of a Ray cluster. Both give the same parts."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from threading import current_thread, main_thread
from typing import Any

from teo.cores import available_cores
from teo.errors import InputError, MissingExtraError
from teo.scale.manifest import TRIES
from teo.scale.parts import Done, Part
from teo.scale.stores import open_store
from teo.scale.worker import BatchTask, Report, Worker

_TRIES = 3
"""How often a part is tried whose process dies."""
_BLOCKS = 2000
"""The most blocks that Ray is given; each is a task of its scheduler."""


def run_local(task: BatchTask, parts: Sequence[Part], processes: int) -> Generator[Report, None, None]:
    """Yield a report for each part as it is done, with the given number of processes; a single one is this process."""
    if processes == 1 or len(parts) == 1:
        yield from map(Worker(task).report, parts)
        return
    waiting, tries = deque(parts), Counter[int]()
    pool = _WorkerPool(task)
    try:
        for number in range(min(processes, len(parts))):
            pool.start(number, waiting.popleft())
        while pool.busy or pool.lost:
            for number, part, how in pool.take_lost():  # killed, perhaps for memory, at any moment of their life
                tries[part.number] += 1
                if tries[part.number] == _TRIES:
                    yield Report(part.number, None, failure=_describe_end(part, how), status=1)
                pool.start(number, part)
            for connection, report in pool.reports():
                pool.give(connection, waiting.popleft() if waiting else None)
                yield report
    finally:
        pool.stop()


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold back an interrupt for the moment; a process that starts meanwhile holds it back until it ignores it.

    A process inherits the mask of signals, but in this one another thread may take the signal: so it is noted too.
    """
    if not hasattr(signal, "pthread_sigmask") or current_thread() is not main_thread():  # Windows has no masks
        yield
        return
    resource_tracker.ensure_running()  # started later, it would let interrupts through again
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


class _WorkerPool:
    """Worker processes by the connections to them: number, part and process."""

    def __init__(self, task: BatchTask) -> None:
        self._task, self._context = task, get_context("spawn")
        self.busy: dict[Connection, tuple[int, Part, SpawnProcess]] = {}
        self.lost: list[tuple[int, Part, str]] = []
        """Processes that ended with their part: number, part, and how they ended."""

    def reports(self) -> list[tuple[Connection, Report]]:
        """Return the reports that have come; waits for the first, or for the end of a process."""
        found = []
        for connection in wait(list(self.busy)) if self.busy else ():
            assert isinstance(connection, Connection)
            try:
                found.append((connection, connection.recv()))
            except (EOFError, OSError):  # a part that it never read makes its end a reset
                number, part, process = self.busy[connection]
                self.forget(connection)
                self.lost.append((number, part, _how(process)))
        return found

    def take_lost(self) -> list[tuple[int, Part, str]]:
        """Return the processes that ended with their part, once."""
        lost, self.lost = self.lost, []
        return lost

    @_hold_interrupts()
    def start(self, number: int, part: Part) -> None:
        """Start a process and give it its first part."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self._task, number, theirs), daemon=True)
        try:
            process.start()
        except (BrokenPipeError, ConnectionResetError):  # it was killed before it had read what to do
            self.lost.append((number, part, "before it began"))
            ours.close()
            return
        finally:
            theirs.close()  # so that the end of the process is the end of the connection
        self.busy[ours] = (number, part, process)
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.send(part)

    def give(self, connection: Connection, part: Part | None) -> None:
        """Give a process its next part; without one, the process ends."""
        number, _, process = self.busy[connection]
        if part is None:
            self.forget(connection)
        else:
            self.busy[connection] = (number, part, process)
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.send(part)

    def forget(self, connection: Connection) -> None:
        """Let a process end: it does when its connection is closed."""
        *_, process = self.busy.pop(connection)
        connection.close()
        process.join()

    def stop(self) -> None:
        """End all processes; the next run repeats their unfinished parts."""
        for connection, (*_, process) in self.busy.items():
            process.terminate()
            process.join()
            connection.close()
        self.busy.clear()


def _work(task: BatchTask, number: int, connection: Connection) -> None:
    """Rewrite parts until the connection ends, which it also does when the other side was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the first process ends the others
    worker = Worker(task, number)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(worker.report(connection.recv()))


def _how(process: SpawnProcess) -> str:
    code = process.exitcode or 0
    return f"by signal {-code}" if code < 0 else f"with status {code}"


def _describe_end(part: Part, how: str) -> str:
    advice = "there may be too little memory: use fewer --processes or a smaller --batch-size"
    return f"{part.name}: the process that rewrote rows {part.first} and on ended {how}, {_TRIES} times; {advice}"


@contextmanager
def ray_cluster(task: BatchTask, processes: int | None, address: str | None) -> Iterator[int]:
    """Connect to a cluster, or start one here, and give the number of actors to start.

    One core stays free to feed the actors.
    """
    ray = require_ray()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    on_gpu, cores = task.model.device.startswith("cuda"), task.model.threads
    own = not ray.is_initialized()
    if own and address is not None:
        _connect(ray, address, quiet)
    elif own:
        here = processes or (1 if on_gpu else max(1, available_cores() // cores))
        room = here * (1 if on_gpu else cores) + 1
        ray.init(address="local", num_cpus=room, include_dashboard=False, **quiet)  # not one that happens to run here
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        found = ray.cluster_resources()
        most = int(found.get("GPU", 0)) if on_gpu else int((found.get("CPU", 0) - 1) // cores)
        if most < (processes or 1):
            what = "GPUs" if on_gpu else "cores, of which one stays free to feed the others"
            raise InputError(
                f"processes: expected at most {most} on this cluster, found {processes or 1}; it has "
                f"{found.get('GPU' if on_gpu else 'CPU', 0):g} {what}"
            )
        yield processes or most
    finally:
        if own:
            ray.shutdown()


def _connect(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"--address: expected a Ray cluster at {address}, found none that accepts us ({reason}); start one with "
            "`ray start --head`, give its token in RAY_AUTH_TOKEN if it needs one, or leave the address out"
        ) from error


def run_ray(task: BatchTask, parts: Sequence[Part], actors: int) -> Iterator[Report]:
    """Yield a report for each part as it is done by a pool of actors, each of which holds the model."""
    ray = require_ray()
    items = [asdict(part) for part in parts]
    resources = {"num_gpus": 1} if task.model.device.startswith("cuda") else {"num_cpus": task.model.threads}
    reports = ray.data.from_items(items, override_num_blocks=min(len(items), _BLOCKS)).map(
        RayWorker,
        fn_constructor_args=(task,),
        compute=ray.data.ActorPoolStrategy(size=min(actors, len(items))),
        **resources,
    )
    try:
        for row in reports.iter_rows():
            done = None if row["failure"] else Done.from_dict(row)
            yield Report(row["number"], done, row["seconds"], row["failure"], row["status"])
    except ray.exceptions.RayError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        yield Report(-1, None, failure=f"the Ray cluster failed: {reason[:200]}", status=1)


def require_ray() -> Any:
    """Return Ray with its data library; without it the extra to install is named."""
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}.items():
        os.environ.setdefault(name, value)
    try:
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError("--engine ray", str(error.name), "scale") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # what went wrong comes back in the reports
    return ray


class RayWorker:
    """An actor: a worker whose parts and reports are rows of Ray's.

    Ray starts an actor that died again, with its part, without end. So each try of a part leaves a file; a part that
    was tried three times and is not done is reported.
    """

    def __init__(self, task: BatchTask) -> None:
        self._worker = Worker(task)
        self._store, folder = open_store(task.output)
        self._tries = f"{folder}/{TRIES}"

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the report of a part."""
        part = Part(**row)
        before = sum(name.startswith(f"{part.stem}-") for name in self._store.sizes(self._tries))
        if before >= _TRIES:
            report = Report(part.number, None, failure=_describe_end(part, "without a word"), status=1)
        else:
            self._store.write(f"{self._tries}/{part.stem}-{before}", b"begun")
            report = self._worker.report(part)
        done = report.done or Done(report.number, 0, 0, 0, 0, 0, "")
        outcome = {"seconds": report.seconds, "failure": report.failure, "status": report.status}
        return {**asdict(done), **outcome}
