"""A worker of a server with several: the whole application behind a socket of its own, for the front alone.

`python -m teo.server.worker SOCKET`. It drains and ends on SIGTERM, and when its standard input ends: that is how the
front stops it, and how it learns that the front is gone.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import uvicorn

from teo.server.logs import log_config
from teo.server.run import make_app


def run_worker(path: Path, seconds: float) -> None:
    """Serve at a socket until told to stop; what is in flight then gets so many seconds."""
    server = uvicorn.Server(
        uvicorn.Config(
            make_app,
            factory=True,
            uds=str(path),
            log_config=log_config(server_level="WARNING"),
            access_log=False,
            server_header=False,
            date_header=False,  # the front adds its own
            timeout_graceful_shutdown=round(seconds) + 1,
        )
    )
    threading.Thread(target=_stop_with_input, args=(server,), daemon=True).start()
    server.run()


def _stop_with_input(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True


if __name__ == "__main__":
    run_worker(Path(sys.argv[1]), float(sys.argv[2]))
