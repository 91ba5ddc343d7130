"""Graph: what an exported backbone's graphs are built from, node by node.

They are written down rather than traced from torch, so that the code shows exactly what runs, no exporter's
version changes it, and one table of bytes serves as embedding and as output projection.

int8: weights have one scale per output channel, activations one per row (a token's vector), found as it comes.
Sums of products are integers, hence exact: a row's result does not depend on the rows beside it. A scale per
tensor, which tools make by default, would let the neighbours in a batch change the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from teo.models.storage import quantise
from teo.runtime.onnx_files import POSITIONS
from teo.runtime.onnx_weights import Array, WeightWriter

Form = Literal["int8", "none"]
Weights = Mapping[str, Array]
Activation = Literal["gelu", "gelu-tanh", "relu", "silu"]

_OPSET, _IR = 20, 10
_FUSED = "com.microsoft"
_INLINE_BYTES = 1024
_THETA = 10_000.0
"""The base of the rotary positions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's sizes and kinds of layers; the defaults are those of the project's own backbone."""

    d_model: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    head_size: int
    norm: Literal["layer", "rms"] = "layer"
    epsilon: float = 1e-5
    post_norm: bool = False
    """Normalise what a layer's parts add up to (BART, Marian), not what they read."""
    embedding_norm: bool = True
    """A norm of its own between the embedding and the first layer's."""
    embedding_scale: float = 1.0
    activation: Activation = "gelu"
    gated: bool = False
    """A third linear map, after the activation, gates what the first gives."""
    positions: Literal["rotary", "table", "relative"] = "rotary"
    query_scale: float | None = None
    """What queries are multiplied by; None: one over the root of the head's size."""
    copies: bool = True
    """Turn embedding and copy head."""

    @property
    def width(self) -> int:
        """Numbers in a row of queries, keys or values, all heads together."""
        return self.heads * self.head_size


