"""The process: a socket, and the workers that answer there."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from teo.errors import InputError, MissingExtraError, TeoError
from teo.server.logs import LOGGER, log_config
from teo.server.settings import DEFAULT_HOST, DEFAULT_PORT, ServerSettings, is_loopback, require_safe_bind

if TYPE_CHECKING:
    from fastapi import FastAPI

    from teo.loading import Dtype, Runtime
    from teo.rewriter import Rewriter

PLAN = "TEO_SERVER_PLAN"
"""The environment variable in which workers find what to serve; the token is not in it, but in TEO_TOKEN."""
HUNG_AFTER = 15.0
"""Seconds without an answer to the parent after which a worker is replaced."""
WAITING = 1024
"""Connections that may wait to be accepted."""


@dataclass(frozen=True, slots=True)
class ServerModelChoice:
    """Which model a server loads, and how."""

    model: str | None = None
    variant: str | None = None
    threads: int | None = None
    runtime: Runtime = "onnx"
    device: str = "auto"
    dtype: Dtype = "float32"

    def load(self) -> Rewriter:
        """Return the model's rewriter."""
        from teo.rewriter import Rewriter

        return Rewriter.from_pretrained(
            self.model,
            variant=self.variant,
            threads=self.threads,
            runtime=self.runtime,
            device=self.device,
            dtype=self.dtype,
        )


def require_server_libraries(feature: str = "teo serve") -> None:
    """Raise an error that says what to install, unless the server's libraries are here."""
    for library in ("fastapi", "prometheus_client", "uvicorn"):
        if find_spec(library) is None:
            raise MissingExtraError(feature, library, "serve")


def serve(
    choice: ServerModelChoice,
    settings: ServerSettings,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    workers: int = 1,
    allow_anonymous: bool = False,
) -> None:
    """Serve until told to stop; what is in flight then is finished first."""
    require_server_libraries()
    host = host.strip("[]")
    require_safe_bind(host, settings.token, allow_anonymous=allow_anonymous)
    settings = replace(settings, local_only=settings.token is None and is_loopback(host))
    with _stopping_cleanly(), bind(host, port) as bound, tempfile.TemporaryDirectory(prefix="teo-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        os.environ[PLAN] = write_plan(choice, settings)
        os.environ["TEO_TOKEN"] = settings.token or ""
        if not _run(bound, settings, workers):
            choice.load()  # says why no worker could load it
            raise TeoError("workers: expected one to start, found that none could load the model; the log says why")


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Exit with status 0 on SIGTERM until the worker pool handles it; a container's first process would ignore it."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def make_app() -> FastAPI:
    """Return the application that a worker's environment describes, watched by a thread of its own."""
    from teo.server.app import create_app
    from teo.server.connections import LimitedProtocol
    from teo.server.supervisor import CANNOT_START
    from teo.server.watchdog import start_watchdog

    choice, settings = read_plan(os.environ[PLAN], os.environ.get("TEO_TOKEN") or None)
    LimitedProtocol.configure(settings)
    try:
        rewriter = choice.load()
    except TeoError:
        sys.exit(CANNOT_START)
    app = create_app(rewriter, settings)
    start_watchdog(app.state.service.batcher, settings.model_timeout)
    return app


def write_plan(choice: ServerModelChoice, settings: ServerSettings) -> str:
    """Return what workers must know, as JSON, without the token."""
    return json.dumps({"choice": asdict(choice), "settings": asdict(replace(settings, token=None))})


def read_plan(text: str, token: str | None) -> tuple[ServerModelChoice, ServerSettings]:
    """Return what `write_plan` wrote, with the token."""
    plan = json.loads(text)
    origins = tuple(plan["settings"]["cors_origins"])  # JSON has lists only
    return ServerModelChoice(**plan["choice"]), ServerSettings(
        **plan["settings"] | {"token": token, "cors_origins": origins}
    )


class WaitingRoom(socket.socket):
    """A socket at which WAITING connections may wait, however few a worker accepts at a time.

    asyncio has one number for both, and sets it whenever a worker starts. A connection that found no room would be
    tried again by the caller's system after a second, and reset if the server stops meanwhile.
    """

    def listen(self, backlog: int = WAITING, /) -> None:
        """Listen with room for all."""
        super().listen(max(backlog, WAITING))

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing.reduction import DupFd

        return _open_again, (DupFd(self.fileno()), self.family, self.type, self.proto)


def _open_again(descriptor: Any, family: int, kind: int, protocol: int) -> WaitingRoom:
    """Return the socket in another process."""
    return WaitingRoom(family, kind, protocol, fileno=descriptor.detach())


def bind(host: str, port: int) -> WaitingRoom:
    """Return a socket at an address, at a free port for port 0; raises a readable error if it cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = WaitingRoom(family, kind, protocol)
        try:
            if os.name == "posix":  # a port whose last connections are closing is free
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except socket.gaierror:
        raise InputError(f"host: expected an address of this machine, found '{host}', which is not known") from None
    except OSError as error:
        raise InputError(_cannot_bind(host, port, error)) from None
    return bound


def require_free_port(host: str, port: int) -> int:
    """Return the port to bind, a free one for port 0; raises a readable error if it cannot be bound."""
    with bind(host, port) as bound:
        return int(bound.getsockname()[1])


def _cannot_bind(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port: {port} on {host} is in use already; stop what uses it, or choose another with --port"
    if error.errno == errno.EACCES:
        return f"port: {port} needs more rights than this user has; choose one from 1024 up with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"host: {host} is not an address of this machine; use 127.0.0.1, or 0.0.0.0 for all of them"
    return f"host: {host} port {port} cannot be bound ({error.strerror})"


def address_of(host: str, port: int) -> str:
    """Return the address to open on this machine."""
    everywhere = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
    name = everywhere.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _announce(address: str) -> None:
    """Say where the server is: in plain words on a terminal, else as a line of the log, which machines read."""
    if sys.stderr.isatty():
        sys.stderr.write(f"teo is serving {address} (API: /docs; Ctrl+C stops it)\n")
        sys.stderr.flush()
    else:
        LOGGER.info("serving", extra={"fields": {"address": address}})


def _run(bound: socket.socket, settings: ServerSettings, workers: int) -> bool:
    """Run the workers until told to stop; False if none of them could load the model."""
    import uvicorn

    from teo.server.connections import KEEP_ALIVE, LONGEST_HEAD, LimitedProtocol
    from teo.server.supervisor import ACCEPTED, WorkerPool

    config = uvicorn.Config(  # sets up the log, too
        "teo.server.run:make_app",
        factory=True,
        workers=workers,
        loop="asyncio",  # uvloop would take all waiting connections at once, and leave the other workers none
        backlog=ACCEPTED,
        http=LimitedProtocol,
        ws="none",
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=round(settings.shutdown_timeout) + 1,
        log_config=log_config(server_level="WARNING"),
        access_log=False,  # the application's own lines say more, and no address of a caller's
        server_header=False,
    )
    bound.set_inheritable(True)
    bound.listen()  # who learns the address may connect at once
    host, port, *_ = bound.getsockname()
    _announce(address_of(host, port))
    pool = WorkerPool(config, [bound], hung_after=HUNG_AFTER, stop_within=settings.shutdown_timeout + 5)
    pool.run()
    return not pool.cannot_start
