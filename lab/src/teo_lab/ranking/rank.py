"""rank(folder, rows): a trained model and rows that it has not seen -> the same model, surer of right rewrites.

Round by round the model draws rewrites of some rows, as it would write them. Those that say what the reference says
are right, others wrong. The loss is the usual one of the references, and beside it the share of the candidates'
probability that the wrong ones have: minimum risk training, over the model's own candidates.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from teo.data.row import Row
from teo.errors import ConfigError, ModelError
from teo.files import write_json
from teo.layouts import split_at_separator, text_of
from teo.loading import ModelFolder
from teo.models import TeoForConditionalGeneration
from teo.models.backbone import IGNORED
from teo.runtime.torch_codec import Codec
from teo.runtime.torch_generator import choose_device
from teo.training.averaging import RunningAverage
from teo.training.backbones import load_base
from teo.training.batches import budget_batches
from teo.training.dataset import ExampleDataset
from teo.training.examples import ExampleMaker
from teo.training.forked import map_slices
from teo.training.loop import LoopSettings, make_optimizer, uses_bf16
from teo.training.losses import score_packed
from teo.training.packing import PackedExample, Segment, collate_rounded, pad, round_up
from teo.training.saving import disk_errors, whole_folder
from teo_lab.ranking.labels import label
from teo_lab.ranking.sample import draw_texts

ROLES = ("fused", "direct", "fast")
RANKED = ("direct", "fused")
"""The roles whose texts are drawn."""
DRAWN_ROWS = {"cpu": 8, "cuda": 512}
"""Rows whose texts are drawn at once."""
REFERENCE, PADDING = 0, -1
"""Of a text in a batch: not ranked but learned, and none at all."""

logger = logging.getLogger(__name__)
Round = dict[str, float]


@dataclass(frozen=True, slots=True)
class RankSettings:
    """How a model learns to rank."""

    minutes: float = 5.0
    """The learning rate reaches zero after this time."""
    rounds: int = 0
    """If above 0, it reaches zero after so many rounds, even if there is time left."""
    learning_rate: float = 1e-4
    """Peak learning rate of AdamW."""
    warmup: int = 30
    """Updates until the peak."""
    weight: float = 0.5
    """Weight of the ranking loss against the usual one; 0 learns the references alone."""
    samples: int = 6
    """Texts to draw for each row and ranked role."""
    temperature: float = 1.2
    """Above 1, less likely texts are drawn more often."""
    round_rows: int = 8192
    """Rows of a round: drawn, labelled and learned once."""
    batch_tokens: int = 24576
    """Padded tokens of a batch."""
    dropout: float = 0.1
    """Dropout of every layer while learning."""
    ema: float = 0.99
    """Decay of the running average of the weights that is kept."""
    source_limit: int = 256
    target_limit: int = 96
    workers: int = 0
    """Processes that encode the rows; 0: none."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a row teaches: its references, and rewrites of the ranked roles."""

    example: PackedExample
    group: list[int]
    """Of each text: REFERENCE, or the number of its ranked role from 1 on."""
    right: list[bool]

    @property
    def size(self) -> tuple[int, int]:
        """Padded tokens of the source and of the texts."""
        target = sum(len(text.ids) - 1 for text in self.example.segments)
        return round_up(len(self.example.source)), round_up(target)


def rank(folder: Path, rows: Sequence[Row], out: Path, settings: RankSettings, device: str = "auto") -> list[Round]:
    """Write the model of a folder after it has learned to rank, and return what was seen in each round."""
    described = ModelFolder.load(folder)
    homes = {described.roles[role].folder for role in ROLES if role in described.roles}
    if len(homes) != 1 or not set(ROLES) <= described.roles.keys():
        raise ModelError(f"{folder}: expected {', '.join(ROLES)} in shared weights, found {', '.join(described.roles)}")
    home = homes.pop()
    model, codec = load_base(str(folder / home))
    if not isinstance(model, TeoForConditionalGeneration):
        raise ModelError(f"{folder}: expected our own backbone (model type teo), found {model.config.model_type}")
    with disk_errors(out), whole_folder(out, folder) as written:  # refuses a folder before the time is spent
        history = Ranking(codec, rows, settings).fit(model, choose_device(device))
        model.save_pretrained(written / home)
        codec.tokenizer.save_pretrained(written / home)
        write_json(written / home / "ranking.json", {"rounds": history})
        described.save(written)
    return history


