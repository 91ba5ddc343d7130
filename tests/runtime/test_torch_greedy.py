"""Greedy search of our backbone against transformers' own, with rows that end at different steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch runtime needs torch")
pytest.importorskip("transformers", reason="the torch runtime needs transformers")

from transformers import GenerationConfig  # noqa: E402

from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.runtime.search import search_greedily  # noqa: E402
from teo.runtime.torch_greedy import TorchSteps, generate_greedily  # noqa: E402

ROWS, WIDTH, LONGEST = 24, 11, 30


@pytest.fixture(scope="module")
def model() -> TeoForConditionalGeneration:
    """Return a backbone whose weights are large enough that rows differ and end early or late."""
    torch.manual_seed(5)
    torch.set_num_threads(1)
    size = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "heads": 4, "d_ff": 64}
    model = TeoForConditionalGeneration(TeoConfig(vocab_size=40, **size)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(12 if weight.dim() > 1 else 1)
        model.output_bias[model.config.eos_token_id] = 5.0
    return model


def read_sources(model: Any) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(8, 40, (ROWS, WIDTH), generator=generator)
    mask = (torch.arange(WIDTH)[None] < torch.randint(3, WIDTH + 1, (ROWS, 1), generator=generator)).long()
    ids = ids * mask + model.config.pad_token_id * (1 - mask)
    starts = torch.full((ROWS, 2), model.config.decoder_start_token_id)
    with torch.no_grad():
        return model.get_encoder()(input_ids=ids, attention_mask=mask), mask, starts


def test_it_generates_what_transformers_generates(model: TeoForConditionalGeneration) -> None:
    read, mask, starts = read_sources(model)
    end = model.config.eos_token_id
    limits = [LONGEST - row % 3 for row in range(ROWS)]
    found = generate_greedily(model, read, mask, starts.tolist(), limits, end)
    marks = {"eos_token_id": end, "pad_token_id": model.config.pad_token_id}
    search = GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=LONGEST, **marks)
    written = model.generate(
        encoder_outputs=type(read)(**read),
        attention_mask=mask,
        decoder_input_ids=starts,
        generation_config=search,
    )[:, 2:].tolist()
    wanted = [ids[:limit] for ids, limit in zip(written, limits, strict=True)]
    wanted = [ids[: ids.index(end) + 1] if end in ids else ids for ids in wanted]
    assert [ids for ids, _ in found] == wanted
    lengths = {len(ids) for ids in wanted}
    assert len(lengths) > 4 and min(lengths) < 8 and max(lengths) > 25, "rows leave the batch one after the other"


def test_tokens_come_with_their_log_probability(model: TeoForConditionalGeneration) -> None:
    read, mask, starts = read_sources(model)
    found = generate_greedily(model, read, mask, starts.tolist(), [LONGEST] * ROWS, model.config.eos_token_id)
    for row, (ids, scores) in enumerate(found):
        text = torch.tensor([[*starts[row].tolist(), *ids]])
        one = type(read)(**{name: value[row : row + 1] for name, value in read.items()})
        with torch.no_grad():
            logs = model(encoder_outputs=one, attention_mask=mask[row : row + 1], decoder_input_ids=text).logits[0]
        wanted = [float(logs[place + 1, token]) for place, token in enumerate(ids)]
        assert scores == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("checked", [30, 10_000])
def test_drafts_change_no_text(model: TeoForConditionalGeneration, checked: int) -> None:
    read, mask, starts = read_sources(model)
    end, limits = model.config.eos_token_id, [LONGEST - row % 3 for row in range(ROWS)]
    plain = generate_greedily(model, read, mask, starts.tolist(), limits, end)

    def draft(row: int, ids: Sequence[int]) -> list[int]:
        """Right tokens, one wrong one, then right ones that count for nothing."""
        rest = plain[row][0][len(ids) :]
        return [*rest[: row % 5], 9, *rest[row % 5 + 1 :]]

    steps = TorchSteps(model, read, mask)
    steps.checked = checked
    passes: list[int] = []
    advance = steps.advance
    steps.advance = lambda *given: passes.append(1) or advance(*given)  # type: ignore[method-assign]
    with torch.no_grad():
        found = search_greedily(steps, starts.tolist(), limits, end, draft, checked=checked)
    assert [text.ids for text in found] == [ids for ids, _ in plain]
    for text, (_, scores) in zip(found, plain, strict=True):
        assert text.scores == pytest.approx(scores, abs=1e-3)
    if checked > ROWS * LONGEST:
        assert len(passes) < LONGEST
