"""The judge of `judge.py`: a head over the backbone's states that scores a row's candidates, and how it is fitted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from teo.layouts import Marker
from teo.models.backbone import IGNORED
from teo.runtime.torch_codec import Codec
from teo.training.backbones import load_base
from teo.training.batches import budget_batches, pad
from teo.training.examples import PROMPTS

ROWS = {"decoder": 128, "encoder": 64}
"""Rows of an update, by what reads the candidates."""
TOKENS = 100_000
"""Tokens of an update at most."""
LANGUAGE_WEIGHT = 0.3
"""Weight of the likelihood of right candidates beside the choice among all."""
LEAST_SCORE = -20.0
"""Log-probabilities below it are all alike to the head."""
WARMUP, DECAY = 0.06, 0.01
HEAD_RATE, PRIOR_RATE = 5.0, 100.0
"""Learning rates against the backbone's: of the head, and of the two weights of the log-probabilities."""


@dataclass(frozen=True, slots=True)
class Judging:
    """How one judge is made."""

    start: str
    """The proposer whose weights it starts from; empty for the pretrained base."""
    halves: tuple[int, ...] = (0, 1)
    """The halves of the training rows that it learns from."""
    rate: float = 1e-4
    epochs: int = 2
    reads: str = "decoder"
    """What reads the candidates: the decoder, all of a row's after one encoding, or the encoder, each by itself."""
    scores: bool = True
    """Whether the head gets the log-probabilities of the candidates beside the states."""


@dataclass(frozen=True, slots=True)
class Item:
    """The ids of a row and its candidates, each candidate's log-probabilities, and which are right."""

    source: list[int]
    texts: list[list[int]]
    scores: list[list[float]]
    right: list[bool]
    prompt: int
    """Ids that each text starts with and that are not scored."""


