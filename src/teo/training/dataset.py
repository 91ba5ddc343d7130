"""The examples of a run: every row once for each role, measured, and encoded with the noise of an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import DataError
from teo.layouts import Pieces, Truncation
from teo.runtime.torch_codec import Codec
from teo.training.config import TrainConfig
from teo.training.examples import Example, ExampleMaker
from teo.training.forked import map_slices
from teo.training.packing import PackedExample, Segment
from teo.training.perturbation import LONGEST_SPAN
from teo.training.rows import RunRows


@dataclass(frozen=True, slots=True)
class DataReport:
    """What preparing the rows found."""

    examples: int
    truncated: int
    """Examples that lost turns to the source limit."""
    dropped_turns: int
    left_out: int
    """Examples whose target is longer than the target limit."""

    def __str__(self) -> str:
        text = f"{self.examples} examples"
        if self.truncated:
            text += (
                f", {self.truncated} of them read in part ({self.dropped_turns} turns dropped whole, over source_limit)"
            )
        return text + (f", {self.left_out} left out (target over target_limit)" if self.left_out else "")


class ExampleDataset:
    """Every row once for each role; an item's examples are encoded with the noise of an epoch."""

    def __init__(
        self,
        rows: Sequence[Row],
        makers: Sequence[ExampleMaker],
        codec: Codec,
        *,
        source_limit: int,
        target_limit: int,
        positions: int = 0,
        repeats: Sequence[int] | None = None,
        workers: int = 0,
    ) -> None:
        self.codec = codec
        self.rows = list(rows)
        self.scripts = map_slices(self._derive, len(self.rows), workers)
        self.makers = list(makers)
        self.source_limit = source_limit
        self.sizes: list[tuple[int, int]] = []
        """Of each item: tokens of its source and of its target."""
        self.items: list[tuple[int, int, int]] = []
        """Of each item: the number of its maker, of its row, and of the copy of a repeated row."""
        repeats = repeats or [1] * len(self.rows)
        measured = map_slices(self._measure, len(self.rows), workers)
        truncated = dropped = left_out = 0
        for k in range(len(self.makers)):
            for n, row in enumerate(self.rows):
                source, target, truncation = measured[n][k]
                if positions and source + 2 * LONGEST_SPAN > positions:
                    raise DataError(
                        f"row {row.id}: its utterance and operations take {source} tokens, and the model has "
                        f"{positions} positions; leave the row out"
                    )
                if target > target_limit:
                    left_out += repeats[n]
                    continue
                truncated += repeats[n] * bool(truncation)
                dropped += repeats[n] * truncation.turns
                self.items += [(k, n, copy) for copy in range(repeats[n])]
                self.sizes += [(source, target)] * repeats[n]
        self.report = DataReport(len(self.items), truncated, dropped, left_out)
        if not self.items:
            raise DataError(f"no rows to train on: {self.report}; raise model.target_limit or give other data")

    @classmethod
    def of_config(
        cls, config: TrainConfig, rows: RunRows, makers: Sequence[ExampleMaker], codec: Codec, positions: int = 0
    ) -> ExampleDataset:
        """Return the examples of a run."""
        return cls(
            rows.train,
            makers,
            codec,
            source_limit=config.model.source_limit,
            target_limit=config.model.target_limit,
            positions=positions,
            repeats=rows.repeats,
            workers=config.optimisation.workers,
        )

    def _derive(self, part: range) -> list[EditScript]:
        rows = (self.rows[n] for n in part)
        return [derive_edits(row.dialogue.utterance, row.rewrite) for row in rows]

    def _measure(self, part: range) -> list[list[tuple[int, int, Truncation]]]:
        """Return of each row and maker the tokens of source and target and what was cut, with the gold operations."""
        # In one process this also fills the codec's cache for the workers.
        return [self._measure_row(n) for n in part]

    def _measure_row(self, number: int) -> list[tuple[int, int, Truncation]]:
        sources: dict[tuple[Dialogue, Pieces | None], tuple[int, Truncation]] = {}
        measured = []
        for maker in self.makers:
            example = maker.example(self.rows[number], self.scripts[number])
            key = (example.dialogue, example.operations)
            if key not in sources:  # most roles read the same
                fitted, truncation = self._fit(example)
                sources[key] = (len(self.codec.encode(fitted.source)), truncation)
            source, truncation = sources[key]
            measured.append((source, len(self.codec.encode_target(example.target)), truncation))
        return measured

    def __len__(self) -> int:
        return len(self.items)

    def examples(self, item: int, epoch: int) -> list[PackedExample]:
        """Return what an item teaches in an epoch."""
        maker, row, copy = self.items[item]
        examples = self.makers[maker].training_examples(self.rows[row], self.scripts[row], epoch, copy)
        return [PackedExample(self.encode_source(example), [self.encode_text(example)]) for example in examples]

    def encode_source(self, example: Example) -> list[int]:
        """Return the ids of what an example reads, in part if it does not fit."""
        fitted, _ = self._fit(example)
        return self.codec.encode(fitted.source)

    def encode_text(self, example: Example) -> Segment:
        """Return the ids of the decoder's text: the prompt, which carries no loss, then the target."""
        start = self.codec.decoder_start(example.prompt)
        return Segment([*start, *self.codec.encode_target(example.target)], len(start))

    def _fit(self, example: Example) -> tuple[Example, Truncation]:
        return example.fit(self.codec.encode, self.codec.measure, self.source_limit)
