"""Rows encoded beforehand: all that training of roles with one source reads, as a few arrays in one file.

Encoding half a million rows takes minutes of several cores, in which a GPU has nothing to do. `encode` does it on any
machine, and `EncodedBatches` trains from its files alone. The noise is drawn while encoding, `DRAWS` times for
each row; every copy of a row and every epoch takes the next draw.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from teo.errors import ConfigError, DataError
from teo.files import write_whole
from teo.models import TeoForConditionalGeneration
from teo.runtime.torch_codec import Codec
from teo.training.backbones import LayoutChoice, load_base
from teo.training.batches import Batches, PackedRow, pack_rows
from teo.training.config import PACKED_ROLES, RANDOM, OptimisationSettings, TrainConfig
from teo.training.dataset import ExampleDataset
from teo.training.examples import ExampleMaker
from teo.training.finetune import Run
from teo.training.forked import map_slices
from teo.training.packing import PackedExample, Segment
from teo.training.record import TrainResult
from teo.training.rows import RunRows, read_rows
from teo.training.saving import disk_errors

DRAWS = 3
"""Draws of noise for each row."""
_ARRAYS = ("ids", "lengths", "prompt_lengths", "repeats")

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Sources and decoder texts of all rows, one after the other."""

    ids: Array
    """The tokens of all rows: source, then the texts of the roles, then those with noise."""
    lengths: Array
    """Of each row: tokens of its source and of each text; 0 if there is no such text."""
    prompt_lengths: Array
    """Of each row: tokens at the start of each text that are its prompt and carry no loss."""
    repeats: Array
    """Of each row: how often it is seen in an epoch."""
    made_for: str
    """Roles and tokenizer, in short."""

    def save(self, path: Path) -> None:
        """Write the arrays as one file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}

        def write(beside: Path) -> None:
            with beside.open("wb") as out:
                np.savez(out, made_for=np.array(self.made_for), **arrays)

        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, write)

    @classmethod
    def load(cls, paths: Sequence[str | Path]) -> EncodedRows:
        """Return the rows of all files, in order."""
        parts = [_read(Path(path)) for path in paths]
        made_for = {str(part["made_for"]) for part in parts}
        if len(made_for) > 1:
            raise DataError("encoded: expected files of the same roles and tokenizer, found different ones")
        joined = {name: np.concatenate([part[name] for part in parts]) for name in _ARRAYS}
        return cls(**joined, made_for=made_for.pop())

    def require(self, made_for: str) -> None:
        """Refuse rows that were encoded for other roles or with another tokenizer."""
        if self.made_for != made_for:
            raise ConfigError(f"encoded: expected rows for {made_for}, found {self.made_for}; encode them again")


def _read(path: Path) -> dict[str, Array]:
    try:
        with np.load(path) as stored:
            return {name: stored[name] for name in (*_ARRAYS, "made_for")}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise DataError(
            f"{path}: expected rows that `teo-lab encode` wrote, found none ({error}); encode them"
        ) from error


def made_for(roles: Sequence[str], codec: Codec) -> str:
    """Return in short what encoded rows depend on: roles, layout, and the tokenizer's vocabulary."""
    vocabulary = sorted(codec.tokenizer.get_vocab().items())
    digest = hashlib.sha256(repr(vocabulary).encode()).hexdigest()[:12]
    speakers = " with speakers" if codec.layout.speakers else ""
    return f"{'+'.join(roles)}, layout {codec.layout.version}{speakers}, tokens {digest}"


def encode(config: TrainConfig, work: Path) -> EncodedRows:
    """Return the rows of a configuration, encoded for its roles."""
    require_encodable(config)
    rows = read_rows(config.data, work, config.unchanged, seed=config.seed)
    _, codec = load_base(config.model.base, LayoutChoice(config.model.layout, config.model.speakers))
    makers = [ExampleMaker.of_config(config, role, codec.layout) for role in config.roles]
    return freeze(ExampleDataset.of_config(config, rows, makers, codec), config.optimisation.workers)


def freeze(dataset: ExampleDataset, workers: int = 0) -> EncodedRows:
    """Return what packed batches of a dataset teach, with draws of noise instead of the makers that draw it."""
    items = pack_rows(dataset, workers)
    copies = Counter(packed.row for packed in items)
    firsts = [packed for packed in items if packed.copy == 0]

    def flatten(part: range) -> list[tuple[list[int], list[int], list[int]]]:
        return [_flatten(firsts[k].source, _texts(dataset, firsts[k])) for k in part]

    flat = map_slices(flatten, len(firsts), workers)
    kind = np.uint16 if len(dataset.codec) <= np.iinfo(np.uint16).max else np.uint32
    return EncodedRows(
        np.concatenate([np.array(ids, dtype=kind) for ids, _, _ in flat]),
        np.array([lengths for _, lengths, _ in flat], dtype=np.uint16),
        np.array([prompts for _, _, prompts in flat], dtype=np.uint16),
        np.array([copies[packed.row] for packed in firsts], dtype=np.uint16),
        made_for([maker.role for maker in dataset.makers], dataset.codec),
    )