class Judge(nn.Module):
    """The backbone with a head that scores candidates."""

    def __init__(self, backbone: Any, settings: Judging) -> None:
        super().__init__()
        self.backbone, self.settings = backbone, settings
        width = backbone.config.d_model
        self.pool, self.none = nn.Linear(width, 1), nn.Linear(width + 2, 1)
        self.body = nn.Sequential(nn.Linear(2 * width + 2, width), nn.GELU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)  # at first the log-probabilities alone decide
        self.prior = nn.Parameter(torch.full((2,), 0.5))

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (rows, 1 + candidates), "none of them" first, and the loss."""
        there, source = batch["there"], batch["source"]
        mask = source != self.backbone.config.pad_token_id
        if self.settings.reads == "encoder":  # (rows, candidates, tokens): dialogue and candidate
            mask[..., 0] = True  # where there is no candidate
            states = self.backbone.encoder(source.flatten(0, 1), mask.flatten(0, 1)).last_hidden_state
            weights = self.pool(states)[..., 0].masked_fill(~mask.flatten(0, 1), -1e4).softmax(-1)
            pooled = (weights[:, None] @ states).view(*there.shape, -1)
            last = states[:, 0].view(*there.shape, -1)
            dialogue, language = (last * there[..., None]).sum(1) / there.sum(1, keepdim=True), source.new_zeros(())
        else:
            encoded = self.backbone.encoder(source, mask).last_hidden_state
            states, segment = self._decode(batch, encoded, mask), batch["segment"]
            own = segment[:, None] == torch.arange(1, there.shape[1] + 1, device=segment.device)[:, None]
            pooled = self.pool(states)[..., 0][:, None].masked_fill(~own, -1e4).softmax(-1) @ states
            last = states.gather(1, batch["last"][..., None].expand(-1, -1, states.shape[-1]))
            dialogue = (encoded * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            language = -self.backbone.label_scores(states, encoded, source, mask, batch["labels"])
            language = language.sum() / (batch["labels"] != IGNORED).sum().clamp(min=1)
        known = batch["scores"] if self.settings.scores else torch.zeros_like(batch["scores"])
        logits = self.head(self.body(torch.cat((last, pooled, known / 10), -1)))[..., 0].float()
        logits = logits + (known * self.prior).sum(-1)  # no matrix product, which half precision would round
        best = known.masked_fill(~there[..., None], LEAST_SCORE).amax(1)
        none = self.none(torch.cat((dialogue, best / 10), -1)).float()
        scores = torch.cat((none, logits.masked_fill(~there, -1e4)), 1).log_softmax(-1)
        right = torch.cat((~batch["right"].any(1, keepdim=True), batch["right"]), 1)
        listwise = -scores.masked_fill(~right, -1e9).logsumexp(-1).mean()
        return scores, listwise + LANGUAGE_WEIGHT * language

    def _decode(self, batch: dict[str, Tensor], encoded: Tensor, mask: Tensor) -> Tensor:
        """Return the decoder's states of a row's candidates side by side, none of which sees another."""
        segment = batch["segment"]
        causal = torch.ones(segment.shape[1], segment.shape[1], dtype=torch.bool, device=segment.device).tril()
        own = (segment[:, None, :, None] == segment[:, None, None, :]) & causal
        return self.backbone.decoder(batch["texts"], encoded, mask, own)  # type: ignore[no-any-return]


def read_items(records: Sequence[dict[str, Any]], codec: Codec, reads: str) -> list[Item]:
    """Return the ids of rows with candidates, as the proposers wrote them."""
    start = codec.decoder_start(PROMPTS["direct"])
    items = []
    for record in records:
        candidates = record["candidates"]
        if reads == "encoder":
            texts = [codec.encode((candidate["text"], Marker.SEP)) for candidate in candidates]
        else:
            texts = [[*start, *codec.encode_target((candidate["text"],))] for candidate in candidates]
        scores = [[max(candidate[role], LEAST_SCORE) for role in ("fast", "direct")] for candidate in candidates]
        right = [candidate["right"] for candidate in candidates]
        items.append(Item(record["source"], texts, scores, right, len(start)))
    return items


def batches(items: Sequence[Item], reads: str, rng: random.Random) -> list[list[int]]:
    """Return the numbers of the items in batches of like size."""
    texts = [sum(map(len, item.texts)) for item in items]
    times = [len(item.texts) if reads == "encoder" else 1 for item in items]
    sizes = [(len(item.source) * n, text) for item, n, text in zip(items, times, texts, strict=True)]
    return budget_batches(sizes, ROWS[reads], TOKENS, rng)


def collate(items: Sequence[Item], reads: str, device: torch.device) -> dict[str, Tensor]:
    """Return a batch: sources, the texts of each row one behind the other, and what is known of the candidates."""
    width = max(len(item.texts) for item in items)
    there = pad([[True] * len(item.texts) for item in items], False)
    right = pad([item.right for item in items], False)
    scores = torch.tensor([item.scores + [[0.0, 0.0]] * (width - len(item.texts)) for item in items])
    batch = {"there": there, "right": right, "scores": scores}
    if reads == "encoder":
        rows = [[[*item.source, *text] for text in item.texts] + [[]] * (width - len(item.texts)) for item in items]
        batch["source"] = _fill([ids for row in rows for ids in row]).view(len(items), width, -1)
    else:
        batch["source"] = _fill([item.source for item in items])
        batch["texts"] = _fill([[number for text in item.texts for number in text] for item in items])
        batch["segment"] = _fill([[n for n, text in enumerate(item.texts, 1) for _ in text] for item in items])
        batch["labels"] = _fill([_labels(item) for item in items], IGNORED)
        ends = [[sum(map(len, item.texts[: n + 1])) - 1 for n in range(len(item.texts))] for item in items]
        batch["last"] = pad(ends, 0)
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def _fill(rows: Sequence[Sequence[int]], value: int = 0) -> Tensor:
    """Return the rows as one tensor of a width that fast kernels take."""
    filled = pad(rows, value)
    return nn.functional.pad(filled, (0, -filled.shape[1] % 16), value=value)


def _labels(item: Item) -> list[int]:
    """Return the next token at each position of the right candidates; nothing is learned elsewhere."""
    labels: list[int] = []
    for text, right in zip(item.texts, item.right, strict=True):
        following = [*text[item.prompt :], IGNORED] if right else []
        labels += [IGNORED] * (len(text) - len(following)) + following
    return labels


def load_judge(settings: Judging, start: str) -> tuple[Judge, Codec]:
    """Return a judge that is not fitted yet, on the weights of a folder, and the codec of these."""
    backbone, codec = load_base(start)
    backbone.set_dropout(0.1)
    return Judge(backbone, settings), codec


def fit(judge: Judge, items: Sequence[Item], device: torch.device, seed: int = 0) -> Iterator[float]:
    """Fit a judge to rows, and yield the mean loss of each epoch after it."""
    settings = judge.settings
    judge.to(device)
    head = (judge.pool, judge.none, judge.body, judge.head)
    groups = [
        {"params": list(judge.backbone.parameters()), "share": 1.0},
        {"params": [weight for part in head for weight in part.parameters()], "share": HEAD_RATE},
        {"params": [judge.prior], "share": PRIOR_RATE},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=DECAY, fused=device.type == "cuda")
    orders = [batches(items, settings.reads, random.Random(f"{seed}/{epoch}")) for epoch in range(settings.epochs)]
    total, step = sum(map(len, orders)), 0
    for order in orders:
        judge.train()
        losses = []
        for numbers in order:
            rate = settings.rate * min((step + 1) / max(1, WARMUP * total), 1.0) * (1 - step / total)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
            with _half(device):
                _, loss = judge(collate([items[k] for k in numbers], settings.reads, device))
            loss.backward()
            nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            step += 1
        yield float(torch.stack(losses).mean())


def probabilities(judge: Judge, items: Sequence[Item], device: torch.device) -> list[list[float]]:
    """Return for each row the probability of each candidate; what is missing to 1 is "none of them"."""
    judge.eval()
    found: list[list[float]] = [[] for _ in items]
    for numbers in batches(items, judge.settings.reads, random.Random(0)):
        with torch.no_grad(), _half(device):
            scores, _ = judge(collate([items[k] for k in numbers], judge.settings.reads, device))
        for k, row in zip(numbers, scores.exp().tolist(), strict=True):
            found[k] = [round(value, 6) for value in row[1 : len(items[k].texts) + 1]]
    return found


def _half(device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")
