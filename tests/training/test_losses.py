"""The loss of a batch: packed or plain, our own backbone has the same one, and only the target counts."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from packed_runs import tiny_base  # noqa: E402
from teo.models import TeoForConditionalGeneration  # noqa: E402
from teo.training.backbones import build_random, load_base  # noqa: E402
from teo.training.config import RandomModel  # noqa: E402
from teo.training.losses import LossModel, PackedModel, PlainModel, loss_model, token_loss  # noqa: E402
from teo.training.packing import PackedExample, Segment, collate_plain, collate_rounded  # noqa: E402

EXAMPLES = [
    PackedExample([2, 30, 31, 32, 3], [Segment([2, 40, 41, 3], 1), Segment([2, 9, 42, 30, 3], 2)]),
    PackedExample([2, 33, 3], [Segment([2, 33, 3], 1)]),
]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> TeoForConditionalGeneration:
    """A tiny backbone of our own, without dropout."""
    model, _ = load_base(str(tiny_base(tmp_path_factory.mktemp("base"), ["I like Batman. Who acted?"])))
    model.set_dropout(0.0)
    return model


def test_packed_and_plain_batches_have_the_same_loss(backbone: TeoForConditionalGeneration) -> None:
    backbone.train()
    packed, nothing_masked = PackedModel(backbone)(collate_rounded(EXAMPLES))
    plain, _ = PlainModel(backbone)(collate_plain(EXAMPLES, backbone.config.pad_token_id))
    torch.testing.assert_close(packed, plain)
    assert packed.item() > 1 and nothing_masked.item() == 0


def test_the_prompt_carries_no_loss(backbone: TeoForConditionalGeneration) -> None:
    labels = collate_plain(EXAMPLES, 0)["labels"]
    assert labels.tolist() == [[40, 41, 3, -100], [-100, 42, 30, 3], [33, 3, -100, -100]]
    logits = torch.randn(3, 4, 50)
    counted = [
        logits[row, k].log_softmax(-1)[labels[row, k]] for row in range(3) for k in range(4) if labels[row, k] > 0
    ]
    torch.testing.assert_close(token_loss(logits, labels), -torch.stack(counted).mean())


@pytest.mark.parametrize(("family", "kind"), [("teo", PackedModel), ("bart", PlainModel), ("t5", PlainModel)])
def test_a_family_has_its_loss(family: str, kind: type[LossModel], tmp_path: Path) -> None:
    settings = RandomModel(family=family, width=16, layers=1, heads=2, vocabulary=300)  # type: ignore[arg-type]
    model, _ = build_random(settings, ["anna likes tea and saw ben in oslo, did he call"] * 3)
    assert type(loss_model(model)) is kind


@pytest.mark.parametrize(("dropout", "reason"), [(0.0, "equal passes do not diverge"), (0.3, "different ones do")])
def test_r_drop_adds_the_divergence_of_two_passes(dropout: float, reason: str) -> None:
    model, codec = build_random(RandomModel(width=16, layers=1, heads=2, dropout=dropout), ["anna likes tea"] * 9)
    plain, batch = PlainModel(model).train(), collate_plain(EXAMPLES, codec.pad_id)
    losses = []
    for weight in (1e-9, 1.0, 3.0):  # both passes in any case, so that the same dropout is drawn
        plain.r_drop = weight
        torch.manual_seed(3)
        losses.append(plain(batch)[0].item())
    assert (losses[1] > losses[0] + 1e-4) == (dropout > 0), reason
    assert losses[2] - losses[1] == pytest.approx(2 * (losses[1] - losses[0]), abs=1e-5)
