"""`python benchmarks/gguf_server.py FILE.gguf PORT`: a GGUF file behind an OpenAI-compatible endpoint, by llama.cpp.

`pip install xllamacpp` brings llama.cpp built for the processor. One thread, one request at a time, the model's own
chat template; the part of a prompt that the request before it had too is not computed again.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from pathlib import Path

CONTEXT = 2048
"""Tokens of a prompt and its answer."""


def main() -> None:
    """Serve the file until the process is stopped."""
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_file() or not sys.argv[2].isdecimal():
        sys.exit(f"expected a GGUF file and a port, found {' '.join(sys.argv[1:]) or 'nothing'}")
    library = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = params.n_parallel = 1
    params.n_ctx, params.n_gpu_layers = CONTEXT, 0
    server = library.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
