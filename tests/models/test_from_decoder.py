"""A backbone built of a pretrained decoder's layers: the same states as the source, and embeddings by text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from teo.cli.app import app  # noqa: E402
from teo.errors import InputError, ModelError  # noqa: E402
from teo.models.from_decoder import build_from_decoder, load_gguf, pieces_of, spaced  # noqa: E402
from teo.models.tokenizer import train_tokenizer  # noqa: E402

TEXTS = ["the film Batman is great", "who acted in the film", "苹果多少钱", "is it cheap? 42"] * 3
LAYERS = 5


@pytest.fixture(scope="module")
def source_tokenizer() -> Tokenizer:
    # Bytes alone: merges would depend on how ties between them fall.
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=258, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"])
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def source(source_tokenizer: Tokenizer) -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(
        vocab_size=source_tokenizer.get_vocab_size(),
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=LAYERS,
        num_attention_heads=3,
        num_key_value_heads=1,
        bos_token_id=0,
        eos_token_id=1,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, size=700, alphabet=120)  # room for every merge


def build(source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer, *layers: int, seed: int = 0) -> Any:
    return build_from_decoder(source.state_dict(), source.config, tokenizer, source_tokenizer, *layers, seed=seed)


@pytest.mark.parametrize(
    ("count", "total", "layers"),
    [
        (12, 30, [0, 3, 5, 8, 11, 13, 16, 18, 21, 24, 26, 29]),
        (2, 30, [0, 29]),
        (3, 30, [0, 14, 29]),
        (1, 30, [0]),
        (4, 4, [0, 1, 2, 3]),
    ],
)
def test_layers_are_taken_at_even_spacing(count: int, total: int, layers: list[int]) -> None:
    assert spaced(count, total) == layers


def test_more_layers_than_there_are_is_an_error() -> None:
    with pytest.raises(InputError, match="expected 1 to 30, as many as the pretrained decoder has, found 31"):
        spaced(31, 30)


def test_with_all_layers_and_no_source_the_decoder_is_the_source_model(
    source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer
) -> None:
    built = build(source, tokenizer, source_tokenizer, 1, LAYERS).eval()
    ids = torch.tensor([source_tokenizer.encode("the film Batman is cheap? 42").ids])
    with torch.no_grad():
        for layer in built.decoder.layers:
            layer.cross_attention.out.weight.zero_()
        built.decoder.embedding = source.get_input_embeddings()
        states = built.decoder(ids, torch.zeros(1, 2, 48))
        expected = source(ids, output_hidden_states=True).hidden_states[-1]
    assert expected.abs().max() > 0.5
    torch.testing.assert_close(states, expected, atol=1e-4, rtol=1e-4)


def test_the_encoder_reads_both_sides(source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> None:
    built = build(source, tokenizer, source_tokenizer, 2, 1).eval()
    ids = torch.tensor([[2, 300, 301, 302, 3]])
    changed = ids.clone()
    changed[0, 3] = 303
    with torch.no_grad():
        first, second = (built.encoder(one).last_hidden_state[0, 1] for one in (ids, changed))
    assert not torch.allclose(first, second)


def test_attention_over_the_source_is_near_zero_at_first(
    source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer
) -> None:
    built = build(source, tokenizer, source_tokenizer, 2, 2).eval()
    ids = torch.tensor([[2, 300, 301]])
    with torch.no_grad():
        near, far = (built.decoder(ids, scale * torch.randn(1, 4, 48)) for scale in (0.0, 1.0))
    assert (near - far).abs().max() < 0.1 * near.abs().mean()
    assert float(built.encoder.turn_embedding.weight.abs().max()) == 0.0
    assert built.encoder.embedding.weight is built.decoder.embedding.weight is built.embedding.weight


@pytest.mark.parametrize(
    ("token", "text", "why"),
    [
        ("▁the", " the", "the marker of a leading space is a space"),
        ("film", "film", "no marker, no space"),
        ("▁42", " 42", "several pieces"),
        ("?", "?", "a sign"),
        ("苹", None, "Chinese is not looked up"),
        ("<0x41>", None, "a byte is no text"),
    ],
)
def test_pieces_are_those_of_the_same_text(token: str, text: str | None, why: str, source_tokenizer: Tokenizer) -> None:
    expected = [] if text is None else source_tokenizer.encode(text, add_special_tokens=False).ids
    assert pieces_of(token, source_tokenizer) == expected, why


def test_embeddings_are_means_of_pieces_or_drawn_alike(
    source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer
) -> None:
    built = build(source, tokenizer, source_tokenizer, 2, 1)
    table, old = built.embedding.weight.detach(), source.get_input_embeddings().weight.detach()
    learned = [str(tokenizer.id_to_token(k)) for k in range(len(table)) if str(tokenizer.id_to_token(k))[0] not in "[<"]
    looked_up = {token: pieces for token in learned if (pieces := pieces_of(token, source_tokenizer))}
    assert any(token.startswith("▁") and len(token) > 2 for token in looked_up)
    assert any(len(pieces) > 1 for pieces in looked_up.values())
    for token, pieces in looked_up.items():
        torch.testing.assert_close(table[tokenizer.token_to_id(token)], old[pieces].mean(0))
    torch.testing.assert_close(table[tokenizer.token_to_id("[CLS]")], old[0])
    torch.testing.assert_close(table[tokenizer.token_to_id("[EOS]")], old[1])
    assert float(table[0].abs().max()) == 0.0, "padding"
    drawn = table[[k for k in range(len(table)) if str(tokenizer.id_to_token(k)).startswith("<0x")]]
    torch.testing.assert_close(drawn.std(), old.std(), rtol=0.1, atol=0)
    again, other = (build(source, tokenizer, source_tokenizer, 2, 1, seed=seed) for seed in (0, 1))
    assert torch.equal(again.embedding.weight, built.embedding.weight), "the same seed draws the same"
    assert not torch.equal(other.embedding.weight, built.embedding.weight)


def test_other_kinds_of_layers_are_refused(source: Any, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> None:
    config = transformers.GPT2Config()
    with pytest.raises(ModelError, match="expected layers of Llama's form"):
        build_from_decoder(source.state_dict(), config, tokenizer, source_tokenizer)


def test_a_missing_or_wrong_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a GGUF file, found none"):
        load_gguf(tmp_path / "x.gguf")
    pytest.importorskip("gguf", reason="reading GGUF files needs gguf")
    (tmp_path / "y.gguf").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"y\.gguf: not a decoder that transformers can load"):
        load_gguf(tmp_path / "y.gguf")


def test_the_command_writes_a_folder_to_start_from(
    source: Any,
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from teo.training.backbones import load_base

    found = (source.state_dict(), source.config, source_tokenizer)
    monkeypatch.setattr("teo.models.from_decoder.load_gguf", lambda path: found)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    out = tmp_path / "out"
    options = ["--tokenizer", str(tmp_path / "tokenizer.json"), "--encoder-layers", "3", "--decoder-layers", "2"]
    done = CliRunner().invoke(app, ["build", "x.gguf", str(out), *options], catch_exceptions=False)
    assert done.stdout.strip().endswith(str(out))
    model, codec = load_base(str(out))
    assert (model.config.encoder_layers, model.config.decoder_layers, model.config.kv_heads) == (3, 2, 1)
    assert len(codec) == tokenizer.get_vocab_size()
    torch.testing.assert_close(
        model.encoder.layers[1].feed_forward.gate.weight,
        source.state_dict()["model.layers.2.mlp.gate_proj.weight"],
        atol=1e-3,
        rtol=1e-3,
    )
