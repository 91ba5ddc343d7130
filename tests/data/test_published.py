"""The readers and the round trip on the datasets themselves, if TEO_TEST_DATA holds them."""

import hashlib

import pytest

from checkout import TEST_DATA, needs_data
from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.registry import REGISTRY
from teo.data.stats import dataset_stats

DATA = TEST_DATA / "data"

pytestmark = needs_data("data")

SIZES = [
    ("rewrite", "train+dev", {}, 17_998, 2),
    ("rewrite", "dev", {}, 1_839, 2),
    ("rewrite", "test", {}, 2_000, 0),
    ("res200k", "valid", {}, 5_095, 0),
    ("res200k", "dev", {}, 493, 0),
    ("res200k", "test", {}, 5_104, 0),
    ("task", "train+dev", {}, 2_205, 0),
    ("task", "train+dev", {"forms": "both"}, 3_021, 0),
    ("task", "dev", {}, 176, 0),
    ("task", "test", {}, 539, 0),
    ("canard", "train", {}, 31_526, 0),
    ("canard", "dev", {}, 3_430, 0),
    ("canard", "test", {}, 5_571, 0),
    ("followup", "train+dev", {}, 800, 0),
    ("followup", "dev", {}, 87, 0),
    ("followup", "test", {}, 200, 0),
]


@pytest.mark.parametrize(("name", "split", "options", "rows", "skipped"), SIZES)
def test_official_sizes(name, split, options, rows, skipped):
    loaded = load_rows(name, DATA / name, split, **options)
    assert (len(loaded.rows), len(loaded.skipped)) == (rows, skipped)
    assert len({row.id for row in loaded.rows}) == rows, "ids are unique"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "rows"),
    [
        ("rewrite", {}, 19_998),
        ("res200k", {}, 10_199),
        ("task", {"forms": "both"}, 3_796),
        ("canard", {}, 40_527),
        ("followup", {}, 1_000),
    ],
)
def test_edits_of_every_row_give_back_its_rewrite(name, options, rows):
    loaded = load_rows(name, DATA / name, "all", **options)
    assert len(loaded.rows) == rows
    failures = [
        row.id
        for row in loaded.rows
        if derive_edits(row.dialogue.utterance, row.rewrite).apply(row.dialogue.utterance) != row.rewrite
    ]
    assert failures == []


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=lambda dataset: dataset.name)
def test_checksums(dataset):
    for file in dataset.files:
        assert hashlib.sha256((DATA / dataset.name / file.name).read_bytes()).hexdigest() == file.sha256, file.name


def test_rewrite_reports_its_two_malformed_lines():
    skipped = load_rows("rewrite", DATA / "rewrite", "train").skipped
    assert [item.location for item in skipped] == ["425", "6418"]


@pytest.mark.slow
def test_numbers_that_the_stats_notes_quote():
    task = dataset_stats("task", DATA / "task").splits["all"]
    both = dataset_stats("task", DATA / "task", forms="both").splits["all"]
    rewrite = dataset_stats("rewrite", DATA / "rewrite").splits["all"].to_dict()
    assert (task.replacements, task.insertions, both.insertions) == (223, 1234, 1337)
    lengths = [round(both.to_dict()[f"avg_{piece}_units"], 1) for piece in ("context", "current", "rewrite")]
    assert lengths == [52.2, 9.4, 11.3]
    assert [round(rewrite[f"avg_{piece}_characters"], 1) for piece in ("context", "current", "rewrite")] == [
        17.7,
        6.5,
        9.7,
    ]
