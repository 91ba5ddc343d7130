"""Our search over the steps of our backbone against transformers' own, with rows that end at different steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch runtime needs torch")
pytest.importorskip("transformers", reason="the torch runtime needs transformers")

from transformers import GenerationConfig, GenerationMixin  # noqa: E402

from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.runtime.search import Draft, Text, search_beams, search_greedily  # noqa: E402
from teo.runtime.torch_steps import TorchSteps  # noqa: E402

ROWS, WIDTH, LONGEST = 24, 11, 30


class SearchedByTransformers(TeoForConditionalGeneration, GenerationMixin):
    """The backbone with transformers' own search, without a cache."""


@pytest.fixture(scope="module")
def model() -> SearchedByTransformers:
    """Return a backbone whose weights are large enough that rows differ and end early or late."""
    torch.manual_seed(5)
    torch.set_num_threads(1)
    size = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "heads": 4, "d_ff": 64}
    model = SearchedByTransformers(TeoConfig(vocab_size=40, **size)).eval()
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


@torch.no_grad()
def search(
    model: Any, read: Any, mask: Any, starts: Any, limits: Sequence[int], draft: Draft | None = None
) -> list[Text]:
    steps = TorchSteps(model, read, mask)
    return search_greedily(steps, starts.tolist(), limits, model.config.eos_token_id, draft, checked=steps.checked)


def searched_by_transformers(model: Any, read: Any, mask: Any, starts: Any, **settings: Any) -> list[list[int]]:
    end = model.config.eos_token_id
    marks = {"eos_token_id": end, "pad_token_id": model.config.pad_token_id}
    search = GenerationConfig(do_sample=False, max_new_tokens=LONGEST, use_cache=False, **marks, **settings)
    given = {"encoder_outputs": type(read)(**read), "attention_mask": mask, "decoder_input_ids": starts}
    return model.generate(**given, generation_config=search)[:, 2:].tolist()


def until_end(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end) + 1] if end in ids else ids


def test_it_generates_what_transformers_generates(model: SearchedByTransformers) -> None:
    read, mask, starts = read_sources(model)
    end = model.config.eos_token_id
    limits = [LONGEST - row % 3 for row in range(ROWS)]
    found = search(model, read, mask, starts, limits)
    written = searched_by_transformers(model, read, mask, starts, num_beams=1)
    wanted = [until_end(ids[:limit], end) for ids, limit in zip(written, limits, strict=True)]
    assert [text.ids for text in found] == wanted
    lengths = {len(ids) for ids in wanted}
    assert len(lengths) > 4 and min(lengths) < 8 and max(lengths) > 25, "rows leave the batch one after the other"


def test_beams_find_what_transformers_finds(model: SearchedByTransformers) -> None:
    read, mask, starts = read_sources(model)
    end = model.config.eos_token_id
    with torch.no_grad():
        found = search_beams(TorchSteps(model, read, mask), starts.tolist(), [LONGEST] * ROWS, end, 3)
    written = searched_by_transformers(model, read, mask, starts, num_beams=3)
    wanted = {row: until_end(ids, end) for row, ids in enumerate(written) if end in ids}
    assert len(wanted) > ROWS / 3, "of texts that do not end, ours prefers one that does"
    assert {row: found[row][0].ids for row in wanted} == wanted
    greedy = search(model, read, mask, starts, [LONGEST] * ROWS)
    assert any(texts[0].ids != text.ids for texts, text in zip(found, greedy, strict=True))


def test_tokens_come_with_their_log_probability(model: SearchedByTransformers) -> None:
    read, mask, starts = read_sources(model)
    for row, found in enumerate(search(model, read, mask, starts, [LONGEST] * ROWS)):
        text = torch.tensor([[*starts[row].tolist(), *found.ids]])
        one = type(read)(**{name: value[row : row + 1] for name, value in read.items()})
        with torch.no_grad():
            logs = model(encoder_outputs=one, attention_mask=mask[row : row + 1], decoder_input_ids=text).logits[0]
        wanted = [float(logs[place + 1, token]) for place, token in enumerate(found.ids)]
        assert found.scores == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("checked", [30, 10_000])
def test_drafts_change_no_text(model: SearchedByTransformers, checked: int) -> None:
    read, mask, starts = read_sources(model)
    end, limits = model.config.eos_token_id, [LONGEST - row % 3 for row in range(ROWS)]
    plain = search(model, read, mask, starts, limits)

    def draft(row: int, ids: Sequence[int]) -> list[int]:
        """Right tokens, one wrong one, then right ones that count for nothing."""
        rest = plain[row].ids[len(ids) :]
        return [*rest[: row % 5], 9, *rest[row % 5 + 1 :]]

    steps = TorchSteps(model, read, mask)
    steps.checked = checked
    passes: list[int] = []
    advance = steps.advance
    steps.advance = lambda *given: passes.append(1) or advance(*given)  # type: ignore[method-assign]
    with torch.no_grad():
        found = search_greedily(steps, starts.tolist(), limits, end, draft, checked=checked)
    assert [text.ids for text in found] == [text.ids for text in plain]
    for text, other in zip(found, plain, strict=True):
        assert text.scores == pytest.approx(other.scores, abs=1e-3)
    if checked > ROWS * LONGEST:
        assert len(passes) < LONGEST


def test_it_searches_in_half_precision(model: SearchedByTransformers) -> None:
    """As development rows are decoded while training on a GPU: layers compute in bfloat16, norms do not."""
    read, mask, starts = read_sources(model)
    plain = search(model, read, mask, starts, [LONGEST] * ROWS)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        half = search(model, model.get_encoder()(read["source_ids"], mask), mask, starts, [LONGEST] * ROWS)
    assert sum(text.ids[0] == other.ids[0] for text, other in zip(plain, half, strict=True)) > ROWS / 2
