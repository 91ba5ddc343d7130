"""The backbone's settings."""

from __future__ import annotations

from typing import Any, Literal

from transformers import PretrainedConfig

from teo.layouts import Marker
from teo.models.tokenizer import EOS, PAD, SPECIAL_TOKENS


class TeoConfig(PretrainedConfig):
    """Sizes, kinds of layers and token ids of the copy-augmented encoder-decoder; the defaults are the shipped ones."""

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
        max_positions: int = 512,
        turn_types: int = 8,
        rope_theta: float = 10_000.0,
        reader: dict[str, Any] | None = None,
        norm: Literal["layer", "rms"] = "layer",
        feed_forward: Literal["gelu", "swiglu"] = "gelu",
        kv_heads: int | None = None,
        head_size: int | None = None,
        bias: bool = True,
        embedding_norm: bool = True,
        **kwargs: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.encoder_layers = encoder_layers
        self.decoder_layers = decoder_layers
        self.heads = heads
        self.d_ff = d_ff
        self.dropout = dropout
        self.max_positions = max_positions
        self.turn_types = turn_types
        self.rope_theta = rope_theta
        self.reader = reader  # settings of a BERT-like encoder that reads beside the layers (teo.models.reader)
        self.norm = norm
        self.feed_forward = feed_forward
        self.kv_heads = kv_heads or heads  # fewer than heads: several queries share a key and a value
        self.head_size = head_size or d_model // heads
        self.bias = bias  # of attention and feed-forward; the copy head always has its own
        self.embedding_norm = embedding_norm
        fixed = {
            "is_encoder_decoder": True,
            "tie_word_embeddings": True,
            "pad_token_id": SPECIAL_TOKENS.index(PAD),
            "eos_token_id": SPECIAL_TOKENS.index(EOS),
            "decoder_start_token_id": SPECIAL_TOKENS.index(Marker.CLS),
            "sep_token_id": SPECIAL_TOKENS.index(Marker.SEP),
        }
        super().__init__(**{**fixed, **kwargs})
