"""LocateFillBaseline: tags say where something is missing, then the decoder fills the blanks (Locate-Fill)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.models.backbone import IGNORED
from teo.placement import Span
from teo.runtime.torch_codec import Codec
from teo.units import split_units
from teo_lab.baselines.baseline import Baseline, Example, encode_dialogue, pad, unit_states
from teo_lab.baselines.labels import (
    Tag,
    blanked_source,
    fill_target,
    gold_spans,
    make_tags,
    read_fills,
    read_tags,
)


class LocateFillBaseline(Baseline):
    """A tagger and a filler that share their weights: two passes of the encoder, one of the decoder."""

    name = "locate-fill"
    after = "Locate-Fill"

    def __init__(self, backbone: Any, codec: Codec) -> None:
        width = backbone.config.d_model
        head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, len(Tag)))
        super().__init__(backbone, codec, head)

    def prepare(self, row: Row) -> Example:
        """Return the row's tags, and its blanks with what they hold; every rewrite can be expressed."""
        dialogue = row.dialogue
        spans = gold_spans(dialogue, row.rewrite)
        blanks = [(span.first, span.last) for span in spans]
        tags = make_tags(len(split_units(dialogue.utterance)), blanks)
        encoded = encode_dialogue(self.codec, dialogue)
        if not blanks:
            return Example(encoded, tags=tuple(tags))
        blanked = self.codec.encode(blanked_source(dialogue, blanks))
        fills = self.codec.encode_target(fill_target(span.new for span in spans))
        return Example(encoded, tags=tuple(tags), blanked=tuple(blanked), fills=tuple(fills))

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the cross-entropy of the tags plus that of the fills' tokens."""
        filled = [example for example in examples if example.fills]
        dialogues = [example.dialogue for example in examples]
        # One pass of the encoder for both kinds of sources: on a GPU the number of kernels counts.
        states, ids = self.encode_ids([*(item.ids for item in dialogues), *(item.blanked for item in filled)])
        tags = pad([example.tags for example in examples], IGNORED, self.device)
        logits = self.head(unit_states(states[: len(examples)], dialogues).utterance).float()
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=IGNORED)
        if not filled:
            return loss
        return loss + self._fill_loss(states[len(examples) :], ids[len(examples) :], filled)

    def _fill_loss(self, source: Tensor, source_ids: Tensor, examples: Sequence[Example]) -> Tensor:
        """Return the mean of -log p over the tokens of the fills, given the encoded sources with blanks."""
        labels = pad([example.fills for example in examples], IGNORED, self.device)
        start = [(self.backbone.config.decoder_start_token_id, *example.fills[:-1]) for example in examples]
        mask = source_ids != self.codec.pad_id
        states = self.backbone.decoder(pad(start, self.codec.pad_id, self.device), source, mask)
        scores: Tensor = self.backbone.scores_of(
            self.backbone.mixture(states, source, mask, labels), source_ids, labels
        )
        return -scores[labels != IGNORED].mean()

    def propose(self, dialogues: Sequence[Dialogue]) -> list[tuple[list[Span], float, bool]]:
        """Return the edits: the likeliest tag of each unit, then the filler's text for every blank."""
        states = self.encode([encode_dialogue(self.codec, dialogue) for dialogue in dialogues])
        scores, tags = self.head(states.utterance).float().log_softmax(-1).max(-1)
        totals = (scores * states.utterance_mask).sum(1).tolist()
        counts = states.utterance_mask.sum(1).tolist()
        blanks = [read_tags(row[:count]) for row, count in zip(tags.tolist(), counts, strict=True)]
        proposed: list[tuple[list[Span], float, bool]] = [([], total, True) for total in totals]
        wanted = [number for number, found in enumerate(blanks) if found]
        sources = [blanked_source(dialogues[number], blanks[number]) for number in wanted]
        generator = self.generator(max(1, len(dialogues)))
        for number, generated in zip(wanted, generator.generate(sources) if sources else (), strict=True):
            spans, well_formed = read_fills(blanks[number], generated.pieces)
            proposed[number] = (spans, totals[number] + generated.score, well_formed)
        return proposed