class Ranking:
    """Rows made ready once, and the model that learns from them."""

    def __init__(self, codec: Codec, rows: Sequence[Row], settings: RankSettings) -> None:
        self.codec, self.settings = codec, settings
        makers = [ExampleMaker(role, shared=True, layout=codec.layout) for role in ROLES]
        self.data = ExampleDataset(
            rows,
            makers,
            codec,
            source_limit=settings.source_limit,
            target_limit=settings.target_limit,
            workers=settings.workers,
        )
        usable = sorted({row for _, row, _ in self.data.items})

        def encode(part: range) -> list[tuple[list[int], dict[str, Segment]]]:
            return [self._encode(usable[k]) for k in part]

        self.encoded = dict(zip(usable, map_slices(encode, len(usable), settings.workers), strict=True))
        """Of each row: its source, and the references of all roles."""
        self.starts = {role: codec.decoder_start(makers[ROLES.index(role)].prompt) for role in RANKED}

    def fit(self, model: TeoForConditionalGeneration, device: str) -> list[Round]:
        """Let a model learn until the time is over; return what was seen in each round."""
        settings = self.settings
        self.model, self.device = model.to(device), torch.device(device)
        self.half = uses_bf16(True, self.device.type)
        model.set_dropout(settings.dropout)
        self.optimizer = make_optimizer(model, LoopSettings(), self.device)
        self.average, self.step = RunningAverage(model, settings.ema), 0
        torch.manual_seed(settings.seed)
        rng, began = random.Random(f"rank/{settings.seed}"), time.monotonic()
        history: list[Round] = []
        for number, numbers in enumerate(self._rounds(rng)):
            if self._left(began, number) <= 0:
                break
            model.eval()
            items = self.draw(numbers)
            model.train()
            losses = self._learn(make_batches(items, settings.batch_tokens, rng), began, number)
            if losses:
                usual, ranked = torch.stack(losses).mean(0).tolist()
                history.append({"step": self.step, "loss": usual, "wrong": ranked, **count(items)})
                history[-1]["seconds"] = round(time.monotonic() - began, 1)
                logger.info("%s", history[-1])
        if not history:
            raise ConfigError(
                f"minutes: {settings.minutes} are over before {len(numbers)} rows are drawn; expected more time, or "
                "fewer rows in a round"
            )
        self.average.apply()
        model.eval()
        return history

    def draw(self, numbers: Sequence[int]) -> list[Candidates]:
        """Return the candidates of rows, drawn from the model as it is."""
        found: list[Candidates] = []
        order = sorted(numbers, key=lambda number: len(self.encoded[number][0]))
        size = DRAWN_ROWS[self.device.type]
        for first in range(0, len(order), size):
            part = order[first : first + size]
            sources = pad([self.encoded[number][0] for number in part], self.codec.pad_id).to(self.device)
            drawn = {role: self._draw(sources, role) for role in RANKED}
            found += [self.label(n, {role: texts[k] for role, texts in drawn.items()}) for k, n in enumerate(part)]
        return found

    def label(self, number: int, drawn: dict[str, set[tuple[int, ...]]]) -> Candidates:
        """Return what a row teaches with these texts; a role of which none is clearly wrong is not ranked."""
        row, (source, references) = self.data.rows[number], self.encoded[number]
        texts, group, right = list(references.values()), [REFERENCE] * len(references), [True] * len(references)
        for place, role in enumerate(RANKED, 1):
            start = self.starts[role]
            reference = tuple(references[role].ids[len(start) :])
            known = {ids: self._says_the_same(row, role, ids) for ids in sorted(drawn[role] - {reference})}
            if False in known.values():
                chosen = {reference: True, **{ids: verdict for ids, verdict in known.items() if verdict is not None}}
                texts += [Segment([*start, *ids], len(start)) for ids in chosen]
                group += [place] * len(chosen)
                right += chosen.values()
        return Candidates(PackedExample(source, texts), group, right)

    def _encode(self, number: int) -> tuple[list[int], dict[str, Segment]]:
        row, script = self.data.rows[number], self.data.scripts[number]
        examples = {maker.role: maker.example(row, script) for maker in self.data.makers}
        source = self.data.encode_source(examples[ROLES[0]])
        return source, {role: self.data.encode_text(example) for role, example in examples.items()}

    def _rounds(self, rng: random.Random) -> Iterator[list[int]]:
        """Yield the rows of each round, without end; all rows come before one comes again."""
        numbers, size = list(self.encoded), self.settings.round_rows
        while True:
            rng.shuffle(numbers)
            yield from (numbers[first : first + size] for first in range(0, len(numbers), size))

    def _draw(self, sources: Tensor, role: str) -> list[set[tuple[int, ...]]]:
        settings = self.settings
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.half):
            return draw_texts(
                self.model,
                sources,
                self.starts[role],
                settings.samples,
                temperature=settings.temperature,
                limit=settings.target_limit,
            )

    def _says_the_same(self, row: Row, role: str, ids: Sequence[int]) -> bool | None:
        pieces = self.codec.decode(ids)
        return label(row, text_of(split_at_separator(pieces)[1] if role == "fused" else pieces))

    def _left(self, began: float, rounds: float) -> float:
        """Return the share of the run that is left, by time and by rounds."""
        settings = self.settings
        left = 1 - (time.monotonic() - began) / (60 * settings.minutes)
        return min(left, 1 - rounds / settings.rounds) if settings.rounds else left

    def _learn(self, batches: Sequence[Sequence[Candidates]], began: float, number: int) -> list[Tensor]:
        """Make an update for each batch of a round until the time is over; return both losses of each."""
        settings, losses = self.settings, []
        for place, items in enumerate(batches):
            left = self._left(began, number + place / len(batches))
            if left <= 0:
                break
            for group in self.optimizer.param_groups:
                group["lr"] = settings.learning_rate * min(1.0, (self.step + 1) / settings.warmup) * left
            losses.append(self._update(items))
            self.average.update(self.step)
            self.step += 1
        return losses

    def _update(self, items: Sequence[Candidates]) -> Tensor:
        batch = {name: value.to(self.device) for name, value in collate_rounded([i.example for i in items]).items()}
        width = max(len(item.group) for item in items)
        group = [item.group + [PADDING] * (width - len(item.group)) for item in items]
        right = [item.right + [False] * (width - len(item.right)) for item in items]
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.half):
            scores, _, _ = score_packed(self.model, batch)
        usual, ranked = losses_of(
            scores, batch, torch.tensor(group, device=self.device), torch.tensor(right, device=self.device)
        )
        (usual + self.settings.weight * ranked).backward()
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack([usual, ranked]).detach()


