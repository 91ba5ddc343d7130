"""A server of the fake rewriter: `python fake_server.py PORT WORKERS SECONDS_PER_BATCH MAX_BATCH [SETTINGS]`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from teo.server.run import ServerModelChoice, serve
from teo.server.settings import ServerSettings

HERE = Path(__file__).parent

if __name__ == "__main__":
    port, workers, os.environ["FAKE_SECONDS"], max_batch, *rest = sys.argv[1:]
    paths = [str(HERE / "fake_site"), str(HERE), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of the workers
    settings = ServerSettings(**{"max_batch": int(max_batch)} | (json.loads(rest[0]) if rest else {}))
    serve(ServerModelChoice(), settings, port=int(port), workers=int(workers))
