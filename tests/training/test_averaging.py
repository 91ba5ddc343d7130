"""R-Drop and the running average of the weights: what they compute, and that they act."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.backbone import IGNORED, Mixture  # noqa: E402
from teo.training.averaging import RunningAverage, divergence, logit_divergence, two_passes  # noqa: E402
from teo.training.loop import Loop, LoopSettings  # noqa: E402
from teo.training.losses import PackedModel  # noqa: E402

CPU = torch.device("cpu")


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    source = torch.randint(20, 60, (3, 8), generator=generator)
    labels = torch.randint(20, 60, (3, 6), generator=generator)
    labels[:, 4:] = IGNORED
    return {
        "source": source,
        "decoder_input": torch.cat([torch.full((3, 1), 2), labels[:, :-1].clamp(0)], 1),
        "labels": labels,
        "segment": torch.ones(3, 6, dtype=torch.uint8),
        "masked_places": torch.tensor([1, 9, 23]),
        "masked_tokens": torch.tensor([30, 31, 32]),
    }


def packed(dropout: float = 0.3) -> PackedModel:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = TeoConfig(vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1, heads=4, d_ff=64, dropout=dropout)
    return PackedModel(TeoForConditionalGeneration(config))


def fitted(folder: Path, dropout: float = 0.3, steps: int = 6, **settings: float) -> Loop:
    model = packed(dropout)
    loop = Loop(model, LoopSettings(steps=steps, warmup=1, save_every=0, **settings), folder, CPU)
    loop.fit(iter([batch()] * steps))
    return loop


def mixtures() -> tuple[Mixture, torch.Tensor]:
    """Two passes over two rows of three positions, two of them counted."""
    torch.manual_seed(1)
    counted = torch.tensor([[True, True, False], [True, True, False]] * 2)
    return Mixture(torch.randn(8, 11), torch.randn(4, 3, 5).log_softmax(-1), torch.randn(4, 3)), counted


def joint(mixture: Mixture, counted: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of (generated token or copied position), written out."""
    gate = mixture.gate[counted][:, None]
    generated = torch.nn.functional.logsigmoid(-gate) + mixture.logits.log_softmax(-1)
    copied = torch.nn.functional.logsigmoid(gate) + mixture.log_attention[counted]
    return torch.cat([generated, copied], -1)


def test_the_divergence_is_that_of_token_or_place_in_both_directions() -> None:
    mixture, counted = mixtures()
    first, second = joint(mixture, counted).chunk(2)
    expected = ((first.exp() * (first - second)).sum(-1) + (second.exp() * (second - first)).sum(-1)).mean() / 2
    torch.testing.assert_close(divergence(mixture, counted), expected)
    assert expected > 0.1


def test_the_divergence_is_not_below_that_of_the_mixed_tokens() -> None:
    mixture, counted = mixtures()
    whole = joint(mixture, counted).exp()
    tokens = whole[:, :11].index_add(1, torch.tensor([4, 4, 7, 2, 7]), whole[:, 11:]).log()
    first, second = tokens.chunk(2)
    mixed = ((first.exp() * (first - second)).sum(-1) + (second.exp() * (second - first)).sum(-1)).mean() / 2
    assert 0 < mixed < divergence(mixture, counted)


def test_two_passes_hold_every_row_and_masked_place_twice() -> None:
    doubled = two_passes(batch())
    assert doubled["source"].shape == (6, 8)
    flat = doubled["source"].flatten()
    assert torch.equal(flat[doubled["masked_places"][:3].long()], flat[doubled["masked_places"][3:].long()])
    assert doubled["masked_places"].tolist() == [1, 9, 23, 25, 33, 47]


