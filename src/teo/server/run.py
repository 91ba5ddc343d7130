"""The process: one server, or a front with several workers behind it."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teo.errors import InputError, MissingExtraError
from teo.server.settings import DEFAULT_HOST, DEFAULT_PORT, ServerSettings, require_safe_bind

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from teo.loading import Dtype, Runtime
    from teo.rewriter import Rewriter

PLAN = "TEO_SERVER_PLAN"
"""The environment variable in which workers find what to serve; the token is not in it, but in TEO_TOKEN."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
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
    for library in ("fastapi", "prometheus_client", "uvicorn"):  # imported later: workers share counts by then
        if find_spec(library) is None:
            raise MissingExtraError(feature, library, "serve")


def serve(
    choice: ModelChoice,
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
    port = require_free_port(host, port)
    if workers == 1:
        app = _build(choice, settings)
        _greet(f"teo is serving {address_of(host, port)} (API: /docs; Ctrl+C stops it)")
        _run(app, settings, host=host, port=port)
        return
    if not hasattr(socket, "AF_UNIX"):
        raise InputError("workers: several need Unix sockets, which this system lacks; start several servers instead")
    choice.load()  # a model that cannot be loaded is an error here, not one in every worker, for ever
    with tempfile.TemporaryDirectory(prefix="teo-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        os.environ[PLAN] = write_plan(choice, settings)
        os.environ["TEO_TOKEN"] = settings.token or ""
        _greet(f"teo is starting {workers} workers at {address_of(host, port)} (API: /docs; Ctrl+C stops them)")
        _run(_build_front(workers, Path(folder), settings), settings, host=host, port=port)


def make_app() -> FastAPI:
    """Return the application that a worker's environment describes."""
    choice, settings = read_plan(os.environ[PLAN], os.environ.get("TEO_TOKEN") or None)
    return _build(choice, settings)


def write_plan(choice: ModelChoice, settings: ServerSettings) -> str:
    """Return what workers must know, as JSON, without the token."""
    return json.dumps({"choice": asdict(choice), "settings": asdict(replace(settings, token=None))})


def read_plan(text: str, token: str | None) -> tuple[ModelChoice, ServerSettings]:
    """Return what `write_plan` wrote, with the token."""
    plan = json.loads(text)
    origins = tuple(plan["settings"]["cors_origins"])  # JSON has lists only
    return ModelChoice(**plan["choice"]), ServerSettings(**plan["settings"] | {"token": token, "cors_origins": origins})


def require_free_port(host: str, port: int) -> int:
    """Return the port to bind, a free one for port 0; raise an error for people where it cannot be bound.

    The server itself would say so in its log only, and after the model was loaded.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # as the server does: a port whose last connections are closing is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except socket.gaierror:
        raise InputError(f"host: expected an address of this machine, found '{host}', which is not known") from None
    except OSError as error:
        raise InputError(_cannot_bind(host, port, error)) from None


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


def _greet(line: str) -> None:
    """Say it to a person: on a terminal only, since a log is read by machines."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _build(choice: ModelChoice, settings: ServerSettings) -> FastAPI:
    from teo.server.app import create_app

    return create_app(choice.load(), settings)


def _build_front(workers: int, folder: Path, settings: ServerSettings) -> ASGIApp:
    from teo.server.crew import Crew
    from teo.server.front import create_front

    return create_front(Crew(workers, folder, settings.shutdown_timeout), settings)


def _run(app: ASGIApp, settings: ServerSettings, **options: Any) -> None:
    import uvicorn

    from teo.server.logs import log_config

    uvicorn.run(
        app,
        log_config=log_config(server_level="WARNING" if sys.stderr.isatty() else "INFO"),
        access_log=False,  # the application's own lines say more, and no address of a caller's
        server_header=False,
        timeout_graceful_shutdown=round(settings.shutdown_timeout) + 1,
        **options,
    )
