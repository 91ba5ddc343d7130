"""The process: one server, or several workers that share a port."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from teo.errors import MissingExtraError
from teo.server.settings import ServerSettings, require_safe_bind

if TYPE_CHECKING:
    from fastapi import FastAPI

    from teo.loading import Runtime
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

    def load(self) -> Rewriter:
        """Return the model's rewriter."""
        from teo.rewriter import Rewriter

        return Rewriter.from_pretrained(self.model, variant=self.variant, threads=self.threads, runtime=self.runtime)


def require_server_libraries() -> None:
    """Raise an error that says what to install, unless the server's libraries are here."""
    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ModuleNotFoundError as error:
        raise MissingExtraError("teo serve", str(error.name), "serve") from error
    del fastapi, prometheus_client, uvicorn


def serve(
    choice: ModelChoice,
    settings: ServerSettings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    allow_anonymous: bool = False,
) -> None:
    """Serve until told to stop; what is in flight then is finished first."""
    require_server_libraries()
    require_safe_bind(host, settings.token, allow_anonymous=allow_anonymous)
    if workers == 1:
        _run(_build(choice, settings), settings, host=host, port=port)
        return
    choice.load()  # a model that cannot be loaded is an error here, not one in every worker, for ever
    with tempfile.TemporaryDirectory(prefix="teo-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        os.environ[PLAN] = write_plan(choice, settings)
        os.environ["TEO_TOKEN"] = settings.token or ""
        _run("teo.server.run:make_app", settings, host=host, port=port, workers=workers, factory=True)


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
    return ModelChoice(**plan["choice"]), ServerSettings(**plan["settings"] | {"token": token})


def _build(choice: ModelChoice, settings: ServerSettings) -> FastAPI:
    from teo.server.app import create_app

    return create_app(choice.load(), settings)


def _run(app: FastAPI | str, settings: ServerSettings, **options: Any) -> None:
    import uvicorn

    from teo.server.logs import log_config

    uvicorn.run(
        app,
        log_config=log_config(),
        access_log=False,  # the application's own lines say more, and no address of a caller's
        server_header=False,
        timeout_graceful_shutdown=round(settings.shutdown_timeout) + 1,
        **options,
    )