class Graph:
    """A graph under construction: nodes in order, constants in the weight files."""

    def __init__(self, writer: WeightWriter, form: Form, shape: Shape) -> None:
        self.writer, self.form, self.shape = writer, form, shape
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: int, sizes: Sequence[str | int]) -> str:
        """Return the name of a new input."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, sizes))
        return name

    def output(self, value: str, name: str, kind: int, sizes: Sequence[str | int]) -> None:
        """Make a value an output."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, sizes))

    def constant(self, name: str, tensor: Array) -> str:
        """Return the name of a constant; large ones lie in the weight files, once for both graphs."""
        if name not in self._constants:
            if name in self.writer.stored:
                self._constants[name] = self.writer.stored[name]
            elif tensor.nbytes <= _INLINE_BYTES:
                self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(tensor), name)
            else:
                written = self.writer.write(name, tensor)
                stored = TensorProto(name=name, data_location=TensorProto.EXTERNAL, dims=tensor.shape)
                stored.data_type = helper.np_dtype_to_tensor_dtype(tensor.dtype)
                details = {"location": written.file, "offset": written.offset, "length": tensor.nbytes}
                for key, value in details.items():
                    stored.external_data.add(key=key, value=str(value))
                self._constants[name] = stored
        return name

    def number(self, value: float) -> str:
        """Return the name of a single float."""
        return self.constant(f"number:{value}", np.array(value, dtype=np.float32))

    def sizes(self, *values: int) -> str:
        """Return the name of a list of integers."""
        return self.constant("sizes:" + ",".join(map(str, values)), np.array(values, dtype=np.int64))

    def node(self, op: str, *inputs: str, fused: bool = False, **settings: Any) -> str:
        """Return the only output of a new node."""
        return self.nodes(op, *inputs, outputs=(True,), fused=fused, **settings)[0]

    def nodes(
        self, op: str, *inputs: str, outputs: Sequence[bool], fused: bool = False, **settings: Any
    ) -> tuple[str, ...]:
        """Return the outputs of a new node; those marked false are not needed and are empty names."""
        start = f"{op}_{len(self._nodes)}"
        names = tuple(f"{start}_{k}" if wanted else "" for k, wanted in enumerate(outputs))
        self._nodes.append(
            helper.make_node(op, list(inputs), list(names), name=start, domain=_FUSED if fused else "", **settings)
        )
        return names

    def model(self, name: str) -> Any:
        """Return the finished model."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=list(self._constants.values())
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="teo")

    def rows(self, x: str) -> Rows:
        """Return activations ready to be multiplied: as they are, or in int8 with a scale per row."""
        if self.form == "none":
            return Rows(x, "")
        # The largest absolute value, found without writing the absolute values down.
        most, least = (self.node(f"Reduce{end}", x, self.sizes(-1), keepdims=1) for end in ("Max", "Min"))
        largest = self.node("Max", most, self.node("Neg", least), self.number(1e-8))
        scaled = self.node("Mul", x, self.node("Div", self.number(127), largest))
        middle = self.constant("middle", np.array(128, dtype=np.uint8))
        whole = self.node("QuantizeLinear", scaled, self.number(1), middle)
        return Rows(whole, self.node("Div", largest, self.number(127)))

    def product(self, rows: Rows, name: str, weight: Array) -> str:
        """Return activations times a weight (outputs x inputs), its bias not yet added."""
        if self.form == "none":
            return self.node("MatMul", rows.values, self.constant(name, np.ascontiguousarray(weight.T)))
        whole, scale = quantise(weight)
        return self.int8_product(
            rows, self.constant(name, np.ascontiguousarray(whole.T)), self.constant(f"{name}:scale", scale)
        )

    def int8_product(self, rows: Rows, weight: str, scale: str) -> str:
        """Return the int8 product, put back to scale by column and by row."""
        middle, unit = self.constant("middle", np.array(128, dtype=np.uint8)), self.number(1)
        summed = self.node("MatMulIntegerToFloat", rows.values, weight, unit, scale, middle, fused=True)
        return self.node("Mul", summed, rows.scale)

    def linear(self, rows: Rows, name: str, weight: Array, bias: Array | None) -> str:
        """Return a linear map's output."""
        return self._add(self.product(rows, name, weight), f"{name}:bias", bias)

    def _add(self, x: str, name: str, bias: Array | None) -> str:
        return x if bias is None else self.node("Add", x, self.constant(name, bias))

    def norm(self, x: str, name: str, weights: Weights) -> str:
        """Return the normalised rows."""
        gain = self.constant(f"{name}.weight", weights[f"{name}.weight"])
        if self.shape.norm == "rms":  # ONNX Runtime's own, in the plain domain; the standard has one only later
            return self.node("SimplifiedLayerNormalization", x, gain, axis=-1, epsilon=self.shape.epsilon, stash_type=1)
        shift = self.constant(f"{name}.bias", weights[f"{name}.bias"])
        return self.node("LayerNormalization", x, gain, shift, axis=-1, epsilon=self.shape.epsilon)

    def add_norm(self, x: str, change: str, bias: Array | None, norm: str, weights: Weights) -> tuple[str, str]:
        """Return what x + change + bias is to the next layers: what they add to, and what they read."""
        return self.begin(self.node("Add", x, self._add(change, f"{norm}:added", bias)), norm, weights)

    def begin(self, x: str, norm: str, weights: Weights) -> tuple[str, str]:
        """Return what layers add to and what they read: x and x normalised, or that twice; a norm may be absent."""
        normed = self.norm(x, norm, weights) if f"{norm}.weight" in weights else x
        return (normed if self.shape.post_norm else x), normed

    def feed_forward(self, normed: str, name: str, weights: Weights) -> tuple[str, Array | None]:
        """Return the position-wise map without its last bias, and that bias."""
        rows = self.rows(normed)
        first = "gate" if self.shape.gated else "up"
        active = self._active(rows, f"{name}.{first}", weights)
        if self.shape.gated:
            widened = self.linear(rows, f"{name}.up", weights[f"{name}.up.weight"], weights.get(f"{name}.up.bias"))
            active = self.node("Mul", active, widened)
        down = self.product(self.rows(active), f"{name}.down", weights[f"{name}.down.weight"])
        return down, weights.get(f"{name}.down.bias")

    def _active(self, rows: Rows, name: str, weights: Weights) -> str:
        """Return the activation of a linear map's output."""
        kind, bias = self.shape.activation, weights.get(f"{name}.bias")
        widened = self._add(self.product(rows, name, weights[f"{name}.weight"]), f"{name}:bias", bias)
        if kind == "silu":
            return self.node("QuickGelu", widened, fused=True, alpha=1.0)  # x * sigmoid(x)
        if kind == "gelu-tanh":
            return self.node("Gelu", widened, approximate="tanh")
        return self.node("Relu" if kind == "relu" else "Gelu", widened)

    def turn(self, x: str, positions: str, heads: int) -> str:
        """Return queries or keys (batch, length, heads * size) turned by their positions."""
        cosine, sine = rotary_tables(self.shape)
        tables = self.constant("cosine", cosine), self.constant("sine", sine)
        return self.node("RotaryEmbedding", x, positions, *tables, fused=True, num_heads=heads)

    def split_heads(self, x: str, heads: int = 0) -> str:
        """Return (batch, heads, length, size); 0: as many heads as the model has."""
        apart = self.node("Reshape", x, self.sizes(0, 0, heads or self.shape.heads, self.shape.head_size))
        return self.node("Transpose", apart, perm=[0, 2, 1, 3])

    def attend(self, query: str, key: str, value: str, bias: str) -> str:
        """Return what each position reads, heads joined: (batch, length, heads * size); queries are scaled already."""
        scores = self.node("FusedMatMul", query, key, fused=True, transB=1)
        read = self.node("MatMul", self.node("Softmax", self.node("Add", scores, bias), axis=-1), value)
        return self.node("Reshape", self.node("Transpose", read, perm=[0, 2, 1, 3]), self.sizes(0, 0, self.shape.width))