@pytest.mark.parametrize(
    ("dropout", "why"), [(0.0, "equal passes do not diverge"), (0.3, "different dropout is paid for")]
)
def test_r_drop_adds_what_two_passes_disagree_on(dropout: float, why: str) -> None:
    losses = []
    for weight in (0.0, 1.0, 2.0):
        model = packed(dropout).train()
        model.r_drop = weight or 1e-9  # both passes in any case, so that the same dropout is drawn
        torch.manual_seed(7)
        losses.append(float(model(batch())[0]))
    plain, once, twice = losses
    assert (once > plain + 1e-4) == (dropout > 0), why
    assert twice - once == pytest.approx(once - plain, abs=1e-5)


def test_without_dropout_two_passes_have_the_loss_of_one() -> None:
    model = packed(0.0).train()
    alone = [float(loss) for loss in model(batch())]
    model.r_drop = 5.0
    assert [float(loss) for loss in model(batch())] == pytest.approx(alone, abs=1e-5)


@pytest.mark.train
def test_r_drop_makes_passes_agree(tmp_path: Path) -> None:
    found = {}
    for weight in (0.0, 5.0):
        model = fitted(tmp_path / str(weight), steps=60, r_drop=weight, learning_rate=3e-3).model.train()
        torch.manual_seed(11)
        model.r_drop = 1e-9
        with_term = []
        for share in (1e-9, 1.0):
            torch.manual_seed(11)
            model.r_drop = share
            with_term.append(float(model(batch())[0]))
        found[weight] = with_term[1] - with_term[0]
    assert found[5.0] < 0.7 * found[0.0]


@pytest.mark.train
def test_the_average_is_what_is_left_at_the_end(tmp_path: Path) -> None:
    plain, averaged = fitted(tmp_path / "a", dropout=0.0), fitted(tmp_path / "b", dropout=0.0, ema=0.999)
    weights, average = (loop.model.backbone.embedding.weight for loop in (plain, averaged))
    assert not torch.equal(weights, average)
    start = packed(0.0).backbone.embedding.weight
    assert (average - start).norm() < (weights - start).norm(), "it lags behind the weights"


@pytest.mark.train
def test_a_stopped_run_resumes_with_its_average(tmp_path: Path) -> None:
    def loop(folder: Path) -> Loop:
        return Loop(packed(0.3), LoopSettings(steps=8, warmup=1, save_every=4, ema=0.9), folder, CPU)

    whole = loop(tmp_path / "whole")
    whole.fit(iter([batch()] * 8))
    stopped = loop(tmp_path / "stopped")
    with pytest.raises(StopIteration):
        stopped.fit(iter([batch()] * 4))
    again = loop(tmp_path / "stopped")
    assert again.clock.step == 4
    again.fit(iter([batch()] * 4))
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_averaged_weights_follow_the_definition() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    averaged = RunningAverage(model, 0.3)
    for step, value in enumerate([3.0, 5.0, 7.0]):
        model.weight.data.fill_(value)
        averaged.update(step)
    # Decays min(0.3, (2 + step) / (11 + step)): 2/11 at the first update, 3/12 at the second, then 0.3.
    expected = 1.0 + (3.0 - 1.0) * (1 - 2 / 11)
    expected += (5.0 - expected) * (1 - 3 / 12)
    expected += (7.0 - expected) * (1 - 0.3)
    with averaged.applied():
        assert model.weight.item() == pytest.approx(expected)
    assert model.weight.item() == 7.0, "the weights come back"


def test_r_drop_is_zero_between_equal_passes_and_counts_labels_only() -> None:
    logits = torch.randn(2, 3, 5)
    other = logits.clone()
    labels = torch.tensor([[1, 2, -100], [3, -100, -100]])
    assert logit_divergence(logits, other, labels).item() == pytest.approx(0.0, abs=1e-6)
    other[:, 2] += torch.randn(5) * 9  # only where no label counts
    assert logit_divergence(logits, other, labels).item() == pytest.approx(0.0, abs=1e-6)
    other[0, 0] = torch.tensor([9.0, 0, 0, 0, 0])
    assert logit_divergence(logits, other, labels).item() > 0.1
