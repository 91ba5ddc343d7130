"""The backbone's settings."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig

from teo.errors import ModelError
from teo.layouts import Marker
from teo.models.tokenizer import EOS, PAD, SPECIAL_TOKENS

_FORMER = {"reader": None, "norm": "layer", "feed_forward": "gelu", "bias": True, "embedding_norm": True}
"""Keys of earlier versions' files, with the one value that they may have."""
_DERIVED = ("head_size", "kv_heads", "rope_theta")
"""Keys of earlier versions' files that follow from the others."""


class TeoConfig(PretrainedConfig):
    """Sizes and token ids of the copy-augmented encoder-decoder; the defaults are the shipped ones."""

    model_type = "teo"
    attribute_map = {"hidden_size": "d_model", "num_attention_heads": "heads", "num_hidden_layers": "encoder_layers"}  # noqa: RUF012

    def __init__(
        self,
        vocab_size: int = 16_384,
        d_model: int = 512,
        encoder_layers: int = 12,
        decoder_layers: int = 2,
        heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        turn_types: int = 8,
        **kwargs: Any,
    ) -> None:
        for name, value in _FORMER.items():
            if (found := kwargs.pop(name, value)) != value:
                raise ModelError(f"config.json: {name}: expected {value}, found {found}; train the backbone anew")
        for name in _DERIVED:
            kwargs.pop(name, None)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.encoder_layers = encoder_layers
        self.decoder_layers = decoder_layers
        self.heads = heads
        self.d_ff = d_ff
        self.dropout = dropout
        self.turn_types = turn_types
        self.head_size = d_model // heads
        fixed = {
            "is_encoder_decoder": True,
            "tie_word_embeddings": True,
            "pad_token_id": SPECIAL_TOKENS.index(PAD),
            "eos_token_id": SPECIAL_TOKENS.index(EOS),
            "decoder_start_token_id": SPECIAL_TOKENS.index(Marker.CLS),
            "sep_token_id": SPECIAL_TOKENS.index(Marker.SEP),
        }
        super().__init__(**{**fixed, **kwargs})
