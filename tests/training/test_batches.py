"""Batches: an order that the seed decides, the same examples packed or not, and a share for each process."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from packed_runs import recipe, tiny_base  # noqa: E402
from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.edits import Order  # noqa: E402
from teo.models.backbone import IGNORED  # noqa: E402
from teo.training.backbones import build_random, load_base  # noqa: E402
from teo.training.batches import PackedBatches, ProcessShare, RoleBatches, make_batches  # noqa: E402
from teo.training.config import PACKED_ROLES, OptimisationSettings, PerturbationSettings, RandomModel  # noqa: E402
from teo.training.dataset import ExampleDataset  # noqa: E402
from teo.training.examples import ExampleMaker  # noqa: E402
from teo.training.packing import Segment, collate_plain, load_batches  # noqa: E402
from teo.training.synthetic import generate_rows  # noqa: E402

torch.set_num_threads(1)
ROWS = [
    Row("a", Dialogue(("I like Batman.", "Who acted?"), "It is he."), "It is Batman."),
    Row("b", Dialogue(("苹果好吃吗", "好吃"), "多少钱"), "苹果多少钱"),
    Row("c", Dialogue(("Hello there.",), "Good morning."), "Good morning."),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny backbone with its tokenizer."""
    texts = [text for row in ROWS for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]
    return tiny_base(tmp_path_factory.mktemp("base"), texts)


@pytest.fixture(scope="module")
def many() -> ExampleDataset:
    """Stage 2 of forty rows, for a model of another family."""
    rows = generate_rows(40)
    texts = [text for row in rows for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]
    _, codec = build_random(RandomModel(width=8, layers=1, heads=1), texts)
    return ExampleDataset(rows, [ExampleMaker("stage2")], codec, source_limit=64, target_limit=32)


def plain(data: ExampleDataset, size: int = 8, epochs: int = 5) -> RoleBatches:
    settings = OptimisationSettings(batch_size=size, epochs=epochs)
    return RoleBatches(data, settings, 5, partial(collate_plain, pad_id=data.codec.pad_id))


def dataset(base: Path, order: Order = "position", **changes: object) -> ExampleDataset:
    _, codec = load_base(str(base))
    noise = PerturbationSettings(prob_p=0.9, fused_share=0.7)
    makers = [ExampleMaker(role, shared=True, order=order, perturbation=noise, seed=1) for role in PACKED_ROLES]
    limits = {"source_limit": 64, "target_limit": 40}
    return ExampleDataset(ROWS, makers, codec, **{**limits, **changes})  # type: ignore[arg-type]


def batches(data: ExampleDataset, **changes: int) -> PackedBatches:
    return PackedBatches(data, OptimisationSettings(batch_size=2, epochs=2, **changes), seed=1)


def test_an_order_holds_every_row_once_and_changes_with_the_epoch(many: ExampleDataset) -> None:
    first, again = plain(many, 4), plain(many, 4)
    order = [item for batch in first._order(0) for item in batch]
    assert sorted(order) == list(range(len(many)))
    assert first._order(0) == again._order(0), "the same seed and epoch give the same order, in every process"
    assert first._order(1) != first._order(0)


def test_batches_hold_rows_of_like_length(many: ExampleDataset) -> None:
    def spread(batches: list[list[int]]) -> float:
        sizes = [[sum(many.sizes[k]) for k in batch] for batch in batches]
        return sum(max(batch) - min(batch) for batch in sizes) / len(sizes)

    unsorted = [list(range(n, n + 8)) for n in range(0, 40, 8)]
    assert spread(plain(many)._order(0)) < spread(unsorted) / 2


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 2])
def test_the_noise_is_the_same_whatever_the_number_of_workers(many: ExampleDataset, workers: int) -> None:
    def read(count: int) -> list[list[list[int]]]:
        return [batch["source"].tolist() for batch in load_batches(plain(many), count, torch.device("cpu"))]

    alone = read(0)
    assert alone == read(workers)
    assert len(alone) == 25
    assert sorted(map(str, alone[:5])) != sorted(map(str, alone[5:10])), "noise of its own in every epoch"


@pytest.mark.parametrize(
    ("world", "updates", "reason"), [(1, 5, "all alone"), (2, 3, "the last update takes one again"), (5, 1, "each one")]
)
def test_processes_share_the_batches_of_an_epoch(many: ExampleDataset, world: int, updates: int, reason: str) -> None:
    made = plain(many, epochs=2)
    shares = [ProcessShare(made, rank, world) for rank in range(world)]
    assert [share.per_epoch for share in shares] == [updates] * world, reason
    for epoch in range(2):
        seen = [str(share[epoch * updates + k]["source"].tolist()) for k in range(updates) for share in shares]
        wanted = [str(made[epoch * 5 + k]["source"].tolist()) for k in range(5)]
        assert seen == (wanted + wanted)[: world * updates], reason


