"""The two graphs of an exported model: the encoder, and one pass of the decoder, with the copy head if it has one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from teo.export.graph import Form, Graph, Rows, Shape, Weights, key_or_value, query_key, scaled_query
from teo.export.positions import add_positions, scale_embedded, source_distances, text_distances
from teo.models.storage import quantise
from teo.runtime.onnx_session import PROBE_SIZE
from teo.runtime.onnx_weights import Array, WeightWriter


def encoder_graph(writer: WeightWriter, form: Form, shape: Shape, weights: Weights) -> onnx.ModelProto:
    """Return the encoder: the sources' tokens without padding in, keys and values for the decoder out.

    Tokens of all sources stand in one line of rows. Only attention needs them by source: `slots` says which row each
    position of each source holds (padding holds any), `places` in which slot each row lies.
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
    heads = 2 * shape.heads
    both = graph.linear(rows, f"{name}.query_key", *query_key(weights, name, shape))
    if shape.positions == "rotary":
        both = graph.turn(graph.node("Unsqueeze", both, graph.sizes(1)), positions, heads)
        both = graph.node("Reshape", both, graph.sizes(-1, heads * shape.head_size))
    value = graph.linear(rows, f"{name}.value", *key_or_value(weights, name, slice(shape.width, None)))
    joined = graph.split_heads(graph.node("Gather", both, slots, axis=0), heads)
    query, key = graph.nodes("Split", joined, outputs=(True, True), axis=1, num_outputs=2)
    value = graph.split_heads(graph.node("Gather", value, slots, axis=0))
    read = graph.node("Reshape", graph.attend(query, key, value, bias), graph.sizes(-1, shape.width))
    return graph.node("Gather", read, places, axis=0)


def _encoder_outputs(graph: Graph, rows: Rows, slots: str, weights: Weights) -> None:
    """Give out what every step of the decoder reads: keys and values of each layer, and the copy head's keys."""
    shape = graph.shape
    size = shape.width
    for index in range(shape.decoder_layers):
        name = f"decoder.layers.{index}.cross_attention"
        for part, span in (("key", slice(size)), ("value", slice(size, None))):
            flat = graph.linear(rows, f"{name}.{part}", *key_or_value(weights, name, span))
            by_source = graph.split_heads(graph.node("Gather", flat, slots, axis=0))
            sizes = ("batch", shape.heads, "source", shape.head_size)
            graph.output(by_source, f"cross_{part}_{index}", TensorProto.FLOAT, sizes)
    if not shape.copies:
        return
    keys = graph.linear(rows, "copy_head.key", weights["copy_head.key.weight"], weights["copy_head.key.bias"])
    parts, size = _copy_parts(shape)
    keys = _in_parts(graph, graph.node("Gather", keys, slots, axis=0), parts, size)
    graph.output(keys, "copy_keys", TensorProto.FLOAT, ("batch", parts, "source", size))


def _copy_parts(shape: Shape) -> tuple[int, int]:
    """Return in how many parts of which size the copy head's products are made.

    The library cuts long products into blocks whose length depends on how many columns there are, so on the longest
    source of the batch; one of up to 128 numbers is never cut.
    """
    size = math.gcd(shape.d_model, 128)
    return shape.d_model // size, size


def _in_parts(graph: Graph, x: str, parts: int, size: int) -> str:
    """Return (batch, parts, length, size) of (batch, length, parts * size)."""
    return graph.node("Transpose", graph.node("Reshape", x, graph.sizes(0, 0, parts, size)), perm=[0, 2, 1, 3])


