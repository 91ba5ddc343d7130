"""Weight files of an exported model: plain tensors in a few binary shards that both graphs and the runtime map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teo.errors import ModelError

Array = NDArray[Any]

SHARD_BYTES = 16 << 20
"""A shard takes tensors up to this size; one larger tensor has a shard of its own."""
_ALIGNMENT = 4096  # tensors start on a page, so that they can be mapped


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """Where a tensor's bytes lie."""

    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]

    def map(self, folder: Path) -> Array:
        """Return the tensor, mapped from its file: pages are read when they are used, and never written."""
        file = folder / self.file
        try:
            return np.memmap(file, dtype=self.dtype, mode="r", offset=self.offset, shape=self.shape)
        except (OSError, ValueError) as error:
            raise ModelError(f"{file}: the weights cannot be read ({error}); export the model again") from error


@dataclass(slots=True)
class WeightWriter:
    """Appends tensors to shards in a folder; a tensor of a name already written is not written again."""

    folder: Path
    shard_bytes: int = SHARD_BYTES
    slices: dict[str, TensorSlice] = field(default_factory=dict)
    stored: Mapping[str, Any] = field(default_factory=dict)
    """Tensors of graphs that these weight files were written for: new graphs take them as they are."""
    _shard: int = 0
    _filled: int = 0

    def write(self, name: str, tensor: Array) -> TensorSlice:
        """Return where the tensor lies now."""
        if name in self.slices:
            return self.slices[name]
        data = np.ascontiguousarray(tensor).tobytes()
        if self._filled and self._filled + len(data) > self.shard_bytes:
            self._shard, self._filled = self._shard + 1, 0
        file = self.folder / f"weights-{self._shard + 1}.bin"
        with file.open("ab") as stream:
            stream.write(b"\0" * (-self._filled % _ALIGNMENT))
            offset = stream.tell()
            stream.write(data)
            self._filled = stream.tell()
        self.slices[name] = TensorSlice(file.name, offset, tensor.dtype.str, tensor.shape)
        return self.slices[name]