def make_batches(items: Sequence[Candidates], tokens: int, rng: random.Random) -> list[list[Candidates]]:
    """Return items of like size together, in random order."""
    batches = budget_batches([item.size for item in items], len(items), tokens, rng)
    return [[items[number] for number in batch] for batch in batches]


def losses_of(scores: Tensor, batch: dict[str, Tensor], group: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean loss of the references' tokens, and the mean share of the wrong candidates in the probability.

    `scores` has the log-probability of every token; `group` and `right` say of every text whose candidate it is, and
    whether it is right.
    """
    segment, counted = batch["segment"].long(), batch["labels"] != IGNORED
    beside = group.new_full((len(group), 1), PADDING)  # segment 0 is no text
    references = torch.cat([beside, group], 1).gather(1, segment) == REFERENCE
    usual = -scores[counted & references].mean()
    totals = scores.new_zeros(len(group), group.shape[1] + 1).scatter_add(1, segment, scores)[:, 1:]
    lowest = torch.finfo(totals.dtype).min
    shares = []
    for role in range(1, len(RANKED) + 1):
        own = group == role
        every = totals.masked_fill(~own, lowest).logsumexp(1)
        among = totals.masked_fill(~(own & right), lowest).logsumexp(1)
        shares.append((1 - torch.exp(among - every))[own.any(1)])
    wrong = torch.cat(shares)
    return usual, wrong.mean() if len(wrong) else usual.new_zeros(())


def count(items: Sequence[Candidates]) -> Round:
    """Return how many rows were drawn for, how many of them are ranked, and how many candidates are right."""
    pairs = [pair for item in items for pair in zip(item.group, item.right, strict=True) if pair[0] != REFERENCE]
    ranked = sum(any(item.group) for item in items)
    return {"rows": len(items), "ranked": ranked, "candidates": len(pairs), "right": sum(good for _, good in pairs)}
