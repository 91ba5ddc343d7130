"""The examples of a run: what their labels are, and what is counted, cut or left out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.models.backbone import IGNORED
from teo.runtime.torch_codec import Codec
from teo.training.backbones import build_random
from teo.training.config import RandomModel
from teo.training.dataset import ExampleDataset
from teo.training.examples import ExampleMaker
from teo.training.packing import collate_plain
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
    examples = [*dataset.examples(0, 0), *dataset.examples(len(ROWS) + 1, 0)]
    batch = collate_plain(examples, codec.pad_id)
    for k, example in enumerate(examples):
        (text,) = example.segments
        start, target = text.ids[: text.free], text.ids[text.free :]
        labels = batch["labels"][k].tolist()
        given = batch["decoder_input"][k].tolist()
        size = len(start) - 1 + len(target)
        assert labels[:size] == [IGNORED] * (len(start) - 1) + target
        assert set(labels[size:]) <= {IGNORED}
        assert given[:size] == [*start, *target[:-1]], "the decoder reads what it is to write, one place later"
        assert set(given[size:]) <= {codec.pad_id}
        assert batch["source"][k, : len(example.source)].tolist() == example.source
        assert batch["source_mask"][k].sum() == len(example.source)
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
