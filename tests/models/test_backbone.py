"""The copy-augmented backbone: what it computes, and that transformers can save and load it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoModelForSeq2SeqLM  # noqa: E402

from teo.errors import ModelError  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.backbone import IGNORED  # noqa: E402

SEP, EOS, PAD = 3, 1, 0


@pytest.fixture
def model() -> TeoForConditionalGeneration:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = TeoConfig(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, heads=4, d_ff=64)
    built = TeoForConditionalGeneration(config).eval()
    with torch.no_grad():  # away from the near-uniform start, where any mistake would look right
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return built


SOURCE = torch.tensor([[2, 30, 31, SEP, 40, 41, 42, SEP], [2, 33, SEP, 44, SEP, PAD, PAD, PAD]])
MASK = (SOURCE != PAD).long()
LABELS = torch.tensor([[9, 40, 31, EOS], [9, 44, EOS, IGNORED]])
GIVEN = torch.tensor([[2, 9, 40, 31], [2, 9, 44, EOS]])
"""What the decoder reads to write the labels."""


def test_log_probabilities_sum_to_one(model: TeoForConditionalGeneration) -> None:
    logits = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=GIVEN).logits
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(2, 4), atol=1e-4, rtol=0)


def test_scores_of_labels_are_those_of_the_mixture(model: TeoForConditionalGeneration) -> None:
    logits = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=GIVEN).logits
    source = model.encoder(SOURCE, MASK).last_hidden_state
    mixture = model.mixture(model.decoder(GIVEN, source, MASK), source, MASK, LABELS)
    scores = model.scores_of(mixture, SOURCE, LABELS)
    kept = LABELS != IGNORED
    picked = logits.gather(-1, LABELS.clamp(0)[..., None]).squeeze(-1)
    torch.testing.assert_close(scores[kept], picked[kept], atol=1e-4, rtol=1e-4)
    assert scores[~kept].tolist() == [0.0]


def test_padding_changes_nothing(model: TeoForConditionalGeneration) -> None:
    together = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=LABELS.clamp(0)).logits
    alone = model(input_ids=SOURCE[1:, :5], decoder_input_ids=LABELS[1:].clamp(0)).logits
    torch.testing.assert_close(together[1:], alone, atol=1e-4, rtol=1e-4)


def test_only_copied_mass_reaches_tokens_the_vocabulary_head_forbids(model: TeoForConditionalGeneration) -> None:
    with torch.no_grad():
        model.output_bias[40] = -1e4
        model.copy_head.gate.bias.fill_(1e4)
    copied = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=GIVEN).logits.exp()
    assert copied[0, :, 40].min() > 0.001, "token 40 stands in the first source and can be copied"
    assert copied[1, :, 40].max() < 1e-6, "the second source does not hold token 40"


def test_saved_and_loaded_by_the_auto_class(model: TeoForConditionalGeneration, tmp_path) -> None:
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, TeoForConditionalGeneration)
    before, after = (each(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=GIVEN) for each in (model, loaded))
    torch.testing.assert_close(before.logits, after.logits)
    assert loaded.encoder.embedding.weight is loaded.embedding.weight, "one embedding serves both sides"


def test_turns_are_counted_from_the_end(model: TeoForConditionalGeneration) -> None:
    assert model.encoder.turns(SOURCE)[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert model.encoder.turns(SOURCE)[1].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_several_texts_in_one_row_do_not_see_each_other(model: TeoForConditionalGeneration) -> None:
    first, second = [2, 9, 40], [2, 8, 41, 42]
    row = torch.tensor([first + second])
    segment = torch.tensor([[1] * 3 + [2] * 4])
    mask = (segment[:, None, :, None] == segment[:, None, None, :]) & torch.ones(7, 7, dtype=torch.bool).tril()
    source = model.encoder(SOURCE[:1], MASK[:1]).last_hidden_state
    packed = model.decoder(row, source, MASK[:1], mask)
    apart = model.decoder(torch.tensor([second]), source, MASK[:1])
    # Positions are counted over the whole row, and only their distances matter.
    torch.testing.assert_close(packed[:, 3:], apart, atol=1e-4, rtol=1e-4)


def test_a_backbone_of_other_layers_is_refused() -> None:
    assert TeoConfig(norm="layer", kv_heads=8, head_size=64, rope_theta=10_000.0).head_size == 64, "an earlier file"
    with pytest.raises(ModelError, match=r"config\.json: norm: expected layer, found rms; train the backbone anew"):
        TeoConfig(norm="rms")
