"""TorchGenerator on tiny models that are built here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch runtime needs torch")
transformers = pytest.importorskip("transformers", reason="the torch runtime needs transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    GenerationMixin,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from teo.errors import InputError, ModelError  # noqa: E402
from teo.layouts import Marker, Pieces  # noqa: E402
from teo.runtime.torch_codec import Codec  # noqa: E402
from teo.runtime.torch_generator import TorchGenerator, choose_device, load_model  # noqa: E402

SOURCES: list[Pieces] = [
    (Marker.CLS, "ab", Marker.SEP),
    (Marker.CLS, "hello there", Marker.SEP, "you", Marker.SEP),
    (Marker.CLS, "xyz u", Marker.SEP),
    (Marker.CLS, "q", Marker.SEP),
    (Marker.CLS, "a longer turn than those", Marker.SEP, "b", Marker.SEP),
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make_tokenizer() -> PreTrainedTokenizerFast:
    names = ["<pad>", "<s>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz "]
    tokenizer = Tokenizer(models.WordLevel({name: k for k, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", **special)


def make_bart(**settings: Any) -> Any:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    torch.manual_seed(1)
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=64,
            d_model=32,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_position_embeddings=64,
            init_std=0.6,
            **sizes,
            **ids,
            **settings,
        )
    )


def make_t5() -> Any:
    torch.manual_seed(2)
    config = T5Config(
        vocab_size=64, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0, eos_token_id=2
    )
    model = T5ForConditionalGeneration(config)
    with torch.no_grad():
        model.shared.weight.mul_(0.2)
    return model


def make_own() -> Any:
    from teo.models import TeoConfig, TeoForConditionalGeneration

    class SearchedByTransformers(TeoForConditionalGeneration, GenerationMixin):
        """The backbone with transformers' own search, to compare ours with."""

    torch.manual_seed(4)
    config = TeoConfig(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=1, heads=2, d_ff=64)
    config.pad_token_id, config.eos_token_id, config.decoder_start_token_id, config.sep_token_id = 0, 2, 1, 2
    model = SearchedByTransformers(config)
    with torch.no_grad():
        model.embedding.weight.mul_(25)  # far from uniform, so that no two texts tie
    return model


def make_generator(model: Any, batch_size: int = 2) -> TorchGenerator:
    codec = Codec(make_tokenizer(), model.config)
    assert len(codec) <= model.config.vocab_size
    return TorchGenerator(model, codec, max_new_tokens=10, batch_size=batch_size, source_limit=40)


@pytest.fixture(params=[make_bart, make_t5, make_own], ids=["bart", "t5", "own"])
def generator(request: pytest.FixtureRequest) -> TorchGenerator:
    return make_generator(request.param())


def reference_scores(generator: TorchGenerator, source: Pieces, target: list[int], prompt: Pieces = ()) -> list[float]:
    """The log-probability of each token, by one plain forward pass per token."""
    start = generator.codec.decoder_start(prompt)
    ids = torch.tensor([generator.codec.encode(source)])
    scores = []
    for k, token in enumerate(target):
        with torch.no_grad():
            logits = generator.model(input_ids=ids, decoder_input_ids=torch.tensor([[*start, *target[:k]]])).logits
        scores.append(float(logits[0, -1].log_softmax(-1)[token]))
    return scores


def searched_ids(generator: TorchGenerator, source: Pieces, prompt: Pieces = (), beams: int = 1) -> list[int]:
    """What the model's own `generate` writes for one source."""
    start = generator.codec.decoder_start(prompt)
    with torch.no_grad():
        written = generator.model.generate(
            torch.tensor([generator.codec.encode(source)]),
            decoder_input_ids=torch.tensor([start]),
            do_sample=False,
            num_beams=beams,
            max_new_tokens=10,
            forced_eos_token_id=None,
            use_cache=False,
        )
    ids = written[0, len(start) :].tolist()
    end = generator.codec.eos_id
    return ids[: ids.index(end) + 1] if end in ids else ids


