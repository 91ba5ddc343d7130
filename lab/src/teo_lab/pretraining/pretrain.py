"""Pretraining of the backbone on plain dialogues: text infilling and self-supervised rewriting.

`teo-lab pretrain CONFIG [key=value ...]`; with `--prepare` it stops once tokenizer and token streams are made.
`torchrun -m teo_lab pretrain CONFIG` runs it in several processes: each reads its own share of the shards, and
an update has a batch of each.
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import torch
from tokenizers import Tokenizer

from teo.errors import ConfigError
from teo.files import write_json
from teo.models import TeoConfig, TeoForConditionalGeneration
from teo.models.storage import BYTES, load_bytes
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer
from teo.provenance import git_commit, versions
from teo.training.loop import CHECKPOINT, Loop, LoopSettings
from teo.training.losses import PackedModel
from teo.training.packing import Bucket, load_batches
from teo.training.processes import distributed_rank, join_process_group, own_device, wait_for_all
from teo.training.record import RECORD, flatten
from teo_lab.pretraining.batches import PretrainBatches
from teo_lab.pretraining.noise import Noise
from teo_lab.pretraining.settings import NoiseSettings
from teo_lab.pretraining.streams import Corpus, frequent_tokens, make_stream, read_dialogues
from teo_lab.pretraining.vocabulary import Vocabulary, cjk_tokens

_FREE = ("output", "workers", "loop.steps")
"""Keys that a resumed run may have otherwise than the run it resumes: with more steps a finished run goes further."""


@dataclass(frozen=True, slots=True)
class BackboneSize:
    """Sizes of a backbone that is trained from scratch."""

    d_model: int = 512
    """Width of the states."""
    encoder_layers: int = 12
    """Layers that read."""
    decoder_layers: int = 2
    """Layers that write; each costs time for every token written."""
    heads: int = 8
    """Attention heads."""
    d_ff: int = 2048
    """Width inside the feed-forward layers."""
    dropout: float = 0.0
    """Dropout in pretraining."""


@dataclass(frozen=True, slots=True)
class PretrainConfig:
    """A pretraining run."""

    shards: dict[str, float]
    """Shards of dialogues (`.jsonl`, `.jsonl.xz`) or token streams made of them (`.npy`, `.npy.xz`), and how often each
    is drawn: 1 means as often as its size says."""
    output: str
    """Folder for the model, its checkpoint, the token streams and the log."""
    tokenizer: str = ""
    """The tokenizer's `tokenizer.json`; empty: learned from the shards."""
    vocabulary: int = 16_384
    """Entries of a tokenizer that is learned."""
    start: str = ""
    """A model folder to start from, of 8 bits too; empty: random weights."""
    size: BackboneSize = field(default_factory=BackboneSize)
    """The backbone, if it is trained from scratch."""
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    """How examples are made."""
    buckets: tuple[Bucket, ...] = (Bucket(48, 72, 1536), Bucket(96, 88, 768), Bucket(192, 104, 384))
    """Shapes of batches."""
    loop: LoopSettings = field(default_factory=LoopSettings)
    """The fitting."""
    frequent: int = 200
    """How many of the most frequent tokens of each script count as saying nothing."""
    workers: int = 2
    """Processes that make batches."""
    seed: int = 1
    """Seed of the weights and the noise."""

    def __post_init__(self) -> None:
        if not self.shards:
            raise ConfigError("shards: expected at least one shard, found none")
        if not self.buckets:
            raise ConfigError("buckets: expected at least one shape of batch, found none")


