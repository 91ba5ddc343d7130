"""Each family's layers under the names of ours: what `teo.export.model` builds graphs from.

A name says where a part is among the additions to the residual. So BART and Marian, which normalise after each
addition, differ from T5 and our own backbone in what is added to, not in the order of the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import ModelError
from teo.export.graph import Activation, Shape, Weights
from teo.export.positions import distance_table
from teo.runtime.onnx_files import POSITIONS
from teo.runtime.onnx_weights import Array

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_Part = tuple[str, Array]


@dataclass(frozen=True, slots=True)
class Network:
    """A trained model, ready to be written as graphs."""

    shape: Shape
    weights: Weights
    positions: int = POSITIONS
    """How many positions there are vectors for."""
    turn_types: int = 1


def read_network(model: Any, source: Path) -> Network:
    """Return the layers of a loaded model: our own backbone, BART, Marian or T5; others are refused."""
    kind = getattr(model.config, "model_type", "")
    weights = {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}
    if kind == "teo":
        return _read_own(model.config, weights)
    if kind not in ("bart", "marian", "t5", "mt5"):
        raise ModelError(
            f"{source}: expected BART, Marian, T5 or the project's own backbone, found {kind or 'another model'}; "
            "other models run with runtime='torch'"
        )
    parts = dict(_embeddings(model, source))
    try:
        if kind in ("bart", "marian"):
            return _read_bart(model.config, weights, parts, source)
        return _read_t5(model.config, weights, parts, source)
    except KeyError as error:
        raise ModelError(f"{source}: expected the weights of {kind}, found no {error}; save the model again") from error


def _read_own(config: Any, weights: Weights) -> Network:
    names = ("d_model", "heads", "encoder_layers", "decoder_layers", "head_size")
    shape = Shape(**{name: getattr(config, name) for name in names})
    return Network(shape, weights, turn_types=config.turn_types)


def _embeddings(model: Any, source: Path) -> Iterator[_Part]:
    """Yield the embedding that encoder and decoder share, and the output projection if it is another matrix."""
    shared, output = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if not shared.equal(model.get_decoder().get_input_embeddings().weight):
        raise ModelError(
            f"{source}: expected one embedding for encoder and decoder, found two; run it with runtime='torch'"
        )
    yield "embedding.weight", shared.detach().float().numpy()
    if not output.equal(shared):
        yield "output.weight", output.detach().float().numpy()


def _read_bart(config: Any, weights: Weights, parts: dict[str, Array], source: Path) -> Network:
    heads = config.encoder_attention_heads, config.decoder_attention_heads
    if heads[0] != heads[1]:
        raise ModelError(
            f"{source}: expected as many heads in the encoder as in the decoder, found {heads[0]} and {heads[1]}; "
            "run it with runtime='torch'"
        )
    shape = Shape(
        d_model=config.d_model,
        heads=heads[0],
        head_size=config.d_model // heads[0],
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        post_norm=True,
        embedding_norm=False,
        embedding_scale=math.sqrt(config.d_model) if config.scale_embedding else 1.0,
        activation=_activation(config.activation_function, source),
        positions="table",
        copies=False,
    )
    for side, first in (("encoder", "attention"), ("decoder", "self")):
        own = f"model.{side}"
        # A table may start with rows for what is no position: BART's has two.
        parts[f"{side}.positions.weight"] = weights[f"{own}.embed_positions.weight"][-config.max_position_embeddings :]
        if f"{own}.layernorm_embedding.weight" in weights:  # Marian has none
            parts |= _named(weights, f"{own}.layernorm_embedding", f"{side}.layers.0.{first}_norm")
        for index in range(shape.encoder_layers if side == "encoder" else shape.decoder_layers):
            last = index + 1 == (shape.encoder_layers if side == "encoder" else shape.decoder_layers)
            following = f"{side}.final_norm" if last else f"{side}.layers.{index + 1}.{first}_norm"
            parts |= _bart_layer(weights, f"{own}.layers.{index}", f"{side}.layers.{index}", following)
    bias = weights["final_logits_bias"].reshape(-1)
    if bias.any():
        parts["output_bias"] = bias
    return Network(shape, parts, positions=min(config.max_position_embeddings, POSITIONS))


def _bart_layer(weights: Weights, own: str, name: str, following: str) -> dict[str, Array]:
    """Return the parts of one layer; its norms stand behind what they normalise, so under the names of what follows."""
    crosses = f"{own}.encoder_attn.q_proj.weight" in weights
    attentions = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
    parts: dict[str, Array] = {}
    for theirs, ours in attentions.items() if crosses else [("self_attn", "attention")]:
        projections = [f"{own}.{theirs}.{part}_proj" for part in ("q", "k", "v", "out")]
        parts |= _attention(weights, projections, f"{name}.{ours}")
    parts |= _named(weights, f"{own}.fc1", f"{name}.feed_forward.up")
    parts |= _named(weights, f"{own}.fc2", f"{name}.feed_forward.down")
    norms = {"self_attn_layer_norm": f"{name}.{'cross' if crosses else 'feed_forward'}_norm"}
    norms |= {"encoder_attn_layer_norm": f"{name}.feed_forward_norm"} if crosses else {}
    for theirs, ours in {**norms, "final_layer_norm": following}.items():
        parts |= _named(weights, f"{own}.{theirs}", ours)
    return parts


def _read_t5(config: Any, weights: Weights, parts: dict[str, Array], source: Path) -> Network:
    shape = Shape(
        d_model=config.d_model,
        heads=config.num_heads,
        head_size=config.d_kv,
        encoder_layers=config.num_layers,
        decoder_layers=config.num_decoder_layers,
        norm="rms",
        epsilon=config.layer_norm_epsilon,
        embedding_norm=False,
        activation=_activation(config.dense_act_fn, source),
        gated=config.is_gated_act,
        positions="relative",
        query_scale=1.0,
        copies=False,
    )
    far = config.relative_attention_max_distance
    for side, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        buckets = weights[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        parts[f"{side}.distances.weight"] = distance_table(buckets, far=far, both_sides=side == "encoder")
        for index in range(layers):
            parts |= _t5_layer(weights, f"{side}.block.{index}.layer", f"{side}.layers.{index}", shape)
        parts |= _named(weights, f"{side}.final_layer_norm", f"{side}.final_norm")
    if config.model_type == "t5" and getattr(config, "scale_decoder_outputs", config.tie_word_embeddings):
        parts["decoder.final_norm.weight"] = parts["decoder.final_norm.weight"] * np.float32(config.d_model**-0.5)
    return Network(shape, parts)


def _t5_layer(weights: Weights, own: str, name: str, shape: Shape) -> dict[str, Array]:
    crosses = f"{own}.1.EncDecAttention.q.weight" in weights
    kinds = (
        [("SelfAttention", "self_attention", "self"), ("EncDecAttention", "cross_attention", "cross")]
        if crosses
        else [("SelfAttention", "attention", "attention")]
    )
    parts: dict[str, Array] = {}
    for index, (theirs, ours, norm) in enumerate(kinds):
        parts |= _attention(weights, [f"{own}.{index}.{theirs}.{part}" for part in "qkvo"], f"{name}.{ours}")
        parts |= _named(weights, f"{own}.{index}.layer_norm", f"{name}.{norm}_norm")
    last = f"{own}.{len(kinds)}"
    parts |= _named(weights, f"{last}.layer_norm", f"{name}.feed_forward_norm")
    maps = {"wi_0": "gate", "wi_1": "up", "wo": "down"} if shape.gated else {"wi": "up", "wo": "down"}
    for their_map, our_map in maps.items():
        parts |= _named(weights, f"{last}.DenseReluDense.{their_map}", f"{name}.feed_forward.{our_map}")
    return parts


def _attention(weights: Weights, projections: list[str], name: str) -> dict[str, Array]:
    """Return the parts of an attention of its four projections; keys and values are projected by one matrix."""
    query, key, value, out = projections
    parts = {**_named(weights, query, f"{name}.query"), **_named(weights, out, f"{name}.out")}
    pairs = zip(_named(weights, key, "key_value").items(), _named(weights, value, "").values(), strict=True)
    return parts | {f"{name}.{part}": np.concatenate([keys, values]) for (part, keys), values in pairs}


def _named(weights: Weights, theirs: str, ours: str) -> dict[str, Array]:
    """Return weight and, if there is one, bias of a part under another name."""
    found = {f"{ours}.weight": weights[f"{theirs}.weight"]}
    return found | ({f"{ours}.bias": weights[f"{theirs}.bias"]} if f"{theirs}.bias" in weights else {})


def _activation(name: str, source: Path) -> Activation:
    if name not in _ACTIVATIONS:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise ModelError(f"{source}: activation: expected one of {known}, found '{name}'; run it with runtime='torch'")
    return _ACTIVATIONS[name]
