"""Sampling from a decoder of Llama's form, thousands of texts at a time.

Every column of the batch is a stream: if a text has ended, the next prompt of the column starts, so no column waits
for another. All shapes are fixed, so a GPU replays one recorded step (a CUDA graph) without waiting for the host.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from teo_lab.teacher.notation import Marks


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How texts are drawn. The rewrite, which comes last, is always the likeliest one."""

    columns: int = 4096
    """Texts sampled at once."""
    length: int = 224
    """Tokens of a text, at most; a longer one is dropped."""
    temperature: float = 1.0
    """Of everything before the rewrite."""
    min_p: float = 0.02
    """Tokens that are less likely than this share of the likeliest are not drawn."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A finished text, the number of its prompt, and what the model thinks of the rewrite."""

    prompt: int
    ids: list[int]
    logprob: float
    """Sum over the rewrite's tokens and the end."""
    lowest: float
    """Of the least likely of them."""


class Streams:
    """The state of all columns and the step that moves them on."""

    def __init__(
        self, model: Any, marks: Marks, prompts: Sequence[Sequence[int]], settings: SamplingSettings, device: str
    ) -> None:
        config = model.config
        self.marks, self.settings, self.device = marks, settings, torch.device(device)
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.key_heads, self.query_heads = int(config.num_key_value_heads), int(config.num_attention_heads)
        self.size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self.epsilon = float(config.rms_norm_eps)
        self.state = {name: tensor.to(self.device, self.dtype) for name, tensor in model.state_dict().items()}
        self.layers = int(config.num_hidden_layers)
        self._cosine, self._sine = self._rotations(float(config.rope_parameters["rope_theta"]))
        columns, length = settings.columns, settings.length
        shape = (self.layers, columns, self.key_heads, length, self.size)
        self.keys = torch.zeros(shape, device=self.device, dtype=self.dtype)
        self.values = torch.zeros_like(self.keys)
        self.column = torch.arange(columns, device=self.device)
        self.slots = torch.arange(length, device=self.device)
        self.count = len(prompts)
        self.prompts = self._pad([*prompts, [marks.start, marks.end]])
        self.prompt = self.column.clone().clamp_(max=self.count)
        self.position = torch.zeros_like(self.column)
        self.token = self.prompts[self.prompt, 0]
        self.rewriting = torch.zeros(columns, dtype=torch.bool, device=self.device)
        self.logprob = torch.zeros(columns, device=self.device)

    def _pad(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        width = min(max(map(len, prompts)), self.settings.length)
        table = torch.full((len(prompts), width + 1), -1, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            cut = torch.tensor(prompt[:width])
            table[row, : len(cut)] = cut
        return table.to(self.device)

    def _rotations(self, theta: float) -> tuple[Tensor, Tensor]:
        powers = torch.arange(0, self.size, 2, device=self.device).float() / self.size
        angles = torch.outer(torch.arange(self.settings.length, device=self.device).float(), theta**-powers)
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    @torch.no_grad()
    def step(self) -> None:
        """Read the current token of every column and choose the next one."""
        logits = self._logits()
        likely = logits.max(dim=-1, keepdim=True)
        noise = -torch.log(torch.empty_like(logits).exponential_().clamp_min_(1e-20))
        allowed = logits >= likely.values + math.log(self.settings.min_p) * self.settings.temperature
        drawn = (logits / self.settings.temperature + noise).masked_fill_(~allowed, -torch.inf).argmax(dim=-1)
        chosen = torch.where(self.rewriting, likely.indices[:, 0], drawn)
        chance = logits.gather(1, chosen[:, None])[:, 0] - logits.logsumexp(dim=-1)
        ended = (self.token == self.marks.end) | (self.position == self.settings.length - 1)
        after = (self.position + 1).clamp_(max=self.prompts.shape[1] - 1)
        forced = self.prompts[self.prompt, after]
        following = torch.where(forced >= 0, forced, chosen)
        # What is not in place is lost when a recorded step is replayed.
        counts = self.rewriting & (forced < 0) & ~ended
        self.logprob.copy_(torch.where(counts, chance, torch.zeros_like(chance)))
        self.prompt.copy_(torch.where(ended, self.prompt + self.settings.columns, self.prompt).clamp_(max=self.count))
        self.position.copy_(torch.where(ended, torch.zeros_like(self.position), self.position + 1))
        self.token.copy_(torch.where(ended, self.prompts[self.prompt, 0], following))
        self.rewriting.copy_(~ended & (self.rewriting | (self.token == self.marks.rewrite)))

    def _logits(self) -> Tensor:
        table = self.state["model.embed_tokens.weight"]
        hidden = table[self.token]
        cosine, sine = self._cosine[self.position][:, None], self._sine[self.position][:, None]
        seen = (self.slots[None] <= self.position[:, None])[:, None, None]
        columns = len(self.column)
        for number in range(self.layers):
            name = f"model.layers.{number}"
            normed = self._norm(hidden, f"{name}.input_layernorm.weight")
            query = self._linear(normed, f"{name}.self_attn.q_proj.weight").view(columns, self.query_heads, self.size)
            key = self._linear(normed, f"{name}.self_attn.k_proj.weight").view(columns, self.key_heads, self.size)
            value = self._linear(normed, f"{name}.self_attn.v_proj.weight").view(columns, self.key_heads, self.size)
            self.keys[number, self.column, :, self.position] = _rotate(key, cosine, sine)
            self.values[number, self.column, :, self.position] = value
            query = _rotate(query, cosine, sine).view(columns, self.key_heads, -1, self.size)
            mixed = functional.scaled_dot_product_attention(query, self.keys[number], self.values[number], seen)
            hidden = hidden + self._linear(mixed.reshape(columns, -1), f"{name}.self_attn.o_proj.weight")
            normed = self._norm(hidden, f"{name}.post_attention_layernorm.weight")
            gate = functional.silu(self._linear(normed, f"{name}.mlp.gate_proj.weight"))
            inner = gate * self._linear(normed, f"{name}.mlp.up_proj.weight")
            hidden = hidden + self._linear(inner, f"{name}.mlp.down_proj.weight")
        head = self.state.get("lm_head.weight", table)
        logits = functional.linear(self._norm(hidden, "model.norm.weight"), head).float()
        logits[:, self.marks.start] = -torch.inf  # the start of a text comes from its prompt alone
        return logits

    def _linear(self, hidden: Tensor, name: str) -> Tensor:
        return functional.linear(hidden, self.state[name])

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        return functional.rms_norm(hidden, (hidden.shape[-1],), self.state[name], self.epsilon)

    def run(self, chunk: int = 256, seconds: float = math.inf) -> Iterator[Sampled]:
        """Yield the texts as they end, until every prompt is done or the time is up."""
        until = time.monotonic() + seconds
        step = self._recorded()
        shape = (chunk, self.settings.columns)
        tokens = torch.zeros(shape, dtype=torch.int32, device=self.device)
        chances = torch.zeros(shape, device=self.device)
        texts = _Texts(self.marks, self.settings.columns, self.count)
        ready: tuple[Tensor, Tensor] | None = None
        done = False
        while not done:
            for row in range(chunk):
                tokens[row].copy_(self.token)
                chances[row].copy_(self.logprob)
                step()
            if ready is not None:  # the GPU is busy with the steps above meanwhile
                yield from texts.cut(*ready)
            ready = tokens.to("cpu", copy=True), chances.to("cpu", copy=True)
            done = bool((self.prompt >= self.count).all()) or time.monotonic() > until
        if ready is not None:
            yield from texts.cut(*ready)

    def _recorded(self) -> Any:
        """Return the step; on a GPU as one recorded graph."""
        if self.device.type != "cuda":
            return self.step
        saved = [each.clone() for each in self._moving()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        for tensor, before in zip(self._moving(), saved, strict=True):
            tensor.copy_(before)
        return graph.replay

    def _moving(self) -> list[Tensor]:
        return [self.prompt, self.position, self.token, self.rewriting, self.logprob]


class _Texts:
    """The streams of all columns, cut into texts."""

    def __init__(self, marks: Marks, columns: int, count: int) -> None:
        self.marks, self.columns, self.count = marks, columns, count
        self.open: list[tuple[list[int], list[float]]] = [([], []) for _ in range(columns)]
        self.numbers = list(range(columns))

    def cut(self, tokens: Tensor, chances: Tensor) -> Iterator[Sampled]:
        """Yield the texts that end in this piece of the streams (steps by columns)."""
        for column, (ids, logs) in enumerate(zip(tokens.T.tolist(), chances.T.tolist(), strict=True)):
            yield from self._cut(column, ids, logs)

    def _cut(self, column: int, ids: Sequence[int], logs: Sequence[float]) -> Iterator[Sampled]:
        text, chances = self.open[column]
        for number, chance in zip(ids, logs, strict=True):
            if number == self.marks.start and text:  # the one before ran into the limit
                text, chances = [], []
                self.numbers[column] += self.columns
            text.append(number)
            chances.append(chance)
            if number == self.marks.end:
                if self.numbers[column] < self.count:
                    yield Sampled(self.numbers[column], text, sum(chances), min(chances))
                text, chances = [], []
                self.numbers[column] += self.columns
        self.open[column] = (text, chances)


def _rotate(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat([-second, first], dim=-1) * sine
