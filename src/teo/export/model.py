"""The two graphs of an exported model: the encoder, and one step of the decoder, with the copy head if it has one."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from teo.export.graph import Form, Graph, Rows, Shape, Weights, key_or_value, query_key, scaled_query
from teo.export.positions import add_positions, scale_embedded, source_distances, text_distances, text_positions
from teo.models.storage import quantise
from teo.runtime.onnx_session import PROBE_SIZE
from teo.runtime.onnx_weights import Array, WeightWriter


def encoder_graph(writer: WeightWriter, form: Form, shape: Shape, weights: Weights) -> onnx.ModelProto:
    """Return the encoder: the sources' tokens without padding in, keys and values for the decoder out.

    Tokens of all sources stand in one line of rows. Only attention needs them by source: `slots` says which row each
    place of each source holds (padding holds any), `places` where each row lies among all places.
    """
    graph = Graph(writer, form, shape)
    embedded = graph.input("embedded", TensorProto.FLOAT, ["tokens", shape.d_model])
    turns = graph.input("turns", TensorProto.INT64, ["tokens"]) if shape.copies else ""
    positions = graph.input("positions", TensorProto.INT64, ["tokens", 1]) if shape.positions != "relative" else ""
    slots = graph.input("slots", TensorProto.INT64, ["batch", "source"])
    places = graph.input("places", TensorProto.INT64, ["tokens"])
    bias = graph.input("bias", TensorProto.FLOAT, ["batch", 1, 1, "source"])
    x = scale_embedded(graph, embedded)
    if shape.copies:
        table = graph.constant("encoder.turn_embedding", weights["encoder.turn_embedding.weight"])
        x = graph.node("Add", x, graph.node("Gather", table, turns, axis=0))
    if shape.positions == "table":
        x = add_positions(graph, x, "encoder", weights, graph.node("Squeeze", positions, graph.sizes(1)))
    if shape.positions == "relative":
        bias = graph.node("Add", bias, source_distances(graph, slots, weights))
    if shape.embedding_norm:
        x = graph.norm(x, "encoder.embedding_norm", weights)
    x, normed = graph.begin(x, "encoder.layers.0.attention_norm", weights)
    for index in range(shape.encoder_layers):
        name = f"encoder.layers.{index}"
        read = _encoder_attention(graph, normed, f"{name}.attention", weights, (positions, slots, places, bias))
        change = graph.product(graph.rows(read), f"{name}.attention.out", weights[f"{name}.attention.out.weight"])
        added = weights.get(f"{name}.attention.out.bias")
        x, normed = graph.add_norm(x, change, added, f"{name}.feed_forward_norm", weights)
        change, added = graph.feed_forward(normed, f"{name}.feed_forward", weights)
        last = index + 1 == shape.encoder_layers
        following = "encoder.final_norm" if last else f"encoder.layers.{index + 1}.attention_norm"
        x, normed = graph.add_norm(x, change, added, following, weights)
    _encoder_outputs(graph, graph.rows(normed), slots, weights)
    return graph.model("teo-encoder")


def _encoder_attention(
    graph: Graph, normed: str, name: str, weights: Weights, inputs: tuple[str, str, str, str]
) -> str:
    """Return what each row reads of its own source."""
    positions, slots, places, bias = inputs
    shape, rows = graph.shape, graph.rows(normed)
    heads = shape.heads + shape.kv_heads
    both = graph.linear(rows, f"{name}.query_key", *query_key(weights, name, shape))
    if shape.positions == "rotary":
        both = graph.turn(graph.node("Unsqueeze", both, graph.sizes(1)), positions, heads)
        both = graph.node("Reshape", both, graph.sizes(-1, heads * shape.head_size))
    value = graph.linear(rows, f"{name}.value", *key_or_value(weights, name, slice(shape.key_size, None)))
    joined = graph.split_heads(graph.node("Gather", both, slots, axis=0), heads)
    query, key = graph.split_query_key(joined)
    value = graph.split_heads(graph.node("Gather", value, slots, axis=0), shape.kv_heads)
    read = graph.node("Reshape", graph.attend(query, key, value, bias), graph.sizes(-1, shape.query_size))
    return graph.node("Gather", read, places, axis=0)


def _encoder_outputs(graph: Graph, rows: Rows, slots: str, weights: Weights) -> None:
    """Give out what every step of the decoder reads: keys and values of each layer, and the copy head's keys."""
    shape = graph.shape
    size, heads = shape.key_size, shape.kv_heads
    for index in range(shape.decoder_layers):
        name = f"decoder.layers.{index}.cross_attention"
        for part, span in (("key", slice(size)), ("value", slice(size, None))):
            flat = graph.linear(rows, f"{name}.{part}", *key_or_value(weights, name, span))
            by_source = graph.split_heads(graph.node("Gather", flat, slots, axis=0), heads)
            sizes = ("batch", heads, "source", shape.head_size)
            graph.output(by_source, f"cross_{part}_{index}", TensorProto.FLOAT, sizes)
    if not shape.copies:
        return
    keys = graph.linear(rows, "copy_head.key", weights["copy_head.key.weight"], weights["copy_head.key.bias"])
    keys = graph.node("Gather", keys, slots, axis=0)
    graph.output(keys, "copy_keys", TensorProto.FLOAT, ("batch", "source", shape.d_model))


