"""OnnxGenerator on tiny exported models: the same texts as torch, and the same bytes in any batch."""

from __future__ import annotations

import json
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="exporting a model needs torch")
pytest.importorskip("transformers", reason="exporting a model needs transformers")
pytest.importorskip("onnx", reason="exporting a model needs onnx")

from teo.errors import InputError, ModelError  # noqa: E402
from teo.export.export import export_model  # noqa: E402
from teo.layouts import Marker, Pieces  # noqa: E402
from teo.loading import ModelFolder, Role, is_exported, open_model  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.storage import quantise  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402
from teo.runtime.generator import Generated  # noqa: E402
from teo.runtime.onnx_generator import OnnxGenerator, batches, encoder_parts  # noqa: E402
from teo.runtime.onnx_session import open_graphs  # noqa: E402
from teo.runtime.search import search_greedily  # noqa: E402
from teo.runtime.torch_codec import Codec  # noqa: E402
from teo.runtime.torch_generator import TorchGenerator  # noqa: E402

LINES = [
    "I think Batman is very handsome.",
    "The poster looks a bit like Ben Affleck.",
    "It is he who acted.",
    "天龙八部里你最喜欢谁",
    "我最喜欢乔峰了，为什么呢",
    "what is the phone number of the restaurant in the north?",
]
WORDS = [
    *"天龙八部你我他谁",
    "Batman",
    "Ben",
    "Affleck",
    "he",
    "it",
    "is",
    "the",
    "restaurant",
    "north?",
    "[SEP]",
    "🎉",
]
PROMPTS: list[Pieces] = [(Marker.WRITE_OPERATIONS,), (Marker.WRITE_REWRITE,), (Marker.WRITE_PLACED,)]