def _texts(dataset: ExampleDataset, packed: PackedRow) -> list[Segment | None]:
    """Return the texts of all roles, then the draws; None if a row has no such text."""
    texts: list[Segment | None] = [None] * (len(dataset.makers) + DRAWS)
    row, script = dataset.rows[packed.row], dataset.scripts[packed.row]
    for number, text in zip(packed.makers, packed.segments, strict=True):
        texts[number] = text
        for draw in range(DRAWS):
            noisy = dataset.makers[number].noisy_example(row, script, draw)
            if noisy is not None:
                texts[draw - DRAWS] = dataset.encode_text(noisy)
    return texts


def _flatten(source: list[int], texts: Sequence[Segment | None]) -> tuple[list[int], list[int], list[int]]:
    """Return all tokens of a row, the lengths of its parts, and the length of each text's prompt."""
    parts = [source, *(text.ids if text else [] for text in texts)]
    prompts = [text.free if text else 0 for text in texts]
    return [number for part in parts for number in part], [len(part) for part in parts], prompts


class EncodedBatches(Batches):
    """Batches of rows that were encoded beforehand."""

    def __init__(self, rows: EncodedRows, settings: OptimisationSettings, seed: int) -> None:
        self.encoded = rows
        lengths = rows.lengths.astype(np.int64)
        self.roles = lengths.shape[1] - 1 - DRAWS
        self.ends = np.cumsum(lengths).reshape(lengths.shape)
        self.row = np.repeat(np.arange(len(lengths)), rows.repeats)
        firsts = np.cumsum(rows.repeats.astype(np.int64)) - rows.repeats
        self.copy = np.arange(len(self.row)) - np.repeat(firsts, rows.repeats)
        targets = lengths[:, 1 : self.roles + 1].sum(1)
        sizes = list(zip(lengths[self.row, 0].tolist(), targets[self.row].tolist(), strict=True))
        super().__init__(sizes, settings, seed)

    def examples(self, item: int, epoch: int) -> list[PackedExample]:
        """Return a row's source, the texts of all its roles, and one with the noise of the copy and the epoch."""
        row, draw = int(self.row[item]), (int(self.copy[item]) + epoch + self.seed) % DRAWS
        texts = [self._text(row, k) for k in (*range(self.roles), self.roles + draw)]
        return [PackedExample(self._part(row, 0), [text for text in texts if text.ids])]

    def _text(self, row: int, number: int) -> Segment:
        return Segment(self._part(row, number + 1), int(self.encoded.prompt_lengths[row, number]))

    def _part(self, row: int, number: int) -> list[int]:
        """Return the ids of a row's source (0) or of one of its texts."""
        end = int(self.ends[row, number])
        return list(self.encoded.ids[end - int(self.encoded.lengths[row, number]) : end].tolist())


def require_encodable(config: TrainConfig) -> None:
    """Refuse a configuration whose roles cannot learn from encoded rows."""
    if not config.one_source or config.model.base == RANDOM:
        raise ConfigError(
            f"encoded: expected shared roles of {', '.join(PACKED_ROLES)}, and a model to start from, found "
            f"shared {config.shared}, {', '.join(config.roles)}, base {config.model.base}"
        )


def train_encoded(config: TrainConfig, files: Sequence[Path], *, resume: bool = False) -> TrainResult:
    """Train as `teo train` does, on rows that were encoded beforehand instead of the configuration's data."""
    require_encodable(config)
    with disk_errors(Path(config.output)):
        return EncodedRun(config, files, resume=resume).finish()


class EncodedRun(Run):
    """A run whose rows come from encoded files."""

    def __init__(self, config: TrainConfig, files: Sequence[Path], *, resume: bool = False) -> None:
        self.files = list(files)
        super().__init__(config, resume=resume)

    def read(self, folder: Path, *, writes: bool) -> RunRows:
        """Return no rows, but the files to be hashed."""
        return RunRows(sources=self.files)

    def make_batches(self, name: str, roles: Sequence[str], model: Any, codec: Codec) -> Batches:
        """Return the batches of the encoded rows."""
        if not isinstance(model, TeoForConditionalGeneration):
            raise ConfigError(f"encoded: expected our own backbone (model type teo), found {model.config.model_type}")
        rows = EncodedRows.load(self.files)
        rows.require(made_for(roles, codec))
        return EncodedBatches(rows, self.config.optimisation, self.config.seed)