def pretrain(config: PretrainConfig) -> Path:
    """Run the pretraining and return the model's folder; a run that was stopped resumes from its last checkpoint."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    join_process_group(device)
    rank, world = distributed_rank()
    torch.manual_seed(config.seed)
    output = Path(config.output)
    resumed = resumes(config)
    tokenizer, streams = _prepare_once(config)
    corpora = [Corpus.load(path, weight) for path, weight in zip(streams, config.shards.values(), strict=True)]
    frequent = frequent_tokens(corpora, cjk_tokens(tokenizer), config.frequent)
    noise = Noise(Vocabulary(tokenizer, frequent.tolist()), config.noise)
    target = torch.device(own_device(device))
    model = PackedModel(_backbone(config, tokenizer))
    loop = Loop(model, config.loop, output, target, seed=config.seed, label="pretraining")
    finished = resumed and loop.clock.step >= config.loop.steps
    if loop.main and not finished:  # the record of a finished run says how its weights were made
        _write_record(config, output, model.backbone, world)
    steps = config.loop.steps
    batches = PretrainBatches(corpora, noise, config.buckets, steps, config.seed, loop.clock.step, rank, world)
    loop.fit(iter(load_batches(batches, config.workers, target)))
    if loop.main:
        save_backbone(model.backbone, tokenizer, output / "model")
    wait_for_all()
    return output / "model"


def resumes(config: PretrainConfig) -> bool:
    """Tell whether the output holds a checkpoint of this run; one that was started with other settings is refused."""
    record = Path(config.output) / RECORD
    if not (record.is_file() and (record.parent / CHECKPOINT).is_file()):
        return False
    before = flatten(json.loads(record.read_text(encoding="utf-8"))["config"])
    now = flatten(json.loads(json.dumps(asdict(config))))
    for key in sorted({*before, *now}):
        if key not in _FREE and before.get(key) != now.get(key):
            raise ConfigError(
                f"{key}: the run to resume was started with {json.dumps(before.get(key))}, found "
                f"{json.dumps(now.get(key))}; resume with the same configuration or give another output"
            )
    return True


def _prepare_once(config: PretrainConfig) -> tuple[Tokenizer, list[Path]]:
    """Return what `prepare` does; of several processes the first makes it, and the others find it made."""
    made = prepare(config) if distributed_rank()[0] == 0 else None
    wait_for_all()
    return made or prepare(config)


def prepare(config: PretrainConfig) -> tuple[Tokenizer, list[Path]]:
    """Return the tokenizer and the shards' token streams; what is missing is made, several shards at once."""
    output = Path(config.output)
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(config, output)
    streams: list[Path] = []
    missing = []
    for shard in map(Path, config.shards):
        if not shard.is_file():
            raise ConfigError(f"shards: no file {shard}; give the path of a shard of dialogues")
        made = shard.name.endswith((".npy", ".npy.xz"))
        stream = shard if made else output / "streams" / f"{shard.name.split('.')[0]}.npy"
        if not made and stream in streams:
            raise ConfigError(
                f"shards: expected names that differ before the first dot, found {stream.stem} again in {shard}; "
                "rename one of the files"
            )
        streams.append(stream)
        if not streams[-1].is_file():
            missing.append((shard, streams[-1], tokenizer.to_str()))
    if missing:
        (output / "streams").mkdir(exist_ok=True)
        with get_context("spawn").Pool(min(len(missing), max(config.workers, 1))) as pool:
            pool.starmap(make_stream, missing, chunksize=1)
    return tokenizer, streams


def _tokenizer(config: PretrainConfig, output: Path) -> Tokenizer:
    if config.tokenizer:
        if not Path(config.tokenizer).is_file():
            raise ConfigError(f"tokenizer: no file {config.tokenizer}; leave the key out to learn one")
        return Tokenizer.from_file(config.tokenizer)
    learned = output / "tokenizer.json"
    if not learned.is_file():
        texts = (turn for path in config.shards for turns in read_dialogues(Path(path)) for turn in turns)
        train_tokenizer(texts, config.vocabulary).save(str(learned))
    return Tokenizer.from_file(str(learned))


def _backbone(config: PretrainConfig, tokenizer: Tokenizer) -> TeoForConditionalGeneration:
    if config.start and (Path(config.start) / BYTES).is_file():
        return load_bytes(Path(config.start))
    if config.start:
        return TeoForConditionalGeneration.from_pretrained(config.start, dtype=torch.float32)
    return TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **asdict(config.size)))


def save_backbone(backbone: TeoForConditionalGeneration, tokenizer: Tokenizer, path: Path, shard: str = "15MB") -> None:
    """Write the backbone in half precision and its tokenizer, in shards small enough to pass anywhere."""
    half = copy.deepcopy(backbone).to(dtype=torch.float16, device="cpu")
    half.save_pretrained(path, max_shard_size=shard)
    wrap_tokenizer(tokenizer).save_pretrained(path)


def _write_record(config: PretrainConfig, output: Path, backbone: TeoForConditionalGeneration, processes: int) -> None:
    record = {
        "config": asdict(config),
        "processes": processes,
        "parameters": sum(p.numel() for p in backbone.parameters()),
        "versions": versions(("torch", "transformers", "tokenizers", "numpy")),
        "git_commit": git_commit(),
    }
    write_json(output / RECORD, record)