def decoder_graph(writer: WeightWriter, form: Form, shape: Shape, weights: Weights) -> onnx.ModelProto:
    """Return one pass of the decoder: some tokens after those cached in, the likeliest next tokens out.

    New tokens of all texts stand in one line, as the encoder's do, and each text may have any number of them. `slots`
    and `places` lay them out by text; `text_slots` says which row each position of each text holds, of those cached and
    the new ones behind them. `asked` names the tokens whose next one is wanted; `wanted` tokens get their score too.
    """
    graph = Graph(writer, form, shape)
    embedded = graph.input("embedded", TensorProto.FLOAT, ["tokens", shape.d_model])
    line = _Line(
        positions=graph.input("positions", TensorProto.INT64, ["tokens", 1]),
        slots=graph.input("slots", TensorProto.INT64, ["batch", "length"]),
        places=graph.input("places", TensorProto.INT64, ["tokens"]),
        text_slots=graph.input("text_slots", TensorProto.INT64, ["batch", "written"]),
        own_bias=graph.input("own_bias", TensorProto.FLOAT, ["batch", 1, "length", "written"]),
        bias=graph.input("bias", TensorProto.FLOAT, ["batch", 1, 1, "source"]),
    )
    x = scale_embedded(graph, embedded)
    if shape.positions == "table":
        x = add_positions(graph, x, "decoder", weights, graph.node("Squeeze", line.positions, graph.sizes(1)))
    if shape.positions == "relative":
        distances = text_distances(graph, line.positions, line.slots, line.own_bias, weights)
        line = replace(line, own_bias=graph.node("Add", line.own_bias, distances))
    if shape.embedding_norm:
        x = graph.norm(x, "decoder.embedding_norm", weights)
    x, normed = graph.begin(x, "decoder.layers.0.self_norm", weights)
    for index in range(shape.decoder_layers):
        name = f"decoder.layers.{index}"
        read = _self_attention(graph, normed, index, weights, line)
        change = graph.product(graph.rows(read), f"{name}.self.out", weights[f"{name}.self_attention.out.weight"])
        added = weights.get(f"{name}.self_attention.out.bias")
        x, normed = graph.add_norm(x, change, added, f"{name}.cross_norm", weights)
        read = _cross_attention(graph, normed, index, weights, line)
        change = graph.product(graph.rows(read), f"{name}.cross.out", weights[f"{name}.cross_attention.out.weight"])
        added = weights.get(f"{name}.cross_attention.out.bias")
        x, normed = graph.add_norm(x, change, added, f"{name}.feed_forward_norm", weights)
        change, added = graph.feed_forward(normed, f"{name}.feed_forward", weights)
        last = index + 1 == shape.decoder_layers
        following = "decoder.final_norm" if last else f"decoder.layers.{index + 1}.self_norm"
        x, normed = graph.add_norm(x, change, added, following, weights)
    states = graph.node("Gather", normed, graph.input("asked", TensorProto.INT64, ["asked"]), axis=0)
    generated = _generated(graph, graph.rows(states), weights)
    _choose(graph, _mixture(graph, normed, states, generated, weights, line) if shape.copies else generated)
    return graph.model("teo-decoder")


@dataclass(frozen=True, slots=True)
class _Line:
    """Where the decoder's new tokens stand, and what each may read."""

    positions: str
    slots: str
    places: str
    text_slots: str
    own_bias: str
    bias: str


def _self_attention(graph: Graph, normed: str, index: int, weights: Weights, line: _Line) -> str:
    """Return what each token reads of its text so far; its keys and values join those cached, in the text's order."""
    shape, rows = graph.shape, graph.rows(normed)
    heads = 2 * shape.heads
    name = f"decoder.layers.{index}.self_attention"
    both = graph.linear(rows, f"{name}.query_key", *query_key(weights, name, shape))
    if shape.positions == "rotary":
        both = graph.turn(graph.node("Unsqueeze", both, graph.sizes(1)), line.positions, heads)
        both = graph.node("Reshape", both, graph.sizes(-1, heads * shape.head_size))
    sizes = graph.sizes(shape.width, shape.width)
    query, key = graph.nodes("Split", both, sizes, outputs=(True, True), axis=1)
    value = graph.linear(rows, f"{name}.value", *key_or_value(weights, name, slice(shape.width, None)))
    cached = {"key": key, "value": value}
    for part, new in cached.items():
        past = graph.input(f"past_{part}_{index}", TensorProto.FLOAT, ["batch", "past", shape.width])
        pool = graph.node("Concat", graph.node("Reshape", past, graph.sizes(-1, shape.width)), new, axis=0)
        whole = graph.node("Gather", pool, line.text_slots, axis=0)
        graph.output(whole, f"present_{part}_{index}", TensorProto.FLOAT, ("batch", "written", shape.width))
        cached[part] = graph.split_heads(whole)
    return _attend(graph, query, cached["key"], cached["value"], line.own_bias, line)


