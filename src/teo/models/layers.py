"""The backbone's layers: pre-norm attention with rotary positions, feed-forward, and the copy head."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from teo.models.configuration import TeoConfig

Cached = tuple[Tensor, Tensor]
_THETA = 10_000.0
"""The base of the rotary positions."""


def rotary_table(length: int, head_size: int, device: torch.device) -> Tensor:
    """Return cosines and sines of the positions from 0, stacked: (2, length, head_size / 2)."""
    exponent = torch.arange(0, head_size, 2, device=device, dtype=torch.float32) / head_size
    angle = torch.arange(length, device=device, dtype=torch.float32)[:, None] * _THETA**-exponent
    return torch.stack((angle.cos(), angle.sin()))


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Return queries or keys (batch, heads, length, size) turned by their positions."""
    cosine, sine = table[0].to(x.dtype), table[1].to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Attention(nn.Module):
    """Multi-head attention; `keys_values` is projected apart so that it can be cached."""

    def __init__(self, config: TeoConfig) -> None:
        super().__init__()
        self.head_size = config.head_size
        self.dropout = config.dropout
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key_value = nn.Linear(config.d_model, 2 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)

    def split(self, x: Tensor) -> Tensor:
        """Return (batch, heads, length, size)."""
        return x.view(x.shape[0], x.shape[1], -1, self.head_size).transpose(1, 2)

    def keys_values(self, x: Tensor, table: Tensor | None = None) -> Cached:
        """Return the keys, turned by their positions if a table is given, and the values."""
        key, value = (self.split(part) for part in self.key_value(x).chunk(2, dim=-1))
        return (key if table is None else rotate(key, table)), value

    def forward(
        self, x: Tensor, keys_values: Cached, mask: Tensor | None, table: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Return what each position of `x` reads."""
        query = self.split(self.query(x))
        if table is not None:
            query = rotate(query, table)
        key, value = keys_values
        read = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0, is_causal=causal
        )
        return self.out(read.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two linear maps with a GELU between them."""

    def __init__(self, config: TeoConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the position-wise map of `x`."""
        mapped: Tensor = self.down(F.gelu(self.up(x)))
        return mapped


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each added to its normalised input's source (pre-norm)."""

    def __init__(self, config: TeoConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None, table: Tensor) -> Tensor:
        """Return the next layer's input."""
        normed = self.attention_norm(x)
        x = x + self.dropout(self.attention(normed, self.attention.keys_values(normed, table), mask, table))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the source, feed-forward."""

    def __init__(self, config: TeoConfig) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(config.d_model)
        self.self_attention = Attention(config)
        self.cross_norm = nn.LayerNorm(config.d_model)
        self.cross_attention = Attention(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        table: Tensor,
        source: Cached,
        source_mask: Tensor | None,
        own: Cached | None = None,
        own_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the next layer's input; `own` holds the keys and values of all positions so far, if cached."""
        normed = self.self_norm(x)
        own = self.self_attention.keys_values(normed, table) if own is None else own
        causal = own_mask is None and x.shape[1] > 1  # the first positions of a cache need it as a whole text does
        x = x + self.dropout(self.self_attention(normed, own, own_mask, table, causal))
        x = x + self.dropout(self.cross_attention(self.cross_norm(x), source, source_mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class CopyHead(nn.Module):
    """Attention over source positions and a gate: how much of the next token's probability is copied."""

    def __init__(self, config: TeoConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, config.d_model)
        self.gate = nn.Linear(config.d_model, 1)

    def forward(self, states: Tensor, keys: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log attention over source positions and the gate's logit, both in float32."""
        scores = (self.query(states) @ keys.transpose(1, 2)).float() * keys.shape[-1] ** -0.5
        scores = scores.masked_fill(~mask[:, None, :], torch.finfo(torch.float32).min)
        return scores.log_softmax(dim=-1), self.gate(states).squeeze(-1).float()
