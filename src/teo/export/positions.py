"""Where a token stands, in graphs: tables of vectors by position (BART, Marian), or biases by distance (T5)."""

from __future__ import annotations

import math

import numpy as np

from teo.export.graph import Graph, Weights
from teo.runtime.onnx_weights import Array


def scale_embedded(graph: Graph, embedded: str) -> str:
    """Return the tokens' vectors as the first layer reads them."""
    scale = graph.shape.embedding_scale
    return embedded if scale == 1 else graph.node("Mul", embedded, graph.number(scale))


def add_positions(graph: Graph, x: str, side: str, weights: Weights, numbers: str) -> str:
    """Return tokens' vectors with those of their positions added; `side` is encoder or decoder."""
    table = weights[f"{side}.positions.weight"]
    found = graph.node("Gather", graph.constant(f"{side}.positions", table), numbers, axis=0)
    return graph.node("Add", x, found)


def source_distances(graph: Graph, slots: str, weights: Weights) -> str:
    """Return what the distances between the positions of a source add to its attention: (1, heads, source, source)."""
    positions = _range(graph, graph.node("Shape", slots, start=1, end=2))
    return _by_distance(graph, "encoder", graph.node("Unsqueeze", positions, graph.sizes(0, 2)), positions, weights)


def text_distances(graph: Graph, positions: str, slots: str, own_bias: str, weights: Weights) -> str:
    """Return what distances to the text so far add to the decoder's attention: (batch, heads, length, written)."""
    queries = graph.node("Gather", positions, slots, axis=0)
    written = _range(graph, graph.node("Shape", own_bias, start=3, end=4))
    return _by_distance(graph, "decoder", queries, written, weights)


def _by_distance(graph: Graph, side: str, queries: str, keys: str, weights: Weights) -> str:
    """Return the biases by distance of queries (batch, length, 1) to keys (written)."""
    table = weights[f"{side}.distances.weight"]
    far = table.shape[0] // 2
    distance = graph.node("Sub", keys, queries)
    least, most = (graph.constant(f"distance:{end}", np.array(end, dtype=np.int64)) for end in (-far, far))
    row = graph.node("Add", graph.node("Clip", distance, least, most), most)
    found = graph.node("Gather", graph.constant(f"{side}.distances", table), row, axis=0)
    return graph.node("Transpose", found, perm=[0, 3, 1, 2])


def _range(graph: Graph, end: str) -> str:
    """Return the integers from 0 up to an end, given as a list of one."""
    zero, one = (graph.constant(name, np.array(k, dtype=np.int64)) for k, name in enumerate(("zero", "one")))
    return graph.node("Range", zero, graph.node("Squeeze", end), one)


def distance_table(buckets: Array, *, far: int, both_sides: bool) -> Array:
    """Return T5's bias of each head by distance, key minus query from -far to far, of its biases by bucket.

    Half of a side's buckets are for one distance each, the others grow by logarithms up to `far`; beyond it all
    distances share the last. A decoder reads no later positions: all of its buckets are for earlier ones.
    """
    import torch

    count = len(buckets) // 2 if both_sides else len(buckets)
    distance = torch.arange(-far, far + 1)
    size = distance.abs() if both_sides else (-distance).clamp(min=0)
    exact = count // 2
    # In float32, as the model computes it: at the borders between buckets the last bit decides.
    grown = exact + (torch.log(size.float() / exact) / math.log(far / exact) * (count - exact)).long()
    bucket = torch.where(size < exact, size, grown.clamp(max=count - 1))
    if both_sides:
        bucket = bucket + (distance > 0) * count
    return np.ascontiguousarray(buckets[bucket.numpy()])