def decoder_graph(writer: WeightWriter, form: Form, shape: Shape, weights: Weights) -> onnx.ModelProto:
    """Return one step of the decoder: some tokens after those cached in, the likeliest next tokens out.

    `at` names the positions, of those given, whose next token is asked for; `wanted` tokens get their score too.
    """
    graph = Graph(writer, form, shape)
    size = shape.d_model
    embedded = graph.input("embedded", TensorProto.FLOAT, ["batch", "length", size])
    past_length = graph.input("past_length", TensorProto.INT64, [1]) if shape.positions != "relative" else ""
    own_bias = graph.input("own_bias", TensorProto.FLOAT, [1, 1, "length", "written"])
    bias = graph.input("bias", TensorProto.FLOAT, ["batch", 1, 1, "source"])
    x = scale_embedded(graph, embedded)
    if shape.positions == "table":
        x = add_positions(graph, x, "decoder", weights, text_positions(graph, embedded, past_length))
    if shape.positions == "relative":
        own_bias = graph.node("Add", own_bias, text_distances(graph, own_bias, weights))
    if shape.embedding_norm:
        x = graph.norm(x, "decoder.embedding_norm", weights)
    x, normed = graph.begin(x, "decoder.layers.0.self_norm", weights)
    for index in range(shape.decoder_layers):
        name = f"decoder.layers.{index}"
        read = _self_attention(graph, normed, index, weights, (past_length, own_bias))
        change = graph.product(graph.rows(read), f"{name}.self.out", weights[f"{name}.self_attention.out.weight"])
        added = weights.get(f"{name}.self_attention.out.bias")
        x, normed = graph.add_norm(x, change, added, f"{name}.cross_norm", weights)
        read = _cross_attention(graph, normed, index, weights, bias)
        change = graph.product(graph.rows(read), f"{name}.cross.out", weights[f"{name}.cross_attention.out.weight"])
        added = weights.get(f"{name}.cross_attention.out.bias")
        x, normed = graph.add_norm(x, change, added, f"{name}.feed_forward_norm", weights)
        change, added = graph.feed_forward(normed, f"{name}.feed_forward", weights)
        last = index + 1 == shape.decoder_layers
        following = "decoder.final_norm" if last else f"decoder.layers.{index + 1}.self_norm"
        x, normed = graph.add_norm(x, change, added, following, weights)
    at = graph.input("at", TensorProto.INT64, ["asked"])
    states = graph.node("Gather", normed, at, axis=1)
    rows = graph.rows(states)
    generated = _generated(graph, rows, weights)
    _choose(graph, _mixture(graph, states, rows, generated, weights, bias) if shape.copies else generated)
    return graph.model("teo-decoder")


def _self_attention(graph: Graph, normed: str, index: int, weights: Weights, inputs: tuple[str, str]) -> str:
    """Return what each position reads of the text so far; its keys and values join those cached."""
    past_length, own_bias = inputs
    shape, rows = graph.shape, graph.rows(normed)
    heads, both_heads = shape.kv_heads, shape.heads + shape.kv_heads
    name = f"decoder.layers.{index}.self_attention"
    both = graph.linear(rows, f"{name}.query_key", *query_key(weights, name, shape))
    turned = graph.turn(both, past_length, both_heads) if shape.positions == "rotary" else both
    joined = graph.split_heads(turned, both_heads)
    query, key = graph.split_query_key(joined)
    value = graph.linear(rows, f"{name}.value", *key_or_value(weights, name, slice(shape.key_size, None)))
    cached = {"key": key, "value": graph.split_heads(value, heads)}
    for part, new in cached.items():
        past = graph.input(f"past_{part}_{index}", TensorProto.FLOAT, ["batch", heads, "past", shape.head_size])
        cached[part] = graph.node("Concat", past, new, axis=2)
        sizes = ("batch", heads, "written", shape.head_size)
        graph.output(cached[part], f"present_{part}_{index}", TensorProto.FLOAT, sizes)
    return graph.attend(query, cached["key"], cached["value"], own_bias)


