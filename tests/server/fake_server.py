"""A process that serves the fake rewriter: `python fake_server.py PORT WORKERS SECONDS_PER_BATCH MAX_BATCH`."""

from __future__ import annotations

import os
import sys

import uvicorn
from fake_rewriter import FakeRewriter
from fastapi import FastAPI

from teo.server.app import create_app
from teo.server.logs import log_config
from teo.server.settings import ServerSettings


def make_app() -> FastAPI:
    settings = ServerSettings(max_batch=int(os.environ["FAKE_MAX_BATCH"]))
    return create_app(FakeRewriter(float(os.environ["FAKE_SECONDS"])), settings)


if __name__ == "__main__":
    port, workers, os.environ["FAKE_SECONDS"], os.environ["FAKE_MAX_BATCH"] = sys.argv[1:5]
    uvicorn.run(
        "fake_server:make_app",
        factory=True,
        port=int(port),
        workers=int(workers) if int(workers) > 1 else None,
        log_config=log_config(),
        access_log=False,
    )