def test_a_resumed_share_starts_where_it_was_stopped(many: ExampleDataset) -> None:
    whole, resumed = ProcessShare(plain(many), 1, 2), ProcessShare(plain(many), 1, 2)
    resumed.first = 4
    assert (len(whole), len(resumed)) == (15, 11)
    assert torch.equal(whole[4]["source"], resumed[0]["source"])


@pytest.mark.parametrize(
    ("overrides", "kind", "reason"),
    [
        ([], PackedBatches, "roles that share weights and source"),
        (["shared=false", 'roles=["direct"]'], RoleBatches, "weights of its own"),
        (['roles=["stage1", "stage2"]'], RoleBatches, "stage 2 reads operations"),
    ],
)
def test_our_backbone_learns_roles_of_one_source_together(
    base: Path, tmp_path: Path, overrides: list[str], kind: type, reason: str
) -> None:
    model, _ = load_base(str(base))
    made = make_batches(model, dataset(base), recipe(tmp_path, base, *overrides))
    assert type(made) is kind, reason
    assert "segment" in made[0]


def test_other_families_get_padded_rows(many: ExampleDataset, base: Path, tmp_path: Path) -> None:
    made = make_batches(torch.nn.Linear(1, 1), many, recipe(tmp_path, base))
    assert type(made) is RoleBatches
    assert set(made[0]) == {"source", "source_mask", "decoder_input", "labels"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "as the shipped recipe has it"),
        ({"order": "insertions-first"}, "the order of the operations is respected"),
        ({"repeats": [3, 1, 2]}, "copies of a row get noise of their own"),
        ({"target_limit": 14}, "roles whose target is too long are left out"),
        ({"source_limit": 16}, "the oldest turns are dropped"),
    ],
)
def test_packed_rows_teach_the_same_examples(base: Path, changes: dict[str, object], reason: str) -> None:
    data = dataset(base, **changes)
    packed = batches(data)
    for epoch in range(3):
        examples = [example for k in range(len(data)) for example in data.examples(k, epoch)]
        seen = [_flat(example.source, example.segments[0]) for example in examples]
        given = [
            _flat(example.source, text)
            for example in (packed.examples(k, epoch)[0] for k in range(len(packed.packed)))
            for text in example.segments
        ]
        assert sorted(given) == sorted(seen), reason


def _flat(source: list[int], text: Segment) -> tuple[int, ...]:
    return (*source, -1, *text.ids[: text.free], -2, *text.ids[text.free :])


def test_long_rows_come_in_smaller_batches(base: Path) -> None:
    packed = batches(dataset(base, repeats=[5, 4, 6]), batch_tokens=256)
    batch_sizes = [len(order) for order in packed._order(0)]
    assert sum(batch_sizes) == 15
    assert len({len(packed._order(epoch)) for epoch in range(5)}) == 1, "as many in every epoch"
    for order in packed._order(0):
        longest = [max(packed.sizes[item][k] for item in order) for k in (0, 1)]
        assert len(order) <= 2 and (len(order) == 1 or len(order) * sum(longest) <= 256), order
    assert {1, 2} <= set(batch_sizes)


def test_repeated_rows_have_noise_of_their_own_in_every_epoch(base: Path) -> None:
    packed = batches(dataset(base, repeats=[6, 1, 1]))
    copies = [packed.examples(k, epoch)[0].segments[3:] for k in range(6) for epoch in range(2)]
    noisy = [tuple(text.ids) for texts in copies for text in texts]
    assert len(set(noisy)) > 4


def test_each_row_carries_all_its_texts_in_one_batch(base: Path) -> None:
    packed = batches(dataset(base))
    assert (packed.per_epoch, len(packed)) == (2, 4)
    segments = torch.cat([batch["segment"].amax(1) for batch in (packed[0], packed[1])])
    assert set(segments.tolist()) <= {3, 4}, "direct, fused, fast, and fused from perturbed operations"
    assert 4 in segments.tolist()


def test_batches_are_the_same_whoever_makes_them(base: Path) -> None:
    first, second = batches(dataset(base))[3], batches(dataset(base))[3]
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
    assert (first["labels"] != IGNORED).any()