def make_folder(path: Path) -> Path:
    """A tiny model folder with random weights, far from uniform so that no two texts tie."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = train_tokenizer(LINES * 3, size=400)
    config = TeoConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        heads=4,
        d_ff=64,
    )
    model = TeoForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        model.embedding.weight.mul_(1.5)
        model.copy_head.gate.bias.add_(1.0)
        model.output_bias[config.eos_token_id] += 6.0
    model.save_pretrained(path / "weights")
    wrap_tokenizer(tokenizer).save_pretrained(path / "weights")
    roles = dict(zip(("fused", "direct", "fast"), PROMPTS, strict=True))
    ModelFolder({role: Role("weights", tuple(prompt)) for role, prompt in roles.items()}, variant="fused").save(path)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("trained") / "tiny")


@pytest.fixture(scope="module")
def float_form(trained: Path) -> Path:
    return export_model(trained, trained.with_name("float"), quantize="none").path


@pytest.fixture(scope="module")
def int8_form(trained: Path) -> Path:
    return export_model(trained, trained.with_name("int8")).path


@pytest.fixture(scope="module")
def float_generator(float_form: Path) -> OnnxGenerator:
    return OnnxGenerator(float_form / "onnx", threads=1, max_new_tokens=14)


@pytest.fixture(scope="module")
def int8_generator(int8_form: Path) -> OnnxGenerator:
    return OnnxGenerator(int8_form / "onnx", threads=1, max_new_tokens=14)


@pytest.fixture(scope="module")
def torch_generator(trained: Path) -> TorchGenerator:
    return TorchGenerator.from_pretrained(trained / "weights", device="cpu", max_new_tokens=14)


def random_sources(count: int, seed: int) -> tuple[list[Pieces], list[Pieces]]:
    rng = random.Random(seed)
    sources, prompts = [], []
    for _ in range(count):
        pieces: list[str] = [Marker.CLS]
        for _ in range(rng.randint(1, 5)):
            pieces += [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))), Marker.SEP]
        sources.append(tuple(pieces))
        prompts.append(rng.choice(PROMPTS))
    return sources, prompts


@pytest.mark.slow
def test_float_form_is_torch_greedy_on_every_row(
    float_generator: OnnxGenerator, torch_generator: TorchGenerator
) -> None:
    sources, prompts = random_sources(300, seed=1)
    written = float_generator.generate(sources, prompts=prompts)
    assert len({one.pieces for one in written}) > 40, "different sources get different texts"
    assert 50 < sum(len(one.token_scores) < 14 for one in written) < 290, "some end, some run into the limit"
    codec, wrong = torch_generator.codec, 0
    steps = float_generator.read  # the ids themselves: a text may have been written in other tokens than it is read in
    for source, prompt, one in zip(sources, prompts, written, strict=True):
        start = codec.decoder_start(prompt)
        text = search_greedily(steps([tuple(codec.encode(source))]), [start], [len(one.token_scores)], codec.eos_id)[0]
        assert tuple(text.scores) == one.token_scores
        given = torch.tensor([[*start, *text.ids[:-1]]])
        with torch.no_grad():
            logits = torch_generator.model(
                input_ids=torch.tensor([codec.encode(source)]), decoder_input_ids=given
            ).logits
        said = logits[0, len(start) - 1 :]
        wrong += said.argmax(-1).tolist() != text.ids
        picked = said.gather(-1, torch.tensor(text.ids)[:, None])[:, 0]
        np.testing.assert_allclose(text.scores, picked.numpy(), atol=2e-4)
    assert wrong == 0


def test_float_form_scores_what_torch_scores(float_generator: OnnxGenerator, torch_generator: TorchGenerator) -> None:
    sources, prompts = random_sources(40, seed=2)
    targets: list[Pieces] = [(Marker.INSERT, "Ben", Marker.SEP, "he is 天龙")] * 20 + [("it",)] * 20
    ours = float_generator.score(sources, targets, prompts=prompts)
    theirs = torch_generator.score(sources, targets, prompts=prompts)
    np.testing.assert_allclose(ours, theirs, atol=2e-3, rtol=1e-4)


def test_a_text_scores_the_sum_of_its_tokens(float_generator: OnnxGenerator) -> None:
    sources, prompts = random_sources(30, seed=3)
    found = float_generator.generate(sources, prompts=prompts)
    ended = [k for k, one in enumerate(found) if len(one.token_scores) < float_generator.max_new_tokens]
    assert len(ended) >= 5
    for k in ended:
        ids = float_generator.codec.encode_target(found[k].pieces)
        if len(ids) == len(found[k].token_scores):  # a text may have been written in other tokens than it is read in
            scored = float_generator.score([sources[k]], [found[k].pieces], prompts=[prompts[k]])[0]
            assert scored == pytest.approx(found[k].score, abs=1e-3)


def test_wider_beams_find_other_texts_and_seldom_worse_ones(float_generator: OnnxGenerator) -> None:
    sources, prompts = random_sources(40, seed=4)
    greedy, wide = (float_generator.generate(sources, prompts=prompts, beams=beams) for beams in (1, 4))
    per_token = [[one.score / len(one.token_scores) for one in written] for written in (greedy, wide)]
    assert sum(after >= before - 1e-6 for before, after in zip(*per_token, strict=True)) >= 28
    assert [one.pieces for one in wide] != [one.pieces for one in greedy]


@pytest.mark.parametrize("form", ["float_generator", "int8_generator"])
def test_several_texts_are_the_same_bits_alone_and_in_any_batch(
    form: str, trained: Path, request: pytest.FixtureRequest
) -> None:
    generator: OnnxGenerator = request.getfixturevalue(form)
    sources, prompts = random_sources(24, seed=9)
    alone = [generator.generate_several([s], prompts=[p], count=5)[0] for s, p in zip(sources, prompts, strict=True)]
    assert {len(texts) for texts in alone} <= {1, 2, 3, 4, 5}
    assert sum(len(texts) == 5 for texts in alone) > 12
    for texts in alone:
        scores = [one.score for one in texts]
        assert scores == sorted(scores, reverse=True)
        assert len(set(texts)) == len(texts)
    for size, seed in ((3, 1), (16, 2), (60, 3)):
        order = random.Random(seed).sample(range(24), 24)
        generator.batch_size = size
        together = generator.generate_several([sources[k] for k in order], prompts=[prompts[k] for k in order], count=5)
        assert together == [alone[k] for k in order]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["float_generator", "int8_generator"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_row_gets_the_same_bits_alone_and_in_any_batch(
    form: str, beams: int, trained: Path, request: pytest.FixtureRequest
) -> None:
    generator: OnnxGenerator = request.getfixturevalue(form)
    sources, prompts = random_sources(60, seed=5)
    alone = [generator.generate([s], prompts=[p], beams=beams)[0] for s, p in zip(sources, prompts, strict=True)]
    targets: list[Pieces] = [("he",), (Marker.INSERT, "Ben Affleck 天龙八部 is the restaurant north? it is he")] * 30
    scored = [generator.score([s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    for size, seed in ((7, 1), (32, 2), (60, 3)):
        order = random.Random(seed).sample(range(60), 60)
        generator.batch_size = size
        together = generator.generate([sources[k] for k in order], prompts=[prompts[k] for k in order], beams=beams)
        assert together == [alone[k] for k in order]
        assert generator.score([sources[k] for k in order], [targets[k] for k in order]) == [scored[k] for k in order]


def test_threads_share_a_generator(int8_generator: OnnxGenerator) -> None:
    sources, prompts = random_sources(24, seed=6)
    expected = int8_generator.generate(sources, prompts=prompts)
    results: dict[int, Any] = {}

    def work(k: int) -> None:
        results[k] = [int8_generator.generate([s], prompts=[p])[0] for s, p in zip(sources, prompts, strict=True)]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(results[k] == expected for k in range(4))


def test_int8_stays_near_float(int8_generator: OnnxGenerator, float_generator: OnnxGenerator) -> None:
    sources, prompts = random_sources(60, seed=7)
    targets: list[Pieces] = [("it is Ben",)] * 60
    near = np.abs(np.subtract(int8_generator.score(sources, targets), float_generator.score(sources, targets)))
    assert near.mean() < 0.6, "8 bits move a log-probability of four tokens a little"
    ours, theirs = (one.generate(sources, prompts=prompts) for one in (int8_generator, float_generator))
    assert sum(one.pieces == other.pieces for one, other in zip(ours, theirs, strict=True)) > 25


@settings(max_examples=150)
@given(
    texts=st.lists(st.text(max_size=20), max_size=4),
    markers=st.lists(st.sampled_from(list(Marker)), min_size=1, max_size=4),
)
def test_the_codec_is_the_one_of_transformers(
    texts: list[str], markers: list[Marker], int8_generator: OnnxGenerator, torch_generator: TorchGenerator
) -> None:
    ours, theirs = int8_generator.codec, torch_generator.codec
    assert isinstance(theirs, Codec)
    pieces = [piece for pair in zip(texts, markers, strict=False) for piece in pair]
    ids = ours.encode(pieces)
    assert ids == theirs.encode(pieces)
    assert ours.encode_target(pieces) == theirs.encode_target(pieces)
    assert ours.decoder_start(pieces) == theirs.decoder_start(pieces)
    assert ours.decode(ids) == theirs.decode(ids)
    assert [ours.measure(text) for text in texts] == [theirs.measure(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[SEP] [I] [CLS]", "markers in a user's text are text"),
        ("[EOS]", "so is the end token"),
        ("<0x41> ▁ ⁀", "and what the tokenizer uses itself"),
        ("a\ud800b", "a lone surrogate is read as the replacement sign"),
        ("\0\x1b[31m\u202e", "control characters"),
    ],
)
def test_any_text_is_only_text(text: str, why: str, int8_generator: OnnxGenerator) -> None:
    codec = int8_generator.codec
    ids = codec.encode_text(text)
    assert not set(ids) & set(range(12)), why
    assert codec.decode(ids) == (text.replace("\ud800", "\ufffd"),), why


def test_a_huge_text_is_measured_by_its_head(int8_generator: OnnxGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenized: list[int] = []
    real = int8_generator.codec.measure
    monkeypatch.setattr(int8_generator.codec, "measure", lambda text: tokenized.append(len(text)) or real(text))
    assert int8_generator.measure("a b " * 250_000) > int8_generator.source_limit
    assert sum(tokenized) <= 6 * int8_generator.source_limit
    long = "天" * 200 + "z" * 5000  # long in characters: its head alone does not tell
    assert int8_generator.measure(long) >= min(real(long), int8_generator.source_limit + 1)
    fitting = "Batman is " * 40
    assert int8_generator.measure(fitting) == real(fitting)


def test_batches_are_bounded_by_rows_and_padded_tokens() -> None:
    lengths = [5, 5, 5, 90, 5]
    assert list(batches(range(5), lengths, 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches(range(5), lengths, 9, tokens=20)) == [[0, 1, 2], [3], [4]], "a long row goes by itself"
    assert list(batches(range(5), lengths, 9, tokens=450)) == [[0, 1, 2, 3, 4]]
    assert list(batches(range(5), lengths, 9, tokens=449)) == [[0, 1, 2, 3], [4]], "what is padded counts"
    assert list(batches([], lengths, 2)) == []


def test_the_encoder_reads_like_lengths_together() -> None:
    assert list(encoder_parts([10, 40, 64])) == [[2, 1, 0]], "short ones whatever their length"
    assert list(encoder_parts([100, 300, 90, 20])) == [[1], [0, 2], [3]], "long ones with their like"
    assert list(encoder_parts([200] * 5)) == [[0, 1], [2, 3], [4]], "no more than stay in the cache"
    assert list(encoder_parts([900])) == [[0]]


@pytest.mark.parametrize("form", ["float_generator", "int8_generator"])
def test_drafts_change_no_bit(form: str, trained: Path, request: pytest.FixtureRequest) -> None:
    generator: OnnxGenerator = request.getfixturevalue(form)
    sources, prompts = random_sources(60, seed=15)
    plain = [without_drafts(generator, [s], [p])[0] for s, p in zip(sources, prompts, strict=True)]
    for size in (1, 7, 60):
        generator.batch_size = size
        assert generator.generate(sources, prompts=prompts) == plain
        assert without_drafts(generator, sources, prompts) == plain


def without_drafts(generator: OnnxGenerator, sources: list[Pieces], prompts: list[Pieces]) -> list[Generated]:
    generator.drafts = False
    try:
        return generator.generate(sources, prompts=prompts)
    finally:
        generator.drafts = True


def test_any_number_of_tokens_a_pass_gives_the_same_bits(int8_generator: OnnxGenerator) -> None:
    rng = random.Random(3)
    sources = [tuple(rng.choices(range(20, 300), k=length)) for length in (5, 31, 32, 70, 200)]
    texts = [[int8_generator.description.start_id, *rng.choices(range(20, 300), k=60)] for _ in sources]
    scores = []
    for most in (1, 2, 5, 33, 61):
        found: list[list[float]] = [[] for _ in sources]
        steps = int8_generator.read(sources)
        while any(len(one) < 61 for one in found):
            counts = [min(rng.randint(1, most), 61 - len(one)) for one in found]
            tokens = [text[len(one) : len(one) + n] for text, one, n in zip(texts, found, counts, strict=True)]
            wrong = [rng.choices(range(20, 300), k=rng.randint(0, most)) for _ in sources]
            given = [[*right, *guess] for right, guess in zip(tokens, wrong, strict=True)]
            likeliest = steps.advance(given, [len(row) for row in given], 1)[0][:, 0].tolist()
            steps.forget([len(guess) for guess in wrong])
            for one, right, row in zip(found, tokens, given, strict=True):
                one.extend(likeliest[: len(right)])
                likeliest = likeliest[len(row) :]
        scores.append(found)
    assert all(other == scores[0] for other in scores[1:])


def test_nothing_to_do_is_no_work(int8_generator: OnnxGenerator) -> None:
    assert int8_generator.generate([]) == []
    assert int8_generator.score([], []) == []


def test_input_errors_name_what_is_wrong(int8_generator: OnnxGenerator) -> None:
    with pytest.raises(InputError, match="expected one per source, found 2 for 1"):
        int8_generator.generate([("a",)], prompts=[(), ()])
    with pytest.raises(InputError, match="expected a target per source, found 1 and 2"):
        int8_generator.score([("a",)], [("a",), ("b",)])
    with pytest.raises(InputError, match=r"expected 1 to 2048 tokens, .* found 3000"):
        int8_generator.generate([("天" * 3000,)])
    with pytest.raises(InputError, match="target: expected at most 2048 tokens"):
        int8_generator.score([("a",)], [("天" * 3000,)])


def test_the_embedding_is_stored_once_and_read_by_both(int8_form: Path) -> None:
    description = json.loads((int8_form / "onnx" / "graphs.json").read_text())
    stored = description["embedding"]
    assert stored["dtype"] == "|i1"
    sizes = sum(file.stat().st_size for file in (int8_form / "onnx").glob("weights-*.bin"))
    assert sizes < 3 * 4096 * 60, "only padding to pages makes a tiny model this large"
    decoder = (int8_form / "onnx" / "decoder.onnx").read_bytes()
    assert stored["file"].encode() in decoder
    stages = open_model(int8_form, threads=1).load(["fused", "fast"])
    assert stages["fused"].generator is stages["fast"].generator
    assert stages["fused"].prompt == (Marker.WRITE_OPERATIONS,)


def test_quantised_weights_are_near_and_keep_their_rows_apart() -> None:
    weight = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32) * np.geomspace(1e-4, 1e4, 6)[:, None]
    whole, scale = quantise(weight.astype(np.float32))
    assert whole.dtype == np.int8
    assert np.abs(whole).max(axis=1).tolist() == [127] * 6
    np.testing.assert_allclose(whole * scale[:, None], weight, atol=0.51 * float(scale.max()))
    assert (np.abs(whole * scale[:, None] - weight) <= 0.51 * scale[:, None]).all()
    assert (quantise(np.zeros((2, 3), dtype=np.float32))[0] == 0).all()


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("onnx/graphs.json", r"expected an exported model, found no graphs\.json; export it with `teo export`"),
        ("onnx/encoder.onnx", r"encoder\.onnx: expected a graph of the exported model, found none"),
        ("onnx/probe.onnx", r"probe\.onnx: expected a graph"),
        ("tokenizer.json", r"tokenizer\.json: expected the model's tokenizer, found none"),
        ("onnx/weights-1.bin", r"weights-1\.bin: the weights cannot be read"),
    ],
)
def test_a_missing_file_is_named(missing: str, words: str, int8_form: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(int8_form, tmp_path / "copy")
    (copy / missing).unlink()
    with pytest.raises(ModelError, match=words):
        open_model(copy, runtime="onnx").load(["fused"])


@pytest.mark.parametrize("content", ["{}", "[]", "nonsense", '{"format": 9}'])
def test_a_broken_description_is_one_line(content: str, int8_form: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(int8_form, tmp_path / "copy")
    (copy / "onnx" / "graphs.json").write_text(content)
    with pytest.raises(ModelError, match=r"graphs\.json: (not the description|expected format 2, found 9)"):
        open_model(copy, runtime="onnx").load(["fused"])


def test_exported_folders_are_told_from_trained_ones(int8_form: Path, trained: Path) -> None:
    assert is_exported(int8_form)
    assert not is_exported(trained)


def test_a_processor_that_cuts_products_off_is_noticed(
    int8_form: Path, monkeypatch: pytest.MonkeyPatch, int8_generator: OnnxGenerator
) -> None:
    import teo.runtime.onnx_session as session

    assert isinstance(session._products_are_right(int8_form / "onnx"), bool)
    asked: list[bool] = []
    real = session._open
    monkeypatch.setattr(session, "_products_are_right", lambda folder: False)
    monkeypatch.setattr(session, "_open", lambda *args, careful: asked.append(careful) or real(*args, careful=careful))
    open_graphs(int8_form / "onnx", ("encoder.onnx",), threads=1, int8=True)
    assert asked == [True]
    open_graphs(int8_form / "onnx", ("encoder.onnx",), threads=1, int8=False)
    assert asked == [True, False], "the float form has no such products"
    careful = OnnxGenerator(int8_form / "onnx", threads=1, max_new_tokens=14)
    sources, prompts = random_sources(20, seed=8)
    ours, theirs = (one.generate(sources, prompts=prompts) for one in (careful, int8_generator))
    assert [one.pieces for one in ours] == [one.pieces for one in theirs], "slower, not different"