def test_greedy_equals_the_models_own_generate(generator: TorchGenerator) -> None:
    for source, one in zip(SOURCES, generator.generate(SOURCES), strict=True):
        expected = searched_ids(generator, source)
        assert one.pieces == generator.codec.decode(expected)
        assert len(one.token_scores) == len(expected)
        assert one.token_scores == pytest.approx(reference_scores(generator, source, expected), abs=1e-4)


def test_alone_or_in_a_batch_is_the_same(generator: TorchGenerator) -> None:
    together = generator.generate(SOURCES)
    for source, one in zip(SOURCES, together, strict=True):
        alone = generator.generate([source])[0]
        assert alone.pieces == one.pieces
        assert alone.token_scores == pytest.approx(one.token_scores, abs=1e-4)
    assert [one.pieces for one in generator.generate(SOURCES[::-1])] == [one.pieces for one in together[::-1]]


def test_scores_are_the_log_probabilities(generator: TorchGenerator) -> None:
    targets: list[Pieces] = [("ab",), (Marker.INSERT, "you"), (), ("a longer one",), ("b",)]
    found = generator.score(SOURCES, targets)
    for source, target, score in zip(SOURCES, targets, found, strict=True):
        ids = generator.codec.encode_target(target)
        assert score == pytest.approx(sum(reference_scores(generator, source, ids)), abs=1e-4)


def test_one_source_with_many_targets_is_read_once(generator: TorchGenerator) -> None:
    reads = []
    encoder = generator.model.get_encoder()
    hook = encoder.register_forward_hook(lambda _module, _args, output: reads.append(output.last_hidden_state.shape[0]))
    generator.batch_size = 8
    targets: list[Pieces] = [("a",), ("b",), ("c",), ("d",)]
    together = generator.score([SOURCES[1]] * 4, targets)
    hook.remove()
    assert reads == [1]
    assert together == pytest.approx([generator.score([SOURCES[1]], [target])[0] for target in targets], abs=1e-4)


def test_prompts_start_the_text_and_are_not_returned(generator: TorchGenerator) -> None:
    prompts: list[Pieces] = [
        (Marker.WRITE_REWRITE,),
        (),
        (Marker.INSERT, "ab", Marker.SEP),
        (Marker.WRITE_REWRITE,),
        (),
    ]
    for source, prompt, one in zip(SOURCES, prompts, generator.generate(SOURCES, prompts=prompts), strict=True):
        expected = searched_ids(generator, source, prompt)
        assert one.pieces == generator.codec.decode(expected)
        assert one.token_scores == pytest.approx(reference_scores(generator, source, expected, prompt), abs=1e-4)
    scores = generator.score(SOURCES, [("a",)] * 5, prompts=prompts)
    ids = generator.codec.encode_target(("a",))
    expected_scores = [
        sum(reference_scores(generator, source, ids, prompt)) for source, prompt in zip(SOURCES, prompts, strict=True)
    ]
    assert scores == pytest.approx(expected_scores, abs=1e-4)


@pytest.mark.parametrize("make", [make_bart, make_t5], ids=["bart", "t5"])  # test_torch_steps has that of our own
def test_beams_equal_the_models_own(make: Callable[[], Any]) -> None:
    generator = make_generator(make())
    for source, one in zip(SOURCES, generator.generate(SOURCES, beams=4), strict=True):
        expected = searched_ids(generator, source, beams=4)
        assert one.pieces == generator.codec.decode(expected)
        assert one.token_scores == pytest.approx(reference_scores(generator, source, expected), abs=1e-4)


