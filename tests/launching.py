"""A command in two processes on the CPU, started by torchrun."""

from __future__ import annotations

import os
import subprocess
import sys


def launch_two(package: str, *arguments: str) -> str:
    """Return what two processes of a package's command print."""
    command = [sys.executable, "-c", f"from {package}.cli.app import main; main()", *arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        out, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher ends its processes with it
        out, err = process.communicate()
    assert process.returncode == 0, err[-2000:]
    return out
