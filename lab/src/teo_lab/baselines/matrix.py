"""MatrixBaseline: one pass of the encoder, then insert, replace or none for each pair of units (RUN, MIUR, RAU)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.placement import Span
from teo.runtime.torch_codec import Codec
from teo_lab.baselines.baseline import Baseline, Example, UnitStates, encode_dialogue
from teo_lab.baselines.labels import Relation, gold_spans, make_matrix, read_matrix

_WEIGHTS = (1.0, 5.0, 5.0)
"""Of none, replace and insert in the loss: most cells are none."""
_FEATURES, _CHANNELS = 128, 64
_DILATIONS = (1, 2, 4, 1)


class MatrixHead(nn.Module):
    """Features of each pair of units, then convolutions that let a cell see the cells around it.

    The features are RUN's: elementwise product, cosine, and a learned map of both units.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.row, self.column = nn.Linear(width, _FEATURES), nn.Linear(width, _FEATURES)
        self.product = nn.Linear(_FEATURES + 1, _CHANNELS)
        self.row_alone, self.column_alone = nn.Linear(width, _CHANNELS), nn.Linear(width, _CHANNELS)
        self.layers = nn.ModuleList(
            nn.Conv2d(_CHANNELS, _CHANNELS, 3, padding=dilation, dilation=dilation) for dilation in _DILATIONS
        )
        self.norms = nn.ModuleList(nn.LayerNorm(_CHANNELS) for _ in _DILATIONS)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(_CHANNELS, len(Relation))

    def forward(self, states: UnitStates) -> Tensor:
        """Return the logits of every cell: (batch, history, utterance, relations)."""
        rows, columns = self.row(states.history), self.column(states.utterance)
        product = rows[:, :, None] * columns[:, None]
        cosine = F.cosine_similarity(rows[:, :, None], columns[:, None], dim=-1)[..., None]
        x = self.product(torch.cat((product, cosine), dim=-1))
        x = x + self.row_alone(states.history)[:, :, None] + self.column_alone(states.utterance)[:, None]
        mask = cell_mask(states)[..., None]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            seen = (F.gelu(norm(x)) * mask).permute(0, 3, 1, 2)  # padding must say nothing to its neighbours
            x = x + self.dropout(layer(seen).permute(0, 2, 3, 1))
        return cast("Tensor", self.out(F.gelu(x)))


class MatrixBaseline(Baseline):
    """The edit matrix as a tagger."""

    name = "matrix"
    after = "RUN, MIUR, RAU"

    def __init__(self, backbone: Any, codec: Codec) -> None:
        super().__init__(backbone, codec, MatrixHead(backbone.config.d_model))

    def prepare(self, row: Row) -> Example | None:
        """Return the row's matrix; None if a text of its edits is not in the history."""
        cells = make_matrix(row.dialogue, gold_spans(row.dialogue, row.rewrite))
        return None if cells is None else Example(encode_dialogue(self.codec, row.dialogue), cells)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the weighted cross-entropy over the cells."""
        states = self.encode([example.dialogue for example in examples])
        mask = cell_mask(states)
        labels = torch.zeros(mask.shape, dtype=torch.long)
        marked = [
            (number, *cell, int(relation))
            for number, example in enumerate(examples)
            for cell, relation in example.cells.items()
        ]
        if marked:
            rows, history, utterance, relations = torch.tensor(marked).T
            labels[rows, history, utterance] = relations
        weights = torch.tensor(_WEIGHTS, device=self.device)
        logits: Tensor = self.head(states).float()
        if not mask.any():  # dialogues without history have no cells: nothing to learn, and no mean
            return logits.sum() * 0
        return F.cross_entropy(logits[mask], labels.to(self.device)[mask], weights)

    def propose(self, dialogues: Sequence[Dialogue]) -> list[tuple[list[Span], float, bool]]:
        """Return the edits of the likeliest relation of each cell."""
        states = self.encode([encode_dialogue(self.codec, dialogue) for dialogue in dialogues])
        scores, relations = self.head(states).float().log_softmax(-1).max(-1)
        mask = cell_mask(states)
        totals = (scores * mask).sum((1, 2)).tolist()
        cells: list[dict[tuple[int, int], Relation]] = [{} for _ in dialogues]
        relations = relations * mask
        found = relations.nonzero()
        chosen = relations[tuple(found.T)].tolist()
        for (number, row, column), relation in zip(found.tolist(), chosen, strict=True):
            cells[number][row, column] = Relation(relation)
        return [
            (read_matrix(dialogue, marked), total, True)
            for dialogue, marked, total in zip(dialogues, cells, totals, strict=True)
        ]


def cell_mask(states: UnitStates) -> Tensor:
    """Return which cells are no padding: (batch, history, utterance)."""
    return states.history_mask[:, :, None] & states.utterance_mask[:, None]
