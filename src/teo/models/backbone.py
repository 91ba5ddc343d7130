"""The project's own backbone: an encoder-decoder whose next token is generated or copied from the source.

p(y) = (1 - g) softmax(vocabulary) + g * (sum of a over source positions that hold y), with a an attention over the
source and g a gate. Deep encoder, shallow decoder: an utterance is read once and written token by token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput

from teo.models.configuration import TeoConfig
from teo.models.layers import Attention, CopyHead, DecoderLayer, EncoderLayer, rotary_table

IGNORED = -100
"""The label that carries no loss."""


@dataclass
class EncodedSource(ModelOutput):
    """What the decoder reads of the source; its token ids come along for the copy head."""

    last_hidden_state: Tensor | None = None
    source_ids: Tensor | None = None


class Mixture(NamedTuple):
    """What the next token's probability is made of."""

    logits: Tensor
    """Of the vocabulary, for the positions whose labels count: (counted, vocabulary)."""
    log_attention: Tensor
    """Over source positions: (batch, length, source)."""
    gate: Tensor
    """The gate's logit, above 0 if copying is likelier: (batch, length)."""


class TeoEncoder(nn.Module):
    """Token and turn embeddings, then the layers."""

    def __init__(self, config: TeoConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        self.config = config
        self.embedding = embedding
        self.turn_embedding = nn.Embedding(config.turn_types, config.d_model)
        self.embedding_norm = nn.LayerNorm(config.d_model)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.final_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.main_input_name = "input_ids"

    def turns(self, input_ids: Tensor) -> Tensor:
        """Return each token's turn, counted from the end by the separators to its right."""
        separators = (input_ids == self.config.sep_token_id).long()
        to_the_right = separators.flip(1).cumsum(1).flip(1)
        return (to_the_right - 1).clamp(0, self.config.turn_types - 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> EncodedSource:
        """Return the encoded source."""
        x = self.embedding(input_ids) + self.turn_embedding(self.turns(input_ids))
        x = self.dropout(self.embedding_norm(x))
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        table = rotary_table(input_ids.shape[1], self.config.head_size, x.device)
        for layer in self.layers:
            x = layer(x, mask, table)
        return EncodedSource(last_hidden_state=self.final_norm(x), source_ids=input_ids)


class TeoDecoder(nn.Module):
    """Token embeddings, then layers that read what was written and the source."""

    def __init__(self, config: TeoConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        self.config = config
        self.embedding = embedding
        self.embedding_norm = nn.LayerNorm(config.d_model)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.final_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, input_ids: Tensor, source: Tensor, source_mask: Tensor | None = None, own_mask: Tensor | None = None
    ) -> Tensor:
        """Return the states of the positions of each text.

        `own_mask` (batch, 1, length, length) says which positions each may read; None: those before it and itself.
        """
        x = self.dropout(self.embedding_norm(self.embedding(input_ids)))
        table = rotary_table(input_ids.shape[1], self.config.head_size, x.device)
        mask = None if source_mask is None else source_mask[:, None, None, :].bool()
        for layer in cast("list[DecoderLayer]", self.layers):
            x = layer(x, table, layer.cross_attention.keys_values(source), mask, own_mask=own_mask)
        return self.final_norm(x)


class TeoForConditionalGeneration(PreTrainedModel):
    """The whole model, in transformers' form: forward, save_pretrained, from_pretrained.

    `teo.runtime.torch_steps` generates with it.
    """

    config_class = TeoConfig
    base_model_prefix = "teo"
    main_input_name = "input_ids"
    _tied_weights_keys = {  # noqa: RUF012
        "encoder.embedding.weight": "embedding.weight",
        "decoder.embedding.weight": "embedding.weight",
    }

    def __init__(self, config: TeoConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.encoder = TeoEncoder(config, self.embedding)
        self.decoder = TeoDecoder(config, self.embedding)
        self.copy_head = CopyHead(config)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, TeoForConditionalGeneration):
            nn.init.zeros_(module.output_bias)

    def set_dropout(self, share: float) -> None:
        """Change the dropout of every layer: pretraining has none, fine-tuning a tenth."""
        self.config.dropout = share
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = share
            elif isinstance(module, Attention):
                module.dropout = share

    def freeze(self, layers: int) -> None:
        """Keep the embeddings and the encoder's first layers out of training."""
        for part in (self.embedding, self.encoder.turn_embedding, self.encoder.embedding_norm):
            part.requires_grad_(False)
        for layer in self.encoder.layers[:layers]:
            layer.requires_grad_(False)

    def get_encoder(self, *_: Any, **__: Any) -> TeoEncoder:
        """Return what reads the source."""
        return self.encoder

    def get_decoder(self, *_: Any, **__: Any) -> TeoDecoder:
        """Return what writes."""
        return self.decoder

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the one embedding of encoder, decoder and output."""
        return self.embedding

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Take another embedding; the output's bias gets as many entries, new ones zero."""
        self.embedding = self.encoder.embedding = self.decoder.embedding = value
        kept = min(value.num_embeddings, len(self.output_bias))
        bias = self.output_bias.new_zeros(value.num_embeddings)
        bias[:kept] = self.output_bias.data[:kept]
        self.output_bias = nn.Parameter(bias)

    def get_output_embeddings(self) -> None:
        """Return None: the output shares the input's embedding."""
        return

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EncodedSource | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """Return log-probabilities as logits, for each position of the decoder's texts."""
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask)
        source, source_ids = encoder_outputs["last_hidden_state"], encoder_outputs["source_ids"]
        if attention_mask is None:
            attention_mask = torch.ones_like(source_ids)
        states = self.decoder(decoder_input_ids, source, attention_mask)
        logits = self.log_probabilities(states, self.copy_head.key(source), source_ids, attention_mask)
        return Seq2SeqLMOutput(logits=logits, encoder_last_hidden_state=source)

    def log_probabilities(self, states: Tensor, keys: Tensor, source_ids: Tensor, mask: Tensor) -> Tensor:
        """Return log p over the whole vocabulary for each position: the mixture of generating and copying.

        `keys` are the copy head's keys of the source.
        """
        generated = F.linear(states, self.embedding.weight, self.output_bias).float().softmax(-1)
        log_attention, gate = self.copy_head(states, keys, mask.bool())
        copied = torch.zeros_like(generated)
        index = source_ids[:, None, :].expand(-1, states.shape[1], -1)
        copied.scatter_add_(2, index, log_attention.exp())
        share = gate.sigmoid()[..., None]
        return ((1 - share) * generated + share * copied + 1e-12).log()

    def mixture(self, states: Tensor, source: Tensor, mask: Tensor, labels: Tensor) -> Mixture:
        """Return what the next token's probability is made of, the vocabulary's part for labels that count."""
        logits = F.linear(states[labels != IGNORED], self.embedding.weight, self.output_bias).float()
        return Mixture(logits, *self.copy_head(states, self.copy_head.key(source), mask.bool()))

    def scores_of(self, mixture: Mixture, source_ids: Tensor, labels: Tensor) -> Tensor:
        """Return log p(label) of a mixture for each position, 0 if ignored; the vocabulary is never scattered into."""
        counted = labels != IGNORED
        generated = labels.new_zeros(labels.shape, dtype=torch.float32)
        generated[counted] = -F.cross_entropy(mixture.logits, labels[counted], reduction="none")
        same = source_ids[:, None, :] == labels[:, :, None]
        copied = mixture.log_attention.masked_fill(~same, torch.finfo(torch.float32).min).logsumexp(-1)
        mixed = torch.logaddexp(F.logsigmoid(-mixture.gate) + generated, F.logsigmoid(mixture.gate) + copied)
        return mixed.masked_fill(~counted, 0.0)
