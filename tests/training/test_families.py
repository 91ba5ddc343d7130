"""Each family of backbone: trained for two steps on tiny models saved locally, saved, loaded, decoded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from family_models import build_family
from teo.data.row import Row
from teo.errors import ConfigError, ModelError
from teo.layouts import Layout, Marker, dialogue_source, operation_pieces, stage2_source
from teo.loading import ModelFolder, open_model
from teo.runtime.torch_generator import TorchGenerator
from teo.training.backbones import build_random, load_base
from teo.training.config import RandomModel, TrainConfig
from teo.training.finetune import train
from teo.training.saving import save_weights
from teo.training.settings import build
from teo.training.synthetic import generate_rows, write_rows

torch.set_num_threads(1)
ROWS = generate_rows(24)
TEXTS = [text for row in ROWS for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]


def save_base(family: str, folder: Path) -> Path:
    """Write a tiny base model of a family, as a hub would give it, and return its folder."""
    model, codec = build_family(family, folder.with_name("parts"), TEXTS)
    save_weights(model, codec, folder)
    return folder


def tiny_config(output: Path, base: Path | str, data: Path, **changes: Any) -> TrainConfig:
    tree = {
        "output": str(output),
        "device": "cpu",
        "model": {"base": str(base), "source_limit": 64, "target_limit": 32},
        "data": {"path": str(data)},
        "optimisation": {"steps": 2, "batch_size": 4, "learning_rate": 1e-3},
        "evaluation": {"batch_size": 8},
        "writing": {"plots": False},
        **changes,
    }
    return build(TrainConfig, tree, "test")


def sources(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [dialogue_source(row.dialogue) for row in rows]


@pytest.mark.train
@pytest.mark.parametrize("family", ["bart", "bart-zh", "t5", "marian", "teo"])
def test_a_family_is_trained_saved_loaded_and_decoded(family: str, tmp_path: Path) -> None:
    if family == "marian":
        pytest.importorskip("sentencepiece")
    base = save_base(family, tmp_path / "base")
    data = write_rows(tmp_path / "data", rows={"train": 16, "dev": 4, "test": 4})
    result = train(tiny_config(tmp_path / "model", base, data))
    assert set(result.em) == {"stage1", "stage2"}
    folder = ModelFolder.load(tmp_path / "model")
    assert {name: role.folder for name, role in folder.roles.items()} == {"stage1": "stage1", "stage2": "stage2"}
    for role in folder.roles.values():
        generator = TorchGenerator.from_pretrained(tmp_path / "model" / role.folder, device="cpu", max_new_tokens=12)
        operations = operation_pieces((), "position")
        written = generator.generate([*sources(ROWS[:2]), stage2_source(ROWS[0].dialogue, operations)])
        assert len(written) == 3
        assert all(isinstance(piece, str) for one in written for piece in one.pieces)
        embedded = generator.model.get_input_embeddings().weight.shape[0]
        assert embedded >= len(generator.codec), "every marker has an embedding"
        assert folder.layout == Layout(1 if family == "teo" else 2), "our own backbone was pretrained on the first"
        known = set(generator.codec.tokenizer.get_vocab())
        assert (Marker.TURN.value in known) == (family != "teo"), "a token only where the layout has it"
        text = ROWS[0].rewrite
        assert generator.codec.decode(generator.codec.encode_target((Marker.INSERT, text)))[0] is Marker.INSERT
        if family != "teo":  # which transformers never searches with
            assert generator.model.generation_config.num_beams in {None, 1}, "greedy, whatever the base was set to"


@pytest.mark.train
def test_a_model_with_speakers_reads_them_and_lends_its_stage_1_to_its_like_only(tmp_path: Path) -> None:
    base = save_base("bart", tmp_path / "base")
    data = write_rows(tmp_path / "data", rows={"train": 16, "dev": 4, "test": 4})
    limits = {"source_limit": 64, "target_limit": 32}
    with_speakers = {"base": str(base), "speakers": True, **limits}
    train(tiny_config(tmp_path / "model", base, data, model=with_speakers))
    model = open_model(tmp_path / "model", device="cpu")
    assert model.folder.layout == Layout(2, speakers=True)
    stages = model.load(["stage1"])
    assert stages.layout == model.folder.layout
    codec = stages["stage1"].generator.codec  # type: ignore[attr-defined]
    plain, marked = (codec.encode(dialogue_source(ROWS[0].dialogue, layout)) for layout in (Layout(2), stages.layout))
    assert len(marked) == len(plain) + len(ROWS[0].dialogue.history) + 1, "a mark for each turn and the utterance"
    borrowed = {"base": str(base), "stage1": str(tmp_path / "model"), **limits}
    with pytest.raises(ConfigError, match=r"model.layout: expected that of .* \(version 2, speakers true\)"):
        train(tiny_config(tmp_path / "other", base, data, model=borrowed))


@pytest.mark.train
def test_stage_2_starts_from_stage_1(tmp_path: Path) -> None:
    base = save_base("bart", tmp_path / "base")
    data = write_rows(tmp_path / "data", rows={"train": 16, "dev": 4, "test": 4})
    train(
        tiny_config(tmp_path / "model", base, data, optimisation={"steps": 1, "learning_rate": 1e-9, "batch_size": 4})
    )
    weights = [
        load_base(str(tmp_path / "model" / role))[0].get_input_embeddings().weight for role in ("stage1", "stage2")
    ]
    assert torch.allclose(weights[0], weights[1], atol=1e-6)


def test_settings_of_a_checkpoint_that_would_change_greedy_are_dropped(tmp_path: Path) -> None:
    model, codec = build_random(RandomModel(width=16, layers=1, heads=2), TEXTS)
    model.generation_config.num_beams = 4
    model.generation_config.no_repeat_ngram_size = 3
    model.generation_config.forced_bos_token_id = 0
    save_weights(model, codec, tmp_path / "base")
    loaded, _ = load_base(str(tmp_path / "base"))
    assert loaded.generation_config.num_beams in {None, 1}
    assert not loaded.generation_config.no_repeat_ngram_size
    assert loaded.generation_config.forced_bos_token_id is None


def test_a_base_without_a_tokenizer_is_one_clear_line(tmp_path: Path) -> None:
    model, _ = build_random(RandomModel(width=16, layers=1, heads=2), TEXTS)
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="expected a tokenizer beside the model, found none of"):
        load_base(str(tmp_path))


def test_a_folder_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a model folder, found no config\.json in it"):
        load_base(str(tmp_path))


def test_a_model_of_another_kind_is_one_clear_line(tmp_path: Path) -> None:
    from transformers import BertConfig

    _, codec = build_random(RandomModel(width=16, layers=1, heads=2), TEXTS)
    codec.tokenizer.save_pretrained(tmp_path)
    BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="expected a sequence-to-sequence model such as BART, T5 or Marian") as error:
        load_base(str(tmp_path))
    assert "\n" not in str(error.value)
