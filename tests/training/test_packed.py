"""Packed fine-tuning of the backbone: every role from one reading of a row, and the 8-bit base it starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from packed_runs import recipe, tiny_base  # noqa: E402
from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.edits import Order  # noqa: E402
from teo.errors import ConfigError, ModelError  # noqa: E402
from teo.models import TeoForConditionalGeneration  # noqa: E402
from teo.models.backbone import IGNORED  # noqa: E402
from teo.models.storage import BASE, find_base, load_bytes  # noqa: E402
from teo.runtime.torch_codec import Codec  # noqa: E402
from teo.training.backbones import load_base  # noqa: E402
from teo.training.batches import ExampleDataset  # noqa: E402
from teo.training.config import PACKED_ROLES, OptimisationSettings, PerturbationSettings  # noqa: E402
from teo.training.examples import ExampleMaker  # noqa: E402
from teo.training.finetune import train  # noqa: E402
from teo.training.packed import PackedBatches, RoleBatches  # noqa: E402

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


def dataset(base: Path, order: Order = "position", **changes: object) -> ExampleDataset:
    _, codec = load_base(str(base))
    noise = PerturbationSettings(prob_p=0.9, fused_share=0.7)
    makers = [ExampleMaker(role, shared=True, order=order, perturbation=noise, seed=1) for role in PACKED_ROLES]
    limits = {"source_limit": 64, "target_limit": 40}
    return ExampleDataset(ROWS, makers, codec, **{**limits, **changes})  # type: ignore[arg-type]


def batches(data: ExampleDataset, **changes: int) -> PackedBatches:
    return PackedBatches(data, OptimisationSettings(batch_size=2, epochs=2, **changes), seed=1)


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
def test_both_engines_see_the_same_examples(base: Path, changes: dict[str, object], reason: str) -> None:
    data = dataset(base, **changes)
    packed = batches(data)
    for epoch in range(3):
        data.set_epoch(epoch)
        features = [feature for k in range(len(data)) for feature in data[k]]
        seen = [(*feature["source"], -1, *feature["start"], -2, *feature["target"]) for feature in features]
        given = [
            (*example.source, -1, *text.ids[: text.free], -2, *text.ids[text.free :])
            for example in (packed.examples(k, epoch)[0] for k in range(len(packed.packed)))
            for text in example.segments
        ]
        assert sorted(given) == sorted(seen), reason


@pytest.mark.parametrize(
    ("roles", "shared"),
    [(("stage1",), False), (("stage2",), False), (("stage1", "stage2"), True), (("fused",), False), (("rfis",), False)],
)
def test_roles_with_sources_of_their_own_see_the_same_examples_in_both_engines(
    base: Path, roles: tuple[str, ...], shared: bool
) -> None:
    _, codec = load_base(str(base))
    noise = PerturbationSettings(prob_p=0.9, fused_share=0.7)
    makers = [ExampleMaker(role, shared=shared, perturbation=noise, seed=1) for role in roles]
    data = ExampleDataset(ROWS, makers, codec, source_limit=64, target_limit=40)
    made = RoleBatches(data, OptimisationSettings(batch_size=2, epochs=2), seed=1)
    for epoch in range(2):
        data.set_epoch(epoch)
        for item in range(len(data)):
            texts = [
                (example.source, *((text.ids, text.free) for text in example.segments))
                for example in made.examples(item, epoch)
            ]
            features = data[item]
            assert texts == [(f["source"], ([*f["start"], *f["target"]], len(f["start"]))) for f in features]


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


def test_eight_bits_keep_the_weights(base: Path) -> None:
    torch.manual_seed(0)
    stored = load_bytes(base)
    again = load_bytes(base)
    ids = torch.tensor([[2, 20, 21, 3]])
    torch.testing.assert_close(
        stored.eval()(input_ids=ids, labels=ids).logits, again.eval()(input_ids=ids, labels=ids).logits
    )
    matrix = stored.encoder.layers[0].feed_forward.up.weight
    steps = matrix / (matrix.abs().amax(1, keepdim=True) / 127)
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)


def test_the_base_is_found_by_name(base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEO_BASE", str(base))
    model, codec = load_base(BASE)
    assert isinstance(model, TeoForConditionalGeneration)
    assert isinstance(codec, Codec)
    monkeypatch.setenv("TEO_BASE", str(tmp_path))
    with pytest.raises(ModelError, match="expected the pretrained backbone in weights/base of a checkout, found none"):
        find_base()


def test_a_damaged_base_is_an_error(base: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(base, tmp_path / "x")
    config = (tmp_path / "x" / "config.json").read_text().replace('"d_ff": 64', '"d_ff": 48')
    (tmp_path / "x" / "config.json").write_text(config)
    with pytest.raises(ModelError, match=r"expected encoder\.layers\.0\.feed_forward\.up\.weight of shape \(48, 32\)"):
        load_bytes(tmp_path / "x")


def test_packed_training_makes_a_model_folder(base: Path, tmp_path: Path) -> None:
    result = train(recipe(tmp_path, base))
    assert set(result.em) == {"fused", "direct", "fast"}
    assert [step for step, _ in result.groups["weights"].losses] == [4, 8, 12, 16]
    assert (tmp_path / "model" / "teo.json").is_file()
    assert (tmp_path / "model" / "weights" / "config.json").is_file()


def test_two_separate_stages_can_be_packed(base: Path, tmp_path: Path) -> None:
    result = train(recipe(tmp_path, base, "shared=false", 'roles=["stage1", "stage2"]'))
    assert set(result.groups) == {"stage1", "stage2"}
    assert (tmp_path / "model" / "stage2" / "config.json").is_file()


@pytest.mark.parametrize(
    ("override", "wording"),
    [
        ("model.base=random", "packed: expected our own backbone"),
        ("evaluation.every=1", "evaluation.every: packed training can do 0 only; change it, or set packed = false"),
        ("optimisation.bf16=false", "optimisation.bf16: packed training can do true only"),
    ],
)
def test_what_cannot_be_packed_is_refused(override: str, wording: str, base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=wording):
        train(recipe(tmp_path, base, override))
