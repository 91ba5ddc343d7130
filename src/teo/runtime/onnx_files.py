"""What lies beside an exported model's graphs: its sizes, its token ids, and where its embedding is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from teo.errors import ModelError
from teo.runtime.onnx_weights import Array, Place

FORMAT_VERSION = 2
DESCRIPTION = "graphs.json"
"""The file beside exported graphs that says what they are."""
POSITIONS = 2048
"""How many positions the graphs have tables for, at most."""

_NUMBERS = ("d_model", "heads", "decoder_layers", "turn_types", "pad_id", "eos_id", "sep_id", "start_id")


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
    embedding: Place
    embedding_scale: Place | None
    """The scale of each row; None where the embedding is in float32."""
    kv_heads: int
    """Heads of keys and values; left out of the file where there are as many as `heads`."""
    head_size: int
    """Numbers in one head; left out of the file where the heads share `d_model`."""
    positions: int = POSITIONS
    """How many tokens a source or a text may have; left out of the file where it is the most there can be."""

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON can hold it."""
        plain = {"kv_heads": self.heads, "head_size": self.d_model // self.heads, "positions": POSITIONS}
        names = [
            name
            for name in self.__slots__
            if not name.startswith("embedding") and getattr(self, name) != plain.get(name)
        ]
        places = {"embedding": self.embedding.to_dict()}
        if self.embedding_scale is not None:
            places["embedding_scale"] = self.embedding_scale.to_dict()
        return {"format": FORMAT_VERSION, **{name: getattr(self, name) for name in names}, **places}

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
            version, scale = stored["format"], stored.get("embedding_scale")
            if version != FORMAT_VERSION:
                raise ModelError(f"{file}: expected format {FORMAT_VERSION}, found {version}; export the model again")
            heads, width = int(stored["heads"]), int(stored["d_model"])
            return cls(
                form=str(stored["form"]),
                embedding=Place.from_dict(stored["embedding"]),
                embedding_scale=None if scale is None else Place.from_dict(scale),
                kv_heads=int(stored.get("kv_heads", heads)),
                head_size=int(stored.get("head_size", width // heads)),
                positions=int(stored.get("positions", POSITIONS)),
                **{name: int(stored[name]) for name in _NUMBERS},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
