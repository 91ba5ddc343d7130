"""A backbone built of the layers of a pretrained decoder (Llama's form, such as SmolLM2).

Encoder and decoder take layers at even spacing, the first and the last included: 12 of 30 are 0, 3, 5, 8, 11, 13, 16,
18, 21, 24, 26, 29, and 2 of 30 are 0 and 29. The encoder reads both sides. Attention over the source and the
copy head are new; what the decoder adds from the source is near zero, so that the start is close to the layers' own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from teo.errors import InputError, MissingExtraError, ModelError
from teo.layouts import Marker
from teo.models.backbone import TeoForConditionalGeneration
from teo.models.configuration import TeoConfig
from teo.models.layers import Attention, DecoderLayer, EncoderLayer, FeedForward
from teo.models.tokenizer import EOS, PAD

_SPACE = "▁"
_NEAR_ZERO = 0.002
"""Spread of the weights that write into a stream which the old layers read."""


def load_gguf(path: Path) -> tuple[dict[str, Tensor], Any, Tokenizer]:
    """Return weights in full precision, configuration and tokenizer of a GGUF file."""
    if not path.is_file():
        raise ModelError(f"{path}: expected a GGUF file, found none; give the path of the pretrained decoder")
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError("reading a GGUF file", "gguf", "train")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    except Exception as error:  # transformers raises what its parts raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise ModelError(f"{path}: not a decoder that transformers can load ({reason})") from error
    return model.state_dict(), model.config, tokenizer.backend_tokenizer


def build_from_decoder(
    source_state: Mapping[str, Tensor],
    source_config: Any,
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer,
    encoder_layers: int = 12,
    decoder_layers: int = 2,
    seed: int = 0,
) -> TeoForConditionalGeneration:
    """Return a backbone of the source's layers with another tokenizer; the seed draws what is new."""
    config = _configuration(source_config, tokenizer.get_vocab_size(), encoder_layers, decoder_layers)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = TeoForConditionalGeneration(config)
        count = int(source_config.num_hidden_layers)
        for layer, index in zip(model.encoder.layers, spaced(encoder_layers, count), strict=True):
            _fill_encoder_layer(cast(EncoderLayer, layer), source_state, f"model.layers.{index}")
        for layer, index in zip(model.decoder.layers, spaced(decoder_layers, count), strict=True):
            _fill_decoder_layer(cast(DecoderLayer, layer), source_state, f"model.layers.{index}")
        for side in (model.encoder, model.decoder):
            _copy(side.final_norm, source_state["model.norm.weight"])
        nn.init.zeros_(model.encoder.turn_embedding.weight)
        nn.init.normal_(model.copy_head.gate.weight, std=_NEAR_ZERO)
        table = source_state["model.embed_tokens.weight"].float()
        model.embedding.weight.copy_(_embedding(table, source_config, tokenizer, source_tokenizer))
    return model


def spaced(count: int, total: int) -> list[int]:
    """Return `count` of the layers 0 to `total` - 1 at even spacing, the first and the last included."""
    if not 1 <= count <= total:
        raise InputError(f"layers: expected 1 to {total}, as many as the pretrained decoder has, found {count}")
    return [round(k * (total - 1) / max(count - 1, 1)) for k in range(count)]


def pieces_of(token: str, source_tokenizer: Tokenizer) -> list[int]:
    """Return the source's pieces of an English token's text, its leading space included; none for other tokens."""
    text = token.replace(_SPACE, " ")
    if not text.isascii() or (token.startswith("<0x") and token.endswith(">")):
        return []
    return list(source_tokenizer.encode(text, add_special_tokens=False).ids)


def _configuration(source: Any, vocabulary: int, encoder_layers: int, decoder_layers: int) -> TeoConfig:
    found = {name: getattr(source, name, None) for name in ("model_type", "hidden_act", "attention_bias", "mlp_bias")}
    wanted = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
    if found != wanted:
        raise ModelError(f"decoder: expected layers of Llama's form ({wanted}), found {found}; give another model")
    rope = source.rope_parameters
    if rope.get("rope_type", "default") != "default":
        raise ModelError(f"decoder: expected plain rotary positions, found {rope['rope_type']}; give another model")
    heads = int(source.num_attention_heads)
    return TeoConfig(
        vocab_size=vocabulary,
        d_model=int(source.hidden_size),
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        heads=heads,
        kv_heads=int(source.num_key_value_heads),
        head_size=int(getattr(source, "head_dim", None) or source.hidden_size // heads),
        d_ff=int(source.intermediate_size),
        dropout=0.0,
        rope_theta=float(rope["rope_theta"]),
        norm="rms",
        feed_forward="swiglu",
        bias=False,
        embedding_norm=False,
    )


def _fill_encoder_layer(layer: EncoderLayer, state: Mapping[str, Tensor], name: str) -> None:
    _copy(layer.attention_norm, state[f"{name}.input_layernorm.weight"])
    _fill_attention(layer.attention, state, f"{name}.self_attn")
    _copy(layer.feed_forward_norm, state[f"{name}.post_attention_layernorm.weight"])
    _fill_feed_forward(layer.feed_forward, state, f"{name}.mlp")


def _fill_decoder_layer(layer: DecoderLayer, state: Mapping[str, Tensor], name: str) -> None:
    _copy(layer.self_norm, state[f"{name}.input_layernorm.weight"])
    _fill_attention(layer.self_attention, state, f"{name}.self_attn")
    nn.init.normal_(layer.cross_attention.out.weight, std=_NEAR_ZERO)
    _copy(layer.feed_forward_norm, state[f"{name}.post_attention_layernorm.weight"])
    _fill_feed_forward(layer.feed_forward, state, f"{name}.mlp")


def _fill_attention(attention: Attention, state: Mapping[str, Tensor], name: str) -> None:
    _copy(attention.query, state[f"{name}.q_proj.weight"])
    _copy(attention.key_value, torch.cat([state[f"{name}.{part}_proj.weight"] for part in "kv"]))
    _copy(attention.out, state[f"{name}.o_proj.weight"])


def _fill_feed_forward(feed_forward: FeedForward, state: Mapping[str, Tensor], name: str) -> None:
    _copy(cast(nn.Linear, feed_forward.gate), state[f"{name}.gate_proj.weight"])
    _copy(feed_forward.up, state[f"{name}.up_proj.weight"])
    _copy(feed_forward.down, state[f"{name}.down_proj.weight"])


def _copy(module: nn.Module, weight: Tensor) -> None:
    cast(Tensor, module.weight).copy_(weight)


def _embedding(table: Tensor, source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> Tensor:
    """Return the new embedding: means of the source's pieces, others drawn with the source's mean and spread."""
    size = tokenizer.get_vocab_size()
    rows = table.mean(0) + table.std(0) * torch.randn(size, table.shape[1])
    markers = {
        Marker.CLS.value: [source.bos_token_id],  # stands first, where the source has learned to expect its own start
        EOS: [source.eos_token_id],
        Marker.SEP.value: source_tokenizer.encode("\n", add_special_tokens=False).ids,
    }
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for number in range(size):
        token = str(tokenizer.id_to_token(number))
        pieces = markers.get(token, []) if token in special else pieces_of(token, source_tokenizer)
        if pieces and None not in pieces:
            rows[number] = table[pieces].mean(0)
    rows[tokenizer.token_to_id(PAD)] = 0.0
    return rows
