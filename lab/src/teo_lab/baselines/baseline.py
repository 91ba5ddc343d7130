"""Baseline: the backbone with a head of its own, from rows to a loss and from dialogues to predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.errors import ModelError
from teo.layouts import Marker
from teo.pipelines import Prediction
from teo.placement import Span, make_script
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import TorchGenerator
from teo.stages import fit_dialogue
from teo.units import split_units
from teo_lab.baselines.labels import Cell, Relation

SOURCE_LIMIT = 256
"""How many tokens of a dialogue are encoded; older turns make way."""
_LONGEST_FILL = 64

Tokens = tuple[int, int]
"""The first and the last token of a unit, by their positions in the source."""


@dataclass(frozen=True, slots=True)
class EncodedDialogue:
    """The source of a dialogue, and which tokens its units are."""

    ids: tuple[int, ...]
    history: tuple[Tokens, ...]
    utterance: tuple[Tokens, ...]
    """The units of the utterance, then the separator that stands for its end."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row as a baseline learns it; each baseline has labels of its own kind."""

    dialogue: EncodedDialogue
    cells: Mapping[Cell, Relation] = field(default_factory=dict)
    tags: tuple[int, ...] = ()
    blanked: tuple[int, ...] = ()
    """The source with blanks; empty if there is nothing to fill."""
    fills: tuple[int, ...] = ()
    """What is to be written for the blanks, the end token included."""


@dataclass(frozen=True, slots=True)
class UnitStates:
    """The encoder's states, one for each unit, and which of them are no padding."""

    history: Tensor
    """(batch, units, width)"""
    history_mask: Tensor
    utterance: Tensor
    utterance_mask: Tensor


class Baseline(nn.Module, ABC):
    """A backbone, and what a baseline puts on its encoder."""

    name: ClassVar[str]
    after: ClassVar[str]
    """The published systems that it is modelled on."""

    def __init__(self, backbone: Any, codec: Codec, head: nn.Module) -> None:
        super().__init__()
        if getattr(backbone.config, "model_type", "") != "teo":
            found = getattr(backbone.config, "model_type", type(backbone).__name__)
            raise ModelError(f"base: expected the project's own backbone (model_type teo), found {found}")
        self.backbone, self.codec, self.head = backbone, codec, head

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @abstractmethod
    def prepare(self, row: Row) -> Example | None:
        """Return what is learned of a row; None if this baseline cannot express the rewrite."""

    @abstractmethod
    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the loss of a batch."""

    @abstractmethod
    def propose(self, dialogues: Sequence[Dialogue]) -> list[tuple[list[Span], float, bool]]:
        """Return for each dialogue its edits, their log-probability, and whether they were well formed."""

    def generator(self, batch_size: int) -> TorchGenerator:
        """Return the backbone as what generates text and measures turns."""
        return TorchGenerator(
            self.backbone,
            self.codec,
            device=str(self.device),
            source_limit=SOURCE_LIMIT,
            batch_size=batch_size,
            max_new_tokens=_LONGEST_FILL,
        )

    def predict(self, dialogues: Sequence[Dialogue], batch_size: int = 128) -> list[Prediction]:
        """Return the predictions of dialogues of any length, in order."""
        self.eval()
        generator = self.generator(batch_size)
        fitted = [fit_dialogue(generator, dialogue) for dialogue in dialogues]
        order = sorted(range(len(fitted)), key=lambda k: len(encode_source(self.codec, fitted[k][0])))
        predictions: dict[int, Prediction] = {}
        with torch.no_grad():
            for start in range(0, len(order), batch_size):
                numbers = order[start : start + batch_size]
                proposed = self.propose([fitted[k][0] for k in numbers])
                for k, (spans, score, well_formed) in zip(numbers, proposed, strict=True):
                    made = make_prediction(dialogues[k].utterance, spans, score)
                    predictions[k] = replace(made, truncation=fitted[k][1], well_formed=well_formed)
        return [predictions[k] for k in range(len(fitted))]

    def encode(self, dialogues: Sequence[EncodedDialogue]) -> UnitStates:
        """Return the states of the dialogues' units."""
        states, _ = self.encode_ids([dialogue.ids for dialogue in dialogues])
        return unit_states(states, dialogues)

    def encode_ids(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the encoder's states of sources, and the sources as one matrix of ids."""
        ids = pad(sources, self.codec.pad_id, self.device)
        return self.backbone.encoder(ids, ids != self.codec.pad_id).last_hidden_state, ids


def unit_states(states: Tensor, dialogues: Sequence[EncodedDialogue]) -> UnitStates:
    """Return the states of units: the mean of a unit's first and last token."""
    history, history_mask = _gather(states, [dialogue.history for dialogue in dialogues])
    utterance, utterance_mask = _gather(states, [dialogue.utterance for dialogue in dialogues])
    return UnitStates(history, history_mask, utterance, utterance_mask)


def make_prediction(utterance: str, spans: Sequence[Span], score: float) -> Prediction:
    """Return the utterance with the edits made."""
    script = make_script(spans, utterance)
    operations = format_operations(script.operations)
    return Prediction(script.apply(utterance), script, operations, {"operations": score})


def encode_dialogue(codec: Codec, dialogue: Dialogue) -> EncodedDialogue:
    """Return the source `[CLS] turn [SEP] .. [SEP] utterance [SEP]` and the tokens of its units."""
    (separator,) = codec.encode((Marker.SEP,))
    ids = codec.encode((Marker.CLS,))
    turns: list[list[Tokens]] = []
    for turn in (*dialogue.history, dialogue.utterance):
        encoded = codec.tokenizer(
            turn, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
        )
        turns.append(_find_tokens(turn, encoded["offset_mapping"], len(ids)))
        ids += [*encoded["input_ids"], separator]
    end = len(ids) - 1
    history = tuple(tokens for turn in turns[:-1] for tokens in turn)
    return EncodedDialogue(tuple(ids), history, (*turns[-1], (end, end)))


def encode_source(codec: Codec, dialogue: Dialogue) -> list[int]:
    """Return the source's tokens alone."""
    return [number for turn in (*dialogue.history, dialogue.utterance) for number in codec.encode_text(turn)]


def pad(rows: Sequence[Sequence[int]], value: int, device: torch.device) -> Tensor:
    """Return rows of numbers as one matrix, filled up on the right."""
    width = max(1, max(map(len, rows), default=0))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows]).to(device, non_blocking=True)


def _find_tokens(text: str, offsets: Sequence[Tokens], start: int) -> list[Tokens]:
    """Return the tokens of each unit; one that a token shares with its neighbour has that token."""
    found: list[Tokens] = []
    first = 0
    for unit in split_units(text):
        while first < len(offsets) - 1 and offsets[first][1] <= unit.start:
            first += 1
        last = first
        while last < len(offsets) - 1 and offsets[last + 1][1] <= unit.end:
            last += 1
        found.append((start + first, start + last))
    return found


def _gather(states: Tensor, units: Sequence[Sequence[Tokens]]) -> tuple[Tensor, Tensor]:
    """Return the states of the units of each row, and which are no padding."""
    first, last = (pad([[tokens[side] for tokens in row] for row in units], -1, states.device) for side in (0, 1))
    rows = torch.arange(len(units), device=states.device)[:, None]
    return (states[rows, first.clamp_min(0)] + states[rows, last.clamp_min(0)]) / 2, first >= 0
