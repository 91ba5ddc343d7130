"""Pretraining: what the noise makes, that batches do not depend on who makes them, and that a run resumes."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from random import Random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from teo.errors import ConfigError, DataError  # noqa: E402
from teo.models.backbone import IGNORED  # noqa: E402
from teo.models.tokenizer import train_tokenizer  # noqa: E402
from teo.training.loop import LoopSettings, schedule  # noqa: E402
from teo.training.packing import Bucket, collate  # noqa: E402
from teo.training.settings import read_settings  # noqa: E402
from teo_lab.pretraining.batches import PretrainBatches, fitting  # noqa: E402
from teo_lab.pretraining.noise import Noise  # noqa: E402
from teo_lab.pretraining.pretrain import PretrainConfig, prepare, pretrain  # noqa: E402
from teo_lab.pretraining.settings import NoiseSettings  # noqa: E402
from teo_lab.pretraining.streams import Corpus, save_stream, split_turns, tokenize_shard  # noqa: E402
from teo_lab.pretraining.vocabulary import (  # noqa: E402
    BLANK_ID,
    CLS_ID,
    DELETE_ID,
    EOS_ID,
    INSERT_ID,
    OPERATIONS_ID,
    PLACE_ID,
    PLACED_ID,
    REPLACE_ID,
    REWRITE_ID,
    SEP_ID,
    Vocabulary,
)

DIALOGUES = [
    ["Do you know the film Batman?", "Yes, the film Batman is great.", "Who acted in the film Batman?", "Ben Affleck."],
    ["你喜欢吃苹果吗", "苹果很好吃", "我也觉得苹果很好吃", "苹果多少钱"],
    ["Where is the Golden House restaurant?", "The Golden House restaurant is in the north.", "Is it cheap?", "Yes."],
    ["天龙八部里谁的武功最高", "天龙八部里段誉的武功最高", "为什么段誉的武功最高", "不知道"],
] * 6


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shards") / "tiny.jsonl.xz"
    with lzma.open(path, "wt", encoding="utf-8") as out:
        for turns in DIALOGUES:
            out.write(json.dumps({"turns": turns}, ensure_ascii=False) + "\n")
    return path


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([turn for turns in DIALOGUES for turn in turns], size=600, alphabet=120)


@pytest.fixture(scope="module")
def noise(tokenizer: Tokenizer) -> Noise:
    frequent = [token in {"▁the", "▁is", "的", "▁The"} for token in map(tokenizer.id_to_token, range(600))]
    frequent += [False] * (tokenizer.get_vocab_size() - len(frequent))
    return Noise(Vocabulary(tokenizer, frequent[: tokenizer.get_vocab_size()]), NoiseSettings())


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def test_a_stream_gives_its_dialogues_back(shard: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    stream = tokenize_shard(shard, tokenizer, batch=5)
    save_stream(stream, tmp_path / "s.npy")
    corpus = Corpus.load(tmp_path / "s.npy")
    assert len(corpus.starts) == len(DIALOGUES)
    turns = corpus.draw_dialogue(0.0)
    assert [tokenizer.decode(turn, skip_special_tokens=False) for turn in turns] == DIALOGUES[0]
    assert split_turns([7, SEP_ID, 8, 9, SEP_ID]) == [[7], [8, 9]]


def test_a_compressed_stream_is_read_too(shard: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    save_stream(tokenize_shard(shard, tokenizer), tmp_path / "s.npy")
    with lzma.open(tmp_path / "s.npy.xz", "wb") as out:
        out.write((tmp_path / "s.npy").read_bytes())
    plain, compressed = Corpus.load(tmp_path / "s.npy"), Corpus.load(tmp_path / "s.npy.xz")
    assert np.array_equal(plain.stream, compressed.stream)


def windows_of(batches: PretrainBatches, count: int) -> set[tuple[tuple[int, ...], ...]]:
    """The dialogues that N draws of a process give."""
    rng = Random(f"{batches.rank}")
    return {tuple(map(tuple, corpus.draw_dialogue(rng.random()))) for corpus in batches.corpora for _ in range(count)}


@pytest.mark.parametrize("world", [2, 3, 5, 24])
def test_processes_share_no_dialogue_and_see_what_one_would(
    noise: Noise, tokenizer: Tokenizer, tmp_path: Path, world: int
) -> None:
    different = [[f"{turn} {number}" for turn in turns] for number, turns in enumerate(DIALOGUES)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"turns": turns}) + "\n" for turns in different))
    save_stream(tokenize_shard(tmp_path / "x.jsonl", tokenizer), tmp_path / "x.npy")
    corpus = Corpus.load(tmp_path / "x.npy")
    draws = 4000
    one = windows_of(PretrainBatches([corpus], noise, [Bucket(48, 72, 2)], 4, 1), draws)
    several = [
        windows_of(PretrainBatches([corpus], noise, [Bucket(48, 72, 2)], 4, 1, rank=rank, world=world), draws)
        for rank in range(world)
    ]
    assert sum(map(len, several)) == len(set.union(*several)) == len(one) == len(DIALOGUES), "each is in one share"
    assert set.union(*several) == one
    assert sum(corpus.share(rank, world).weight for rank in range(world)) == pytest.approx(corpus.weight, rel=0.2)


def test_more_processes_than_dialogues_are_refused(tokenizer: Tokenizer, shard: Path, tmp_path: Path) -> None:
    save_stream(tokenize_shard(shard, tokenizer), tmp_path / "s.npy")
    with pytest.raises(DataError, match="expected a dialogue for each of 25 processes, found 24"):
        Corpus.load(tmp_path / "s.npy").share(0, 25)


def test_batches_of_processes_have_numbers_of_their_own(
    noise: Noise, tokenizer: Tokenizer, shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_stream(tokenize_shard(shard, tokenizer), tmp_path / "s.npy")
    corpus = Corpus.load(tmp_path / "s.npy")
    seeds: list[str] = []

    class Noted(Random):
        def __init__(self, seed: str) -> None:
            seeds.append(seed)
            super().__init__(seed)

    monkeypatch.setattr("teo_lab.pretraining.batches.Random", Noted)
    for rank in range(2):
        batches = PretrainBatches([corpus], noise, [Bucket(48, 72, 2)], 6, 7, first=3, rank=rank, world=2)
        for index in range(len(batches)):
            batches[index]
    assert sorted(seeds) == sorted(f"7/{number}" for number in range(6, 12)), "those of steps 3 to 5, each once"


def test_a_monologue_cuts_its_dialogue(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"turns": ["a b", "很" * 500, "c d"]}) + "\n")
    stream = tokenize_shard(path, tokenizer).tolist()
    assert stream.count(SEP_ID) == 2
    assert stream.count(EOS_ID) == 2


def test_a_bad_shard_names_its_line(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"turns": ["a"]}\n{"text": "b"}\n')
    with pytest.raises(DataError, match=r'x\.jsonl:2: expected \{"turns": \[\.\.\.\]\}'):
        tokenize_shard(path, tokenizer)


def test_shared_spans_are_whole_words_that_say_something(noise: Noise, tokenizer: Tokenizer) -> None:
    history = [ids(tokenizer, "Where is the Golden House restaurant?")]
    turn = ids(tokenizer, "The Golden House restaurant is cheap")
    spans = [tokenizer.decode(turn[a:b]).strip() for a, b in noise.shared_spans(history, turn)]
    assert spans == ["Golden House restaurant"]
    assert noise.shared_spans([ids(tokenizer, "is the")], ids(tokenizer, "is the")) == [], "frequent words alone"


def test_rewriting_texts_fit_together(noise: Noise, tokenizer: Tokenizer) -> None:
    history = [ids(tokenizer, turn) for turn in DIALOGUES[3][:2]]
    turn = ids(tokenizer, DIALOGUES[3][2])
    seen_insert = seen_replace = False
    for seed in range(40):
        made = noise.rewriting(history, turn, Random(seed), 200, unchanged=False)
        assert made is not None
        prompts = [segment.ids[1] for segment in made.segments]
        assert prompts[:3] == [REWRITE_ID, OPERATIONS_ID, PLACED_ID]
        for segment in made.segments:
            assert segment.ids[0] == CLS_ID
            assert segment.ids[-1] == EOS_ID
            if segment.ids[1] != PLACED_ID:
                assert segment.ids[-1 - len(turn) : -1] == turn, "every rewrite is the turn itself"
        utterance = made.source[len(made.source) - 1 - made.source[-2::-1].index(SEP_ID) : -1]
        assert utterance != turn
        operations = made.segments[1].ids[2 : made.segments[1].ids.index(SEP_ID)]
        seen_insert |= INSERT_ID in operations
        seen_replace |= DELETE_ID in operations and REPLACE_ID in operations
        if INSERT_ID in operations:
            assert PLACE_ID in made.segments[2].ids, "an insertion says where"
        for segment in made.segments[3:]:
            assert segment.free == len(segment.ids) - len(turn) - 1, "perturbed operations carry no loss"
    assert seen_insert
    assert seen_replace


def test_an_unchanged_turn_has_no_operations(noise: Noise, tokenizer: Tokenizer) -> None:
    assert (
        noise.rewriting([ids(tokenizer, "苹果")], ids(tokenizer, "他知道"), Random(1), 200, unchanged=True) is None
    ), "a turn with a pronoun is not complete"
    turn = ids(tokenizer, "不知道")
    made = noise.rewriting([ids(tokenizer, "苹果")], turn, Random(1), 200, unchanged=True)
    assert made is not None
    assert made.segments[1].ids == [CLS_ID, OPERATIONS_ID, SEP_ID, *turn, EOS_ID]
    assert made.segments[2].ids == [CLS_ID, PLACED_ID, EOS_ID]
    assert noise.rewriting([ids(tokenizer, "苹果")], turn, Random(1), 200, unchanged=False) is None


def test_infilling_can_be_undone(noise: Noise, tokenizer: Tokenizer) -> None:
    turns = [ids(tokenizer, turn) for turn in DIALOGUES[0]]
    text = [CLS_ID] + [token for turn in turns for token in (*turn, SEP_ID)]
    made = noise.infilling(turns, Random(3), 500)
    assert made is not None
    source = list(made.source)
    for place, token in made.masked:
        source[place] = token
    fillings: list[list[int]] = []
    for token in made.segments[0].ids[1:-1]:
        if token == BLANK_ID:
            fillings.append([])
        else:
            fillings[-1].append(token)
    rebuilt: list[int] = []
    for token in source:
        rebuilt += fillings.pop(0) if token == BLANK_ID else [token]
    assert rebuilt == text
    assert made.masked


def test_a_batch_depends_on_its_number_alone(noise: Noise, tokenizer: Tokenizer, shard: Path, tmp_path: Path) -> None:
    save_stream(tokenize_shard(shard, tokenizer), tmp_path / "s.npy")
    corpora = [Corpus.load(tmp_path / "s.npy")]
    buckets = (Bucket(32, 80, 4), Bucket(64, 90, 2))
    whole = PretrainBatches(corpora, noise, buckets, 6, seed=1)
    resumed = PretrainBatches(corpora, noise, buckets, 6, seed=1, first=4)
    for name, tensor in whole[4].items():
        assert torch.equal(tensor, resumed[0][name])
    assert len(resumed) == 2
    assert not torch.equal(whole[0]["source"], PretrainBatches(corpora, noise, buckets, 6, seed=2)[0]["source"])


def test_collated_labels_follow_what_is_given(noise: Noise, tokenizer: Tokenizer) -> None:
    turn = ids(tokenizer, "为什么段誉的武功最高")
    made = noise.rewriting([ids(tokenizer, DIALOGUES[3][1])], turn, Random(2), 200, unchanged=False)
    assert made is not None
    batch = collate([made], Bucket(64, 120, 1))
    given, labels, segment = (batch[name][0].tolist() for name in ("decoder_input", "labels", "segment"))
    at = 0
    for number, text in enumerate(made.segments, 1):
        length = len(text.ids) - 1
        assert given[at : at + length] == text.ids[:-1]
        assert labels[at + text.free - 1 : at + length] == text.ids[text.free :]
        assert set(labels[at : at + text.free - 1]) <= {IGNORED}
        assert set(segment[at : at + length]) == {number}
        at += length


def test_shards_that_give_no_example_are_an_error(noise: Noise, tokenizer: Tokenizer, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"turns": ["a", "b"]}) + "\n")
    save_stream(tokenize_shard(file, tokenizer), tmp_path / "s.npy")
    batches = PretrainBatches([Corpus.load(tmp_path / "s.npy")], noise, (Bucket(48, 96, 2),), 1, seed=1)
    with pytest.raises(DataError, match="gives an example of 48 tokens: the shards are too small"):
        batches[0]


def test_the_latest_turns_are_kept() -> None:
    assert fitting([[1] * 5, [2] * 3, [3] * 2], 8) == [[2] * 3, [3] * 2]
    assert fitting([[1] * 5], 3) == []


@pytest.mark.parametrize(
    ("step", "elapsed", "expected", "reason"),
    [
        (0, 0.0, 0.25, "the first of four warm-up steps"),
        (9, 0.0, 0.55, "linear down by steps"),
        (9, 54.0, 0.1, "the time runs out first"),
        (9, 99.0, 0.0, "never below zero"),
    ],
)
def test_schedule(step: int, elapsed: float, expected: float, reason: str) -> None:
    settings = LoopSettings(steps=20, minutes=1.0, warmup=4)
    assert schedule(step, elapsed, settings) == pytest.approx(expected), reason


TINY = """
output = "OUT"
vocabulary = 600
workers = 0
frequent = 5
[shards]
"SHARD" = 1.0
[size]
d_model = 32
encoder_layers = 2
decoder_layers = 1
heads = 4
d_ff = 64
[[buckets]]
source = 48
target = 96
rows = 4
[loop]
steps = 6
warmup = 2
log_every = 2
save_every = 3
"""


def tiny(tmp_path: Path, shard: Path, name: str, *overrides: str) -> PretrainConfig:
    file = tmp_path / f"{name}.toml"
    file.write_text(TINY.replace("OUT", str(tmp_path / name)).replace("SHARD", str(shard)))
    return read_settings(file, PretrainConfig, overrides)


@pytest.mark.train
def test_a_stopped_run_resumes_as_if_it_had_not_stopped(tmp_path: Path, shard: Path) -> None:
    from teo_lab.pretraining import pretrain as module

    torch.set_num_threads(1)
    whole = pretrain(tiny(tmp_path, shard, "whole"))
    original = module.PretrainBatches.__getitem__
    made = []

    def failing(self: PretrainBatches, index: int) -> dict[str, torch.Tensor]:
        made.append(index)
        if len(made) == 5:
            raise KeyboardInterrupt
        return original(self, index)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.PretrainBatches, "__getitem__", failing)
        with pytest.raises(KeyboardInterrupt):
            pretrain(tiny(tmp_path, shard, "stopped"))
    resumed = pretrain(tiny(tmp_path, shard, "stopped"))
    from teo.models import TeoForConditionalGeneration

    first, second = (TeoForConditionalGeneration.from_pretrained(path).state_dict() for path in (whole, resumed))
    for name, weight in first.items():
        torch.testing.assert_close(weight, second[name])
    lines = (tmp_path / "whole" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4, 6]


@pytest.mark.train
def test_the_loss_falls(tmp_path: Path, shard: Path) -> None:
    torch.set_num_threads(1)
    overrides = ["loop.steps=80", "loop.learning_rate=3e-3", "loop.log_every=10", "loop.save_every=0"]
    pretrain(tiny(tmp_path, shard, "learns", *overrides))
    lines = [json.loads(line) for line in (tmp_path / "learns" / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["decoder_loss"] < 0.7 * lines[0]["decoder_loss"]
    assert lines[-1]["masked_loss"] < lines[0]["masked_loss"]


@pytest.mark.train
def test_a_run_starts_from_a_model(tmp_path: Path, shard: Path) -> None:
    first = pretrain(tiny(tmp_path, shard, "first"))
    overrides = [f"start={first}", f"tokenizer={first / 'tokenizer.json'}", "loop.steps=1"]
    second = pretrain(tiny(tmp_path, shard, "second", *overrides))
    assert (second / "config.json").is_file()
    stream = np.load(tmp_path / "first" / "streams" / "tiny.npy")
    assert stream.dtype == np.uint16


@pytest.mark.train
def test_preparing_stops_before_training(tmp_path: Path, shard: Path) -> None:
    prepare(tiny(tmp_path, shard, "x"))
    assert {path.name for path in (tmp_path / "x").iterdir()} == {"tokenizer.json", "streams"}


@pytest.mark.train
def test_a_run_is_resumed_with_its_own_settings_alone(tmp_path: Path, shard: Path) -> None:
    torch.set_num_threads(1)
    pretrain(tiny(tmp_path, shard, "run", "loop.steps=1"))
    record = tmp_path / "run" / "record.json"
    written = record.read_bytes()
    for override, wording in (
        ("seed=7", "seed: the run to resume was started with 1, found 7; resume with the same configuration"),
        ("loop.learning_rate=0.5", "loop.learning_rate: the run to resume was started with"),
        (f'shards={{"{tmp_path / "other.jsonl"}" = 1.0}}', "the run to resume was started with"),
    ):
        with pytest.raises(ConfigError, match=re.escape(wording)):
            pretrain(tiny(tmp_path, shard, "run", "loop.steps=1", override))
    assert record.read_bytes() == written
    pretrain(tiny(tmp_path, shard, "run", "loop.steps=1", "workers=1"))
    assert record.read_bytes() == written, "it says how the weights were made"


def test_two_shards_never_share_a_stream(tmp_path: Path, shard: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(str(tmp_path / "t.json"))
    shards = []
    for folder in ("sa", "sb"):
        (tmp_path / folder).mkdir()
        shards.append(tmp_path / folder / shard.name)
        shards[-1].write_bytes(shard.read_bytes())
    listed = ", ".join(f'"{path}" = 1.0' for path in shards)
    config = tiny(tmp_path, shard, "x", f"tokenizer={tmp_path / 't.json'}", f"shards={{{listed}}}")
    with pytest.raises(
        ConfigError, match=r"differ before the first dot, found tiny again in .*sb/tiny\.jsonl\.xz; ren"
    ):
        prepare(config)


@pytest.mark.parametrize(
    ("override", "wording"),
    [
        ("shards={}", "shards: expected at least one shard"),
        ("buckets=[]", "buckets: expected at least one shape"),
        ("tokenizer=nowhere.json", "tokenizer: no file nowhere.json"),
        ('shards={"gone.jsonl" = 1.0}', "shards: no file gone.jsonl"),
        ("noise.infiling=0.5", "noise.infiling: unknown key; the nearest known one is noise.infilling"),
    ],
)
def test_a_bad_configuration_is_one_line(
    override: str, wording: str, tmp_path: Path, shard: Path, tokenizer: Tokenizer
) -> None:
    tokenizer.save(str(tmp_path / "t.json"))
    with pytest.raises(ConfigError, match=re.escape(wording)):
        pretrain(tiny(tmp_path, shard, "x", f"tokenizer={tmp_path / 't.json'}", override))
