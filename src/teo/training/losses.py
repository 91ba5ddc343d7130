"""Models whose output for a batch is its loss: our own backbone on packed batches, and any other seq2seq model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teo.models.backbone import IGNORED, Mixture, TeoForConditionalGeneration
from teo.training.averaging import divergence, logit_divergence, two_passes


class LossModel(nn.Module, ABC):
    """A model and the loss of its batches."""

    r_drop: float = 0.0
    """Weight of R-Drop's term."""

    @abstractmethod
    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the decoder's loss, with R-Drop's term if it has a weight, and the encoder's loss on masked tokens."""

    @abstractmethod
    def compile_layers(self) -> None:
        """Compile what a batch runs through."""


class PackedModel(LossModel):
    """The backbone with the loss of packed batches, and the head that fills masked tokens from the encoder."""

    def __init__(self, backbone: TeoForConditionalGeneration) -> None:
        super().__init__()
        self.backbone = backbone
        width = backbone.config.d_model
        self.masked_head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return both losses; a row's decoder texts do not read each other."""
        model = self.backbone
        batch = two_passes(batch) if self.r_drop else batch
        scores, mixture, encoded = score_packed(model, batch)
        counted = batch["labels"] != IGNORED
        decoder_loss = -scores[counted].mean()
        if self.r_drop:
            decoder_loss = decoder_loss + self.r_drop * divergence(mixture, counted)
        positions = batch["masked_places"].long()
        if not len(positions):
            return decoder_loss, decoder_loss.new_zeros(())
        hidden = self.masked_head(encoded.flatten(0, 1)[positions])
        logits = F.linear(hidden, model.embedding.weight, model.output_bias).float()
        return decoder_loss, F.cross_entropy(logits, batch["masked_tokens"].long())

    def compile_layers(self) -> None:
        """Compile the layers one by one: they are alike, and a layer is compiled once for all of its kind."""
        for layer in (*self.backbone.encoder.layers, *self.backbone.decoder.layers):
            layer.compile()


def score_packed(model: TeoForConditionalGeneration, batch: dict[str, Tensor]) -> tuple[Tensor, Mixture, Tensor]:
    """Return the log-probability of every label of a packed batch, what it is made of, and the encoded sources."""
    source, labels, segment = batch["source"].long(), batch["labels"].long(), batch["segment"]
    mask = source != model.config.pad_token_id
    encoded = model.encoder(source, mask).last_hidden_state
    length = segment.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=source.device).tril()
    own_mask = (segment[:, None, :, None] == segment[:, None, None, :]) & causal
    states = model.decoder(batch["decoder_input"].long(), encoded, mask, own_mask)
    mixture = model.mixture(states, encoded, mask, labels)
    return model.scores_of(mixture, source, labels), mixture, encoded


class PlainModel(LossModel):
    """Any seq2seq model of transformers with the mean negative log-likelihood of the target's tokens."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the decoder's loss (equations 3 and 4); nothing is masked."""
        labels = batch["labels"]
        logits = self._logits(batch)
        loss = token_loss(logits, labels)
        if self.r_drop:
            again = self._logits(batch)
            loss = (loss + token_loss(again, labels)) / 2 + self.r_drop * logit_divergence(logits, again, labels)
        return loss, loss.new_zeros(())

    def _logits(self, batch: dict[str, Tensor]) -> Tensor:
        logits: Tensor = self.backbone(
            input_ids=batch["source"],
            attention_mask=batch["source_mask"],
            decoder_input_ids=batch["decoder_input"],
            use_cache=False,
        ).logits
        return logits

    def compile_layers(self) -> None:
        """Compile the whole model, since every family names its layers otherwise."""
        self.backbone.compile()


def loss_model(model: Any) -> LossModel:
    """Return a model with the loss of its batches."""
    return PackedModel(model) if isinstance(model, TeoForConditionalGeneration) else PlainModel(model)


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss over the labels that count."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
