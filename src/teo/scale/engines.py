"""Two engines for one job: the cores of this machine, or the actors of a Ray cluster. Both give the same parts."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from teo.errors import InputError, MissingExtraError
from teo.runtime.onnx_session import available_cores
from teo.scale.parts import Done, Part
from teo.scale.worker import Report, Task, Worker

_TRIES = 3
"""How often a part is begun whose process ends in the middle of it."""
_BLOCKS = 2000
"""The most blocks that Ray is given; each is a task of its scheduler."""


def run_local(task: Task, parts: Sequence[Part], processes: int) -> Generator[Report, None, None]:
    """Yield a report for each part as it is done, by so many processes; one process is this one."""
    if processes == 1 or len(parts) == 1:
        yield from map(Worker(task).report, parts)
        return
    waiting, tries = deque(parts), Counter[int]()
    crew = _Crew(task)
    try:
        for number in range(min(processes, len(parts))):
            crew.start(number, waiting.popleft())
        while crew.busy:
            for connection in crew.ready():
                number, part, process = crew.busy[connection]
                try:
                    report: Report = connection.recv()
                except EOFError:  # it was killed, perhaps for its memory
                    crew.forget(connection)
                    tries[part.number] += 1
                    if tries[part.number] == _TRIES:
                        yield Report(part.number, None, failure=_describe_end(part, process), status=1)
                    crew.start(number, part)
                    continue
                crew.give(connection, waiting.popleft() if waiting else None)
                yield report
    finally:
        crew.stop()


class _Crew:
    """The processes that work, by the connections to them: number, part and process."""

    def __init__(self, task: Task) -> None:
        self._task, self._context = task, get_context("spawn")
        self.busy: dict[Connection, tuple[int, Part, SpawnProcess]] = {}

    def ready(self) -> list[Connection]:
        """Return the connections that have something to say, or have ended; waits for the first."""
        said = wait(list(self.busy))
        return [connection for connection in self.busy if connection in said]

    def start(self, number: int, part: Part) -> None:
        """Start a process and give it its first part."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self._task, number, theirs), daemon=True)
        process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        self.busy[ours] = (number, part, process)
        with suppress(BrokenPipeError):
            ours.send(part)

    def give(self, connection: Connection, part: Part | None) -> None:
        """Give a process its next part; without one it ends."""
        number, _, process = self.busy[connection]
        if part is None:
            self.forget(connection)
        else:
            self.busy[connection] = (number, part, process)
            with suppress(BrokenPipeError):
                connection.send(part)

    def forget(self, connection: Connection) -> None:
        """Let a process end: it does when its connection is closed."""
        *_, process = self.busy.pop(connection)
        connection.close()
        process.join()

    def stop(self) -> None:
        """End all processes; what they are at is done again by the next run."""
        for connection, (*_, process) in self.busy.items():
            process.terminate()
            process.join()
            connection.close()
        self.busy.clear()


def _work(task: Task, number: int, connection: Connection) -> None:
    """Rewrite parts until the connection ends, which it also does when the other side was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the first process ends the others
    worker = Worker(task, number)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(worker.report(connection.recv()))


def _describe_end(part: Part, process: SpawnProcess) -> str:
    code = process.exitcode or 0
    how = f"by signal {-code}" if code < 0 else f"with status {code}"
    advice = "there may be too little memory: use fewer --processes or a smaller --batch-size"
    return f"{part.name}: the process that rewrote rows {part.first} and on ended {how}, {_TRIES} times; {advice}"


@contextmanager
def ray_cluster(task: Task, processes: int | None, address: str | None) -> Iterator[int]:
    """Connect to a cluster, or start one here, and give the number of actors that there are to be.

    A core is left free: with an actor on each of them nothing is left to feed the actors.
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
            f"--address: expected a Ray cluster at {address}, found none that lets us in ({reason}); start one with "
            "`ray start --head`, give its token in RAY_AUTH_TOKEN where it asks for one, or leave the address out"
        ) from error


def run_ray(task: Task, parts: Sequence[Part], actors: int) -> Iterator[Report]:
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
    for row in reports.iter_rows():
        done = None if row["failure"] else Done.from_dict(row)
        yield Report(row["number"], done, row["seconds"], row["failure"], row["status"])


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
    """An actor: a worker whose parts and reports are rows of Ray's."""

    def __init__(self, task: Task) -> None:
        self._worker = Worker(task)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the report of a part."""
        report = self._worker.report(Part(**row))
        done = report.done or Done(report.number, 0, 0, 0, 0, 0, "")
        outcome = {"seconds": report.seconds, "failure": report.failure, "status": report.status}
        return {**asdict(done), **outcome}
