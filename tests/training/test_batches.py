"""Examples to tensors: lengths, labels without loss on the prompt, order and noise free of the number of workers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.models.backbone import IGNORED
from teo.runtime.torch_codec import Codec
from teo.training.backbones import build_random
from teo.training.batches import Collator, EpochOrder, ExampleDataset
from teo.training.config import RandomModel
from teo.training.examples import ExampleMaker
from teo.training.synthetic import generate_rows

torch.set_num_threads(1)
ROWS = generate_rows(40)


@pytest.fixture(scope="module")
def codec() -> Codec:
    texts = [text for row in ROWS for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]
    return build_random(RandomModel(width=8, layers=1, heads=1), texts)[1]


def make(codec: Codec, rows: list[Row] = ROWS, roles: tuple[str, ...] = ("stage2",), **options: Any) -> ExampleDataset:
    shared = options.pop("shared", False)
    settings = {"source_limit": 64, "target_limit": 32, **options}
    return ExampleDataset(rows, [ExampleMaker(role, shared=shared) for role in roles], codec, **settings)


def test_labels_are_the_target_and_the_prompt_carries_no_loss(codec: Codec) -> None:
    dataset = make(codec, roles=("stage1", "direct"), shared=True)
    items = [dataset[0], dataset[len(ROWS) + 1]]
    features = [feature for item in items for feature in item]
    batch = Collator(codec.pad_id)(items)
    for k, feature in enumerate(features):
        start, target = feature["start"], feature["target"]
        labels = batch["labels"][k].tolist()
        given = batch["decoder_input_ids"][k].tolist()
        size = len(start) - 1 + len(target)
        assert labels[:size] == [IGNORED] * (len(start) - 1) + target
        assert set(labels[size:]) <= {IGNORED}
        assert given[:size] == [*start, *target[:-1]], "the decoder reads what it is to write, one place later"
        assert set(given[size:]) <= {codec.pad_id}
        assert batch["attention_mask"][k].sum() == len(feature["source"])
        assert codec.tokenizer.convert_ids_to_tokens(start)[-1] in {"[E]", "[Y]"}


def test_every_role_sees_every_row_as_often_as_told(codec: Codec) -> None:
    dataset = make(codec, roles=("stage1", "stage2"), repeats=[2] * 10 + [1] * 30)
    assert len(dataset) == 2 * 50
    assert dataset.report.examples == 100


def test_truncation_is_counted(codec: Codec) -> None:
    turns = ("anna likes tea", *["i saw anna in oslo with many others"] * 20)
    long = Row("long", Dialogue(turns, "why"), "why anna likes tea")
    report = make(codec, [*ROWS, long]).report
    assert (report.truncated, report.dropped_turns) == (1, 18)
    assert str(report) == "41 examples, 1 of them read in part (18 turns dropped whole, over source_limit)"


def test_a_target_over_its_limit_is_left_out_and_counted(codec: Codec) -> None:
    long = Row("long", Dialogue(("anna likes tea",), "why"), "why " + "anna likes tea " * 30)
    report = make(codec, [*ROWS, long]).report
    assert report.left_out == 1
    assert str(report).endswith("1 left out (target over target_limit)")
    with pytest.raises(DataError, match="no rows to train on: 0 examples, 1 left out"):
        make(codec, [long])


def test_an_utterance_that_no_position_is_left_for_is_named(codec: Codec) -> None:
    long = Row("row-7", Dialogue((), "anna likes tea " * 30), "anna likes tea " * 30)
    with pytest.raises(
        DataError, match=r"row row-7: its utterance and operations take \d+ tokens, and the model has 64"
    ):
        make(codec, [long], target_limit=200, positions=64)


def test_an_order_holds_every_row_once_and_changes_with_the_epoch(codec: Codec) -> None:
    dataset = make(codec)
    order = EpochOrder(dataset, 1, 4)
    first, again = list(order), list(order)
    assert sorted(first) == list(range(len(dataset)))
    assert first == again, "the same seed and epoch give the same order, in every process"
    dataset.set_epoch(1)
    assert list(order) != first


def test_grouped_batches_hold_rows_of_like_length(codec: Codec) -> None:
    def spread(order: list[int]) -> float:
        sizes = [[dataset.lengths[k] for k in order[n : n + 8]] for n in range(0, len(order), 8)]
        return sum(max(batch) - min(batch) for batch in sizes) / len(sizes)

    dataset = make(codec)
    assert spread(list(EpochOrder(dataset, 1, 8))) < spread(list(range(len(dataset)))) / 2


@pytest.mark.parametrize("workers", [1, 2])
def test_the_noise_is_the_same_whatever_the_number_of_workers(codec: Codec, workers: int) -> None:
    def read(count: int, epoch: int) -> list[list[list[int]]]:
        dataset = make(codec)
        dataset.set_epoch(epoch)
        loader = DataLoader(
            dataset,
            batch_size=8,
            sampler=EpochOrder(dataset, 5, 8),
            collate_fn=Collator(codec.pad_id),
            num_workers=count,
        )
        return [batch["input_ids"].tolist() for batch in loader]

    assert read(0, 3) == read(workers, 3)
    assert read(0, 3) != read(0, 4)