def _cross_attention(graph: Graph, normed: str, index: int, weights: Weights, bias: str) -> str:
    """Return what each position reads of the source."""
    shape = graph.shape
    name = f"decoder.layers.{index}.cross_attention"
    flat = graph.linear(graph.rows(normed), f"{name}.query", *scaled_query(weights, name, shape))
    query = graph.split_heads(flat, shape.heads)
    sizes: tuple[str | int, ...] = ("batch", shape.kv_heads, "source", shape.head_size)
    key = graph.input(f"cross_key_{index}", TensorProto.FLOAT, sizes)
    value = graph.input(f"cross_value_{index}", TensorProto.FLOAT, sizes)
    return graph.attend(query, key, value, bias)


def _generated(graph: Graph, rows: Rows, weights: Weights) -> str:
    """Return the decoder's own p over the vocabulary; the output projection is the embedding or another matrix."""
    if "output.weight" in weights:
        logits = graph.product(rows, "output", weights["output.weight"])
    else:  # the bytes that the runtime looks tokens up in
        stored = embedding_tensors(graph.form, weights)
        table, *scale = [graph.constant(name, tensor) for name, tensor in stored.items()]
        across = graph.node("Transpose", table, perm=[1, 0])
        logits = graph.int8_product(rows, across, *scale) if scale else graph.node("MatMul", rows.values, across)
    if "output_bias" in weights:
        logits = graph.node("Add", logits, graph.constant("output_bias", weights["output_bias"]))
    return graph.node("Softmax", logits, axis=-1)


def embedding_tensors(form: Form, weights: Weights) -> dict[str, Array]:
    """Return the embedding as it is stored, by name: its rows and, in int8, the scale of each."""
    if form == "none":
        return {"embedding": weights["embedding.weight"]}
    whole, scale = quantise(weights["embedding.weight"])
    return {"embedding": whole, "embedding:scale": scale}


def _mixture(graph: Graph, states: str, rows: Rows, generated: str, weights: Weights, bias: str) -> str:
    """Return p over the vocabulary: (1 - g) softmax + g * copied, the copied part added token by token."""
    shape = graph.shape
    scale_query = np.float32(shape.d_model**-0.5)
    weight, shift = weights["copy_head.query.weight"] * scale_query, weights["copy_head.query.bias"] * scale_query
    query = graph.linear(rows, "copy_head.query", weight, shift)
    keys = graph.input("copy_keys", TensorProto.FLOAT, ["batch", "source", shape.d_model])
    scores = graph.node("FusedMatMul", query, keys, fused=True, transB=1)
    hidden = graph.node("Squeeze", bias, graph.sizes(1))  # (batch, 1, source)
    copied = graph.node("Softmax", graph.node("Add", scores, hidden), axis=-1)

    gate_weight = graph.constant("copy_head.gate", np.ascontiguousarray(weights["copy_head.gate.weight"].T))
    gate = graph.node("MatMul", states, gate_weight)
    gate = graph.node("Sigmoid", graph.node("Add", gate, graph.constant("gate:bias", weights["copy_head.gate.bias"])))
    kept = graph.node("Mul", generated, graph.node("Sub", graph.number(1), gate))
    ids = graph.input("source_ids", TensorProto.INT64, ["batch", 1, "source"])
    everywhere = graph.node("Expand", ids, graph.node("Shape", copied))
    return graph.node("ScatterElements", kept, everywhere, graph.node("Mul", copied, gate), axis=2, reduction="add")


def _choose(graph: Graph, probabilities: str) -> None:
    """Give out the likeliest tokens and the wanted ones with their probabilities.

    Logarithms are left to the caller: over a few numbers, their last bit depends on how many there are.
    """
    count = graph.input("count", TensorProto.INT64, [1])
    wanted = graph.input("wanted", TensorProto.INT64, ["batch", "asked", 1])
    values, ids = graph.nodes("TopK", probabilities, count, outputs=(True, True), axis=-1)
    graph.output(values, "probabilities", TensorProto.FLOAT, ("batch", "asked", "count"))
    graph.output(ids, "ids", TensorProto.INT64, ("batch", "asked", "count"))
    found = graph.node("GatherElements", probabilities, wanted, axis=2)
    graph.output(found, "wanted_probabilities", TensorProto.FLOAT, ("batch", "asked", 1))


def probe_graph() -> onnx.ModelProto:
    """Return an int8 product whose right answer is known: see `teo.runtime.onnx_session`."""
    weight = numpy_helper.from_array(np.full((PROBE_SIZE, PROBE_SIZE), 127, dtype=np.int8), "weight")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "weight"], ["y"])],
        "teo-probe",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["rows", PROBE_SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, ["rows", PROBE_SIZE])],
        initializer=[weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="teo")