def test_several_texts_come_with_their_scores_the_most_probable_first(generator: TorchGenerator) -> None:
    several = generator.generate_several(SOURCES, count=4)
    best = generator.generate(SOURCES, beams=4)
    for source, texts, one in zip(SOURCES, several, best, strict=True):
        assert 1 <= len(texts) <= 4
        assert one.pieces in [text.pieces for text in texts]
        scores = [text.score for text in texts]
        assert scores == sorted(scores, reverse=True)
        assert len({text.token_scores for text in texts}) == len(texts)
        alone = generator.generate_several([source], count=4)[0]
        assert [text.pieces for text in alone] == [text.pieces for text in texts]
    assert any(len(texts) == 4 for texts in several)
    assert generator.generate_several(SOURCES, count=1) == [[one] for one in generator.generate(SOURCES)]


def test_a_checkpoints_own_generation_settings_do_not_count() -> None:
    plain = make_generator(make_bart()).generate(SOURCES)
    model = make_bart()
    generator = make_generator(model)
    model.generation_config.min_length = 9
    model.generation_config.forced_bos_token_id = 5
    assert [one.pieces for one in generator.generate(SOURCES)] == [one.pieces for one in plain]
    assert model.generation_config.forced_bos_token_id == 5  # and are left as they were


def test_nothing_to_do(generator: TorchGenerator) -> None:
    assert generator.generate([]) == []
    assert generator.score([], []) == []


def test_measure_and_limit(generator: TorchGenerator) -> None:
    assert generator.source_limit == 40
    assert generator.measure("abc") == len(generator.codec.encode(("abc", Marker.SEP)))


def test_unequal_lists_are_refused(generator: TorchGenerator) -> None:
    with pytest.raises(InputError, match="score: expected a target per source, found 5 and 1"):
        generator.score(SOURCES, [("a",)])
    with pytest.raises(InputError, match="prompts: expected one per source, found 1 for 5"):
        generator.generate(SOURCES, prompts=[()])


def test_a_source_beyond_the_positions_is_refused() -> None:
    with pytest.raises(InputError, match=r"source: expected at most 64 tokens, .* found 103; shorten the utterance"):
        make_generator(make_bart()).generate([(Marker.CLS, "a" * 100, Marker.SEP)])


def test_saved_and_loaded_it_writes_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    generator = make_generator(make_bart())
    generator.model.save_pretrained(tmp_path)
    generator.codec.tokenizer.save_pretrained(tmp_path)
    capfd.readouterr()
    loaded = TorchGenerator.from_pretrained(tmp_path, device="cpu", max_new_tokens=10)
    assert "Loading" not in capfd.readouterr().err  # bars are for terminals
    assert [one.pieces for one in loaded.generate(SOURCES)] == [one.pieces for one in generator.generate(SOURCES)]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "device: expected auto, cpu or cuda, found 'gpu'"),
        ("cuda:7", "device: 'cuda:7' was asked for, but torch finds 0 CUDA devices; use --device cpu"),
        ("cuda", "device: 'cuda' was asked for, but torch finds 0 CUDA devices; use --device cpu"),
    ],
)
def test_a_device_that_is_not_there(device: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError) as caught:
        choose_device(device)
    assert str(caught.value) == message
    assert choose_device("auto") == "cpu"


def test_attention_of_many_shapes_is_not_left_to_cudnn() -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_bf16_is_for_cuda(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bfloat16: expected a CUDA device, found 'cpu'; leave it out"):
        TorchGenerator.from_pretrained(tmp_path, device="cpu", bf16=True)


def test_folders_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a model folder, found none"):
        load_model(tmp_path / "absent")
    with pytest.raises(ModelError, match=r"expected a model with its config\.json, found none"):
        load_model(tmp_path)
    BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"expected weights \(model\.safetensors\), found none"):
        load_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="not a sequence-to-sequence model") as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_model_without_its_tokenizer(tmp_path: Path) -> None:
    make_bart().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="expected a tokenizer beside the model, found none"):
        TorchGenerator.from_pretrained(tmp_path, device="cpu")


def test_embeddings_without_room_for_the_markers(tmp_path: Path) -> None:
    model = make_bart()
    model.resize_token_embeddings(30)
    model.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"expected embeddings for the tokenizer's \d+ tokens, found 30"):
        TorchGenerator.from_pretrained(tmp_path, device="cpu")