@dataclass(frozen=True, slots=True)
class Rows:
    """Activations and, if they are int8, the scale of each row."""

    values: str
    scale: str


def rotary_tables(shape: Shape) -> tuple[Array, Array]:
    """Return cosines and sines by position and half of a head's dimensions."""
    exponent = np.arange(0, shape.head_size, 2, dtype=np.float32) / np.float32(shape.head_size)
    speed = np.float32(_THETA) ** -exponent
    angle = np.arange(POSITIONS, dtype=np.float32)[:, None] * speed
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def query_key(weights: Weights, name: str, shape: Shape) -> tuple[Array, Array | None]:
    """Return weight and bias of queries, scaled for their dot products, and keys in one."""
    query, shift = scaled_query(weights, name, shape)
    key, bias = key_or_value(weights, name, slice(shape.width))
    both = None if shift is None or bias is None else np.concatenate([shift, bias])
    return np.concatenate([query, key]), both


def scaled_query(weights: Weights, name: str, shape: Shape) -> tuple[Array, Array | None]:
    """Return weight and bias of queries, scaled for their dot products."""
    scale = np.float32(shape.head_size**-0.5 if shape.query_scale is None else shape.query_scale)
    bias = weights.get(f"{name}.query.bias")
    return weights[f"{name}.query.weight"] * scale, None if bias is None else bias * scale


def key_or_value(weights: Weights, name: str, span: slice) -> tuple[Array, Array | None]:
    """Return weight and bias of the keys or of the values: a span of what projects both."""
    bias = weights.get(f"{name}.key_value.bias")
    return weights[f"{name}.key_value.weight"][span], None if bias is None else bias[span]