def _cross_attention(graph: Graph, normed: str, index: int, weights: Weights, line: _Line) -> str:
    """Return what each token reads of its source."""
    shape = graph.shape
    name = f"decoder.layers.{index}.cross_attention"
    query = graph.linear(graph.rows(normed), f"{name}.query", *scaled_query(weights, name, shape))
    sizes: tuple[str | int, ...] = ("batch", shape.heads, "source", shape.head_size)
    key = graph.input(f"cross_key_{index}", TensorProto.FLOAT, sizes)
    value = graph.input(f"cross_value_{index}", TensorProto.FLOAT, sizes)
    return _attend(graph, query, key, value, line.bias, line)


def _attend(graph: Graph, query: str, key: str, value: str, bias: str, line: _Line) -> str:
    """Return what each token reads, its queries laid out by text for it."""
    shape = graph.shape
    by_text = graph.split_heads(graph.node("Gather", query, line.slots, axis=0))
    read = graph.node("Reshape", graph.attend(by_text, key, value, bias), graph.sizes(-1, shape.width))
    return graph.node("Gather", read, line.places, axis=0)


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


def _mixture(graph: Graph, normed: str, states: str, generated: str, weights: Weights, line: _Line) -> str:
    """Return p over the vocabulary: (1 - g) softmax + g * copied, the copied part added token by token."""
    shape = graph.shape
    scale_query = np.float32(shape.d_model**-0.5)
    weight, shift = weights["copy_head.query.weight"] * scale_query, weights["copy_head.query.bias"] * scale_query
    query = graph.linear(graph.rows(normed), "copy_head.query", weight, shift)
    parts, size = _copy_parts(shape)
    keys = graph.input("copy_keys", TensorProto.FLOAT, ["batch", parts, "source", size])
    by_text = _in_parts(graph, graph.node("Gather", query, line.slots, axis=0), parts, size)
    products = graph.node("FusedMatMul", by_text, keys, fused=True, transB=1)
    scores = line.bias
    for part in graph.nodes("Split", products, outputs=(True,) * parts, axis=1, num_outputs=parts):
        scores = graph.node("Add", scores, part)
    copied = graph.node("Softmax", scores, axis=-1)
    flat = graph.node("Concat", graph.sizes(-1), graph.node("Shape", line.bias, start=3), axis=0)
    asked_places = graph.input("asked_places", TensorProto.INT64, ["asked"])
    copied = graph.node("Gather", graph.node("Reshape", copied, flat), asked_places, axis=0)

    gate_weight = graph.constant("copy_head.gate", np.ascontiguousarray(weights["copy_head.gate.weight"].T))
    gate = graph.node("MatMul", states, gate_weight)
    gate = graph.node("Sigmoid", graph.node("Add", gate, graph.constant("gate:bias", weights["copy_head.gate.bias"])))
    kept = graph.node("Mul", generated, graph.node("Sub", graph.number(1), gate))
    ids = graph.input("source_ids", TensorProto.INT64, ["batch", "source"])
    ids = graph.node("Gather", ids, graph.input("asked_rows", TensorProto.INT64, ["asked"]), axis=0)
    return graph.node("ScatterElements", kept, ids, graph.node("Mul", copied, gate), axis=1, reduction="add")


def _choose(graph: Graph, probabilities: str) -> None:
    """Give out the likeliest tokens and the wanted ones with their probabilities.

    Logarithms are left to the caller: over a few numbers, their last bit depends on how many there are.
    """
    count = graph.input("count", TensorProto.INT64, [1])
    wanted = graph.input("wanted", TensorProto.INT64, ["asked", 1])
    values, ids = graph.nodes("TopK", probabilities, count, outputs=(True, True), axis=-1)
    graph.output(values, "probabilities", TensorProto.FLOAT, ("asked", "count"))
    graph.output(ids, "ids", TensorProto.INT64, ("asked", "count"))
    found = graph.node("GatherElements", probabilities, wanted, axis=1)
    graph.output(found, "wanted_probabilities", TensorProto.FLOAT, ("asked", 1))


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
