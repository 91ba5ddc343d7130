"""The watchdog of a worker: a thread that ends the process if the model hangs or the parent is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

from teo.server.batching import Batcher
from teo.server.logs import LOGGER

STUCK = 70
"""Exit status of a worker whose model did not return."""
_POLL = 0.5


def start_watchdog(batcher: Batcher, model_timeout: float) -> None:
    """Start the thread; a call of the model may take `model_timeout` seconds."""
    # Not os.getppid() alone: the parent may have ended while this worker was starting.
    started_by = multiprocessing.parent_process()
    parent = os.getppid() if started_by is None or started_by.pid is None else started_by.pid
    threading.Thread(target=_watch, args=(batcher, model_timeout, parent), daemon=True, name="teo-watch").start()


def _watch(batcher: Batcher, model_timeout: float, parent: int) -> None:
    while True:
        time.sleep(_POLL)
        if batcher.model_seconds > model_timeout:
            LOGGER.error("model-stuck", extra={"fields": {"pid": os.getpid(), "seconds": model_timeout}})
            os._exit(STUCK)
        if os.getppid() != parent:  # nobody would replace this worker, or stop it: finish and end
            os.kill(os.getpid(), signal.SIGTERM)
            return
