"""read_exported(folder): the weights of an exported model of our own, so that training can start from them.

What an export joins, turns and scales is put back; 8-bit numbers come back as they were rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from teo.errors import MissingExtraError, ModelError
from teo.models import TeoConfig, TeoForConditionalGeneration
from teo.runtime.onnx_files import DESCRIPTION, Description
from teo.runtime.onnx_weights import Array

_GRAPHS = ("encoder.onnx", "decoder.onnx")
_SCALE = ":scale"


def find_graphs(folder: Path) -> Path | None:
    """Return where the graphs of an exported model with one set of weights lie; None if it is no such model."""
    return next((graphs for graphs in (folder, folder / "onnx") if (graphs / DESCRIPTION).is_file()), None)


def read_exported(graphs: Path) -> TeoForConditionalGeneration:
    """Return the model whose graphs a folder holds, in full precision."""
    import torch

    described = Description.load(graphs)
    stored = _read_constants(graphs)
    try:
        config = _config(described, stored)
        weights = _weights(described, config, stored)
    except KeyError as error:
        raise ModelError(
            f"{graphs}: expected the project's own backbone, found no {error}; "
            "start from the trained folder of this model, or from teo-base"
        ) from error
    model = TeoForConditionalGeneration(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(np.array(weights[name], dtype=np.float32)))
    return model


def _read_constants(graphs: Path) -> dict[str, Array]:
    """Return the weights of both graphs by name, in float32 and as the graphs have them."""
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an exported model", "onnx", "train") from error
    from onnx import numpy_helper

    found: dict[str, Array] = {}
    for name in _GRAPHS:
        try:
            graph = onnx.load(str(graphs / name)).graph
        except Exception as error:  # onnx raises what protobuf and the file system raise
            raise ModelError(f"{graphs / name}: the graph cannot be read ({error}); export the model again") from error
        found |= {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    whole = {}
    for name, tensor in found.items():
        scale = found.get(name + _SCALE)
        if scale is None:
            whole[name] = tensor
        elif name == "embedding":
            whole[name] = tensor.astype(np.float32) * scale[:, None]
        else:
            whole[name] = tensor.astype(np.float32) * scale
    return whole


def _config(described: Description, stored: Mapping[str, Array]) -> TeoConfig:
    layers = {int(name.split(".")[2]) for name in stored if name.startswith("encoder.layers.")}
    return TeoConfig(
        vocab_size=len(stored["embedding"]),
        d_model=described.d_model,
        encoder_layers=len(layers),
        decoder_layers=described.decoder_layers,
        heads=described.heads,
        d_ff=stored["encoder.layers.0.feed_forward.up"].shape[1],
        turn_types=described.turn_types,
    )


def _weights(described: Description, config: TeoConfig, stored: Mapping[str, Array]) -> dict[str, Array]:
    """Return the parameters under the backbone's own names."""
    whole: dict[str, Array] = {
        "embedding.weight": stored["embedding"],
        "output_bias": stored["output_bias"],
        "encoder.turn_embedding.weight": stored["encoder.turn_embedding"],
        "copy_head.gate.weight": stored["copy_head.gate"].T,
        "copy_head.gate.bias": stored["gate:bias"],
    }
    whole |= {name: tensor for name, tensor in stored.items() if "norm." in name}
    wide = described.d_model**0.5
    whole |= _linear(stored, "copy_head.query", "copy_head.query", wide)
    whole |= _linear(stored, "copy_head.key", "copy_head.key")
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for index in range(layers):
            name = f"{side}.layers.{index}"
            last = index + 1 == layers
            first = "attention" if side == "encoder" else "self"
            following = f"{side}.final_norm" if last else f"{side}.layers.{index + 1}.{first}_norm"
            whole |= _layer(described, stored, name, following)
    return whole


def _layer(described: Description, stored: Mapping[str, Array], name: str, following: str) -> dict[str, Array]:
    """Return the parameters of a layer; the bias of what is added last stands at the norm that follows."""
    reads = name.startswith("encoder")
    own = f"{name}.attention" if reads else f"{name}.self_attention"
    split, unscaled = described.heads * described.head_size, described.head_size**0.5
    both, value = _linear(stored, f"{own}.query_key"), _linear(stored, f"{own}.value")
    parts: dict[str, Array] = {}
    for kind, joined in both.items():
        end = kind.rpartition(".")[2]
        parts[f"{own}.query.{end}"] = joined[:split] * np.float32(unscaled)
        parts[f"{own}.key_value.{end}"] = np.concatenate([joined[split:], value[f"{own}.value.{end}"]])
    ends = {f"{own}.out": (f"{own}.out" if reads else f"{name}.self.out", "feed_forward" if reads else "cross")}
    if not reads:
        cross = f"{name}.cross_attention"
        parts |= _linear(stored, f"{cross}.query", f"{cross}.query", unscaled)
        key, value = _linear(stored, f"{cross}.key"), _linear(stored, f"{cross}.value")
        for kind, tensor in key.items():
            end = kind.rpartition(".")[2]
            parts[f"{cross}.key_value.{end}"] = np.concatenate([tensor, value[f"{cross}.value.{end}"]])
        ends[f"{cross}.out"] = (f"{name}.cross.out", "feed_forward")
    for theirs, (ours, norm) in ends.items():
        parts |= _ending(stored, ours, theirs, f"{name}.{norm}_norm")
    parts |= _linear(stored, f"{name}.feed_forward.up")
    return {**parts, **_ending(stored, f"{name}.feed_forward.down", f"{name}.feed_forward.down", following)}


def _ending(stored: Mapping[str, Array], name: str, own: str, norm: str) -> dict[str, Array]:
    """Return weight and bias of what is added to the residual."""
    return {f"{own}.weight": stored[name].T, f"{own}.bias": stored[f"{norm}:added"]}


def _linear(stored: Mapping[str, Array], name: str, own: str = "", scale: float = 1.0) -> dict[str, Array]:
    """Return weight and bias of a linear map, with the scale that an export took in taken out."""
    factor: Any = np.float32(scale)
    return {f"{own or name}.weight": stored[name].T * factor, f"{own or name}.bias": stored[f"{name}:bias"] * factor}
