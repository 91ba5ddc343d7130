"""The copy-augmented backbone: what it computes, and that transformers can save, load and generate with it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoModelForSeq2SeqLM  # noqa: E402

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


def test_log_probabilities_sum_to_one(model: TeoForConditionalGeneration) -> None:
    logits = model(input_ids=SOURCE, attention_mask=MASK, labels=LABELS).logits
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(2, 4), atol=1e-4, rtol=0)


def test_training_loss_is_the_mean_of_the_mixture(model: TeoForConditionalGeneration) -> None:
    output = model(input_ids=SOURCE, attention_mask=MASK, labels=LABELS)
    kept = LABELS != IGNORED
    picked = output.logits.gather(-1, LABELS.clamp(0)[..., None]).squeeze(-1)[kept]
    torch.testing.assert_close(output.loss, -picked.mean(), atol=1e-4, rtol=1e-4)


def test_padding_changes_nothing(model: TeoForConditionalGeneration) -> None:
    together = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=LABELS.clamp(0)).logits
    alone = model(input_ids=SOURCE[1:, :5], decoder_input_ids=LABELS[1:].clamp(0)).logits
    torch.testing.assert_close(together[1:], alone, atol=1e-4, rtol=1e-4)


def test_only_copied_mass_reaches_tokens_the_vocabulary_head_forbids(model: TeoForConditionalGeneration) -> None:
    with torch.no_grad():
        model.output_bias[40] = -1e4
        model.copy_head.gate.bias.fill_(1e4)
    copied = model(input_ids=SOURCE, attention_mask=MASK, labels=LABELS).logits.exp()
    assert copied[0, :, 40].min() > 0.001, "token 40 stands in the first source and can be copied"
    assert copied[1, :, 40].max() < 1e-6, "the second source does not hold token 40"


def test_cached_steps_equal_one_pass(model: TeoForConditionalGeneration) -> None:
    given = torch.tensor([[2, 9, 40, 31], [2, 9, 44, 33]])
    whole = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=given).logits
    encoded, cache, steps = model.encoder(SOURCE, MASK), None, []
    for index in range(4):
        output = model(
            encoder_outputs=encoded,
            attention_mask=MASK,
            decoder_input_ids=given[:, index : index + 1],
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        steps.append(output.logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("first", [2, 3])
def test_a_prompt_of_several_tokens_fills_the_cache_as_one_pass_does(
    model: TeoForConditionalGeneration, first: int
) -> None:
    given = torch.tensor([[2, 9, 40, 31], [2, 9, 44, 33]])
    whole = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=given).logits
    encoded = model.encoder(SOURCE, MASK)
    start = model(encoder_outputs=encoded, attention_mask=MASK, decoder_input_ids=given[:, :first], use_cache=True)
    rest = model(
        encoder_outputs=encoded,
        attention_mask=MASK,
        decoder_input_ids=given[:, first:],
        past_key_values=start.past_key_values,
        use_cache=True,
    )
    torch.testing.assert_close(torch.cat([start.logits, rest.logits], 1), whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_generate_follows_a_decoder_prompt(model: TeoForConditionalGeneration, beams: int) -> None:
    prompt = torch.tensor([[2, 9], [2, 9]])
    written = model.generate(
        SOURCE, attention_mask=MASK, decoder_input_ids=prompt, max_new_tokens=5, num_beams=beams, do_sample=False
    )
    assert written[:, :2].tolist() == prompt.tolist()
    if beams == 1:
        logits = model(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=written[:, :-1]).logits
        assert written[0, 2] == logits[0, 1].argmax()


def test_saved_and_loaded_by_the_auto_class(model: TeoForConditionalGeneration, tmp_path) -> None:
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, TeoForConditionalGeneration)
    before = model(input_ids=SOURCE, attention_mask=MASK, labels=LABELS)
    after = loaded(input_ids=SOURCE, attention_mask=MASK, labels=LABELS)
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
    source, source_mask = SOURCE[:1], MASK[:1]
    packed = model(input_ids=source, attention_mask=source_mask, decoder_input_ids=row, decoder_attention_mask=mask)
    apart = model(input_ids=source, attention_mask=source_mask, decoder_input_ids=torch.tensor([second]))
    torch.testing.assert_close(packed.logits[:, 3:], apart.logits, atol=1e-4, rtol=1e-4)
