"""Opening graphs with ONNX Runtime: threads set once, weights mapped, 8-bit products right on every processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import ModelError

PROBE, PROBE_SIZE = "probe.onnx", 64
_SLOWER = ["SkipLayerNormFusion"]
"""Fusions that ONNX Runtime makes and that take longer than what they replace (five times, in 1.31)."""


def open_graphs(folder: Path, names: tuple[str, ...], *, threads: int, int8: bool) -> list[Any]:
    """Return the graphs of an exported model, ready to run; `int8` if their products are."""
    careful = int8 and not _products_are_right(folder)
    return [_open(folder / name, threads, careful=careful) for name in names]


def _products_are_right(folder: Path) -> bool:
    """Tell whether this processor adds 8-bit products without cutting them off.

    x86 processors before VNNI have one fast instruction for them, which saturates; ONNX Runtime uses it unless told
    not to, and telling it costs half the speed on those that need no telling.
    """
    probe = _open(folder / PROBE, 1, careful=False)
    found = probe.run(None, {"x": np.full((2, PROBE_SIZE), 255, dtype=np.uint8)})[0]
    return bool((found == PROBE_SIZE * 255 * 127).all())


def _open(file: Path, threads: int, *, careful: bool) -> Any:
    import onnxruntime

    if not file.is_file():
        raise ModelError(f"{file}: expected a graph of the exported model, found none; export the model again")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # every batch has its own sizes
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if careful else levels.ORT_ENABLE_BASIC
    # The other graph's threads need the cores as soon as this one's run ends.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.x64quantprecision", "1" if careful else "0")
    try:
        return onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
        )
    except Exception as error:  # the library's errors have no common class
        reason = str(error).strip().splitlines()[0][:300]
        raise ModelError(f"{file}: cannot be opened ({reason}); export the model again") from error
