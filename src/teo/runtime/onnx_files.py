"""What lies beside an exported model's graphs: its sizes, its token ids, and where its embedding is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from teo.errors import ModelError
from teo.runtime.onnx_weights import Array, TensorSlice

FORMAT_VERSION = 2
DESCRIPTION = "graphs.json"
"""The file beside exported graphs that says what they are."""
POSITIONS = 2048
"""How many positions the graphs have tables for, at most."""

T = TypeVar("T")


def load_stored(kind: type[T], stored: Any) -> T:
    """Return the dataclass that JSON holds; raises ValueError with the first thing that is wrong."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(stored)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error


def to_stored(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON can hold it."""
    from pydantic import TypeAdapter

    stored: dict[str, Any] = TypeAdapter(type(value)).dump_python(value, mode="json")
    return stored


@dataclass(frozen=True, slots=True)
class Description:
    """What `graphs.json` holds."""

    form: str
    d_model: int
    heads: int
    decoder_layers: int
    turn_types: int
    pad_id: int
    eos_id: int
    sep_id: int
    start_id: int
    embedding: TensorSlice
    embedding_scale: TensorSlice | None
    """The scale of each row; None if the embedding is in float32."""
    head_size: int = 0
    """Numbers in one head; 0, as in a file that does not name it: the heads share `d_model`."""
    positions: int = POSITIONS
    """How many tokens a source or a text may have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head_size", self.head_size or self.d_model // max(self.heads, 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON can hold it."""
        return {"format": FORMAT_VERSION, **to_stored(self)}

    @classmethod
    def load(cls, folder: Path) -> Description:
        """Return what a folder's `graphs.json` says."""
        file = folder / DESCRIPTION
        if not file.is_file():
            raise ModelError(
                f"{folder}: expected an exported model, found no {DESCRIPTION}; export it with `teo export`, "
                "or run the trained one with runtime='torch'"
            )
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            version = stored["format"]
            if version != FORMAT_VERSION:
                raise ModelError(f"{file}: expected format {FORMAT_VERSION}, found {version}; export the model again")
            return load_stored(cls, stored)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{file}: not the description of an exported model ({error}); export it again") from error


class Embedding:
    """The token embedding, mapped from the weight files; the output projection reads the same bytes."""

    def __init__(self, folder: Path, description: Description) -> None:
        self._table: Array = description.embedding.map(folder)
        scale = description.embedding_scale
        self._scale: NDArray[np.float32] | None = None if scale is None else np.array(scale.map(folder))

    def __len__(self) -> int:
        return int(self._table.shape[0])

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of the ids, in a new last dimension."""
        found = self._table[ids].astype(np.float32)
        return found if self._scale is None else found * self._scale[ids][..., None]
