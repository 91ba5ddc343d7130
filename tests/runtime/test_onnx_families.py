"""Exported BART, T5 and Marian: the same texts as torch, the same bits in any batch, the same ids, no torch needed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="exporting a model needs torch")
pytest.importorskip("transformers", reason="exporting a model needs transformers")
pytest.importorskip("onnx", reason="exporting a model needs onnx")
pytest.importorskip("sentencepiece", reason="Marian's tokenizer needs sentencepiece")

from family_models import build_family  # noqa: E402
from teo.errors import InputError, ModelError  # noqa: E402
from teo.export.export import export_model  # noqa: E402
from teo.layouts import Marker, Pieces  # noqa: E402
from teo.loading import ModelFolder, Role, open_model  # noqa: E402
from teo.runtime.onnx_generator import OnnxGenerator  # noqa: E402
from teo.runtime.torch_generator import TorchGenerator  # noqa: E402
from teo.training.saving import save_weights  # noqa: E402

FAMILIES = ("bart", "bart-zh", "t5", "t5-gated", "marian")
WORDS = [
    *"天龙八部你我他谁",
    "Batman",
    "Ben",
    "Affleck",
    "he",
    "it",
    "is",
    "the",
    "north?",
    "[SEP]",
    "</s>",
    "3.5",
    "🎉",
]
TEXTS = [" ".join(random.Random(k).choices(WORDS[:-1], k=8)) for k in range(120)]
LIMIT = 14


@dataclass(frozen=True, slots=True)
class Forms:
    """One tiny model in its three forms."""

    folder: Path
    torch: TorchGenerator
    float32: OnnxGenerator
    int8: OnnxGenerator


@pytest.fixture(scope="module", params=FAMILIES)
def forms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Forms:
    """A model with random weights, far from uniform so that no two texts tie, trained and exported."""
    torch.manual_seed(3)
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp(request.param)
    model, codec = build_family(request.param, root / "parts", TEXTS, width=32, layers=2, heads=4)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
        model.get_output_embeddings().weight[codec.eos_id] *= 2.0
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias[0, codec.eos_id] += 4.0
    save_weights(model, codec, root / "trained" / "w")
    ModelFolder({"direct": Role("w"), "fused": Role("w", ("[E]",))}, source_limit=256, variant="direct").save(
        root / "trained"
    )
    exact = export_model(root / "trained", root / "float32", quantize="none").path
    rounded = export_model(root / "trained", root / "int8").path
    return Forms(
        root,
        TorchGenerator.from_pretrained(root / "trained" / "w", device="cpu", max_new_tokens=LIMIT),
        OnnxGenerator(exact / "onnx", threads=1, max_new_tokens=LIMIT),
        OnnxGenerator(rounded / "onnx", threads=1, max_new_tokens=LIMIT),
    )


def random_sources(count: int, seed: int, longest: int = 8) -> tuple[list[Pieces], list[Pieces]]:
    rng = random.Random(seed)
    sources, prompts = [], []
    for _ in range(count):
        pieces: list[str] = [Marker.CLS]
        for _ in range(rng.randint(1, 4)):
            pieces += [" ".join(rng.choices(WORDS, k=rng.randint(1, longest))), Marker.SEP]
        sources.append(tuple(pieces))
        prompts.append(rng.choice([(), (Marker.WRITE_OPERATIONS,)]))
    return sources, prompts


def test_float32_generates_what_torch_generates(forms: Forms) -> None:
    sources, prompts = random_sources(120, seed=1)
    expected, found = (one.generate(sources, prompts=prompts) for one in (forms.torch, forms.float32))
    assert [one.pieces for one in found] == [one.pieces for one in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=5e-4)
    assert len({one.pieces for one in found}) > 20, "different sources get different texts"
    assert 3 < sum(len(one.token_scores) < LIMIT for one in found) < 118, "some end, some run into the limit"


def test_long_sources_reach_the_far_distances(forms: Forms) -> None:
    word = "he " if forms.float32.positions > 128 else "it "
    sources: list[Pieces] = [(word * count,) for count in (20, 60, 100)]
    if forms.float32.positions > 200:
        sources.append((" ".join(random.Random(7).choices(WORDS[:8], k=200)),))
    expected, found = (one.generate(sources) for one in (forms.torch, forms.float32))
    assert [one.pieces for one in found] == [one.pieces for one in expected]


def test_text_that_does_not_end_is_cut_at_the_same_length(forms: Forms) -> None:
    sources: list[Pieces] = [("he is",), ("the north? Ben it he is 天龙八部",)]
    generators = (forms.torch, forms.float32)
    for one in generators:
        one.max_new_tokens = 60
    expected, found = (one.generate(sources) for one in generators)
    for one in generators:
        one.max_new_tokens = LIMIT
    assert [one.pieces for one in found] == [one.pieces for one in expected]
    assert [len(one.token_scores) for one in found] == [len(one.token_scores) for one in expected]
    assert max(len(one.token_scores) for one in found) > LIMIT


def test_float32_scores_what_torch_scores(forms: Forms) -> None:
    sources, prompts = random_sources(20, seed=2)
    targets: list[Pieces] = [(Marker.INSERT, "Ben", Marker.SEP, "he is 天龙")] * 10 + [("it",)] * 10
    found, expected = (one.score(sources, targets, prompts=prompts) for one in (forms.float32, forms.torch))
    likely = [k for k, score in enumerate(expected) if score > -25]  # less likely tokens score no less than 1e-12
    assert likely
    np.testing.assert_allclose([found[k] for k in likely], [expected[k] for k in likely], atol=2e-3, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["float32", "int8"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_row_gets_the_same_bits_alone_and_in_any_batch(forms: Forms, form: str, beams: int) -> None:
    generator: OnnxGenerator = getattr(forms, form)
    sources, prompts = random_sources(40, seed=5)
    pairs = list(zip(sources, prompts, strict=True))
    alone = [generator.generate([source], prompts=[prompt], beams=beams)[0] for source, prompt in pairs]
    targets: list[Pieces] = [("he",), (Marker.INSERT, "Ben Affleck 天龙八部 is the north? it is he")] * 20
    scored = [generator.score([s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    for size, seed in ((7, 1), (40, 2)):
        order = random.Random(seed).sample(range(40), 40)
        generator.batch_size = size
        together = generator.generate([sources[k] for k in order], prompts=[prompts[k] for k in order], beams=beams)
        assert together == [alone[k] for k in order]
        assert generator.score([sources[k] for k in order], [targets[k] for k in order]) == [scored[k] for k in order]


def test_int8_stays_near_float32(forms: Forms) -> None:
    sources, _ = random_sources(40, seed=7)
    targets: list[Pieces] = [("it is Ben",)] * 40
    near = np.abs(np.subtract(forms.int8.score(sources, targets), forms.float32.score(sources, targets)))
    assert near.mean() < 1.0, "8 bits move a log-probability of a few tokens a little, even of random weights"
    ours, theirs = (one.generate(sources) for one in (forms.int8, forms.float32))
    assert sum(one.pieces == other.pieces for one, other in zip(ours, theirs, strict=True)) > 10


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True)
@given(
    texts=st.lists(
        st.one_of(st.text(max_size=16), st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)), max_size=4
    ),
    markers=st.lists(st.sampled_from(list(Marker)), min_size=1, max_size=4),
)
def test_the_codec_is_the_one_of_transformers(texts: list[str], markers: list[Marker], forms: Forms) -> None:
    ours, theirs = forms.int8.codec, forms.torch.codec
    pieces = [piece for pair in zip(texts, markers, strict=False) for piece in pair]
    ids = ours.encode(pieces)
    assert ids == theirs.encode(pieces)
    assert ours.encode_target(pieces) == theirs.encode_target(pieces)
    assert ours.decoder_start(pieces) == theirs.decoder_start(pieces)
    assert ours.decode(ours.encode_target(pieces)) == theirs.decode(ours.encode_target(pieces))
    assert [ours.measure(text) for text in texts] == [theirs.measure(text) for text in texts]


@pytest.mark.parametrize("literal", ["[SEP]", "[I]", "</s>", "<pad>", "[CLS]", "<s>", "[THEN]", "a[D]b", ">>de<< ja"])
def test_text_that_spells_a_token_of_the_models_stays_text(forms: Forms, literal: str) -> None:
    codec = forms.int8.codec
    ids = codec.encode_text(f"he says {literal} to me")
    assert ids == forms.torch.codec.encode_text(f"he says {literal} to me")
    assert codec.encode_text(literal) == forms.torch.codec.encode_text(literal)
    assert not set(ids) & (set(forms.torch.codec.coding.reserved) - {forms.torch.codec.tokenizer.unk_token_id})


def test_any_id_is_decoded_as_transformers_does(forms: Forms) -> None:
    ours, theirs = forms.int8.codec, forms.torch.codec
    assert len(ours) == len(theirs)
    rng = random.Random(4)
    for _ in range(60):
        ids = [rng.randrange(len(ours)) for _ in range(6)]
        assert ours.decode(ids) == theirs.decode(ids)


def test_a_huge_text_is_measured_by_its_head(forms: Forms) -> None:
    assert forms.int8.measure("a b " * 250_000) > forms.int8.source_limit


def test_positions_end_where_the_model_has_no_more(forms: Forms) -> None:
    most = forms.int8.positions
    assert most == {"bart": 256, "mari": 128}.get(forms.folder.name[:4], 2048)
    assert forms.int8.source_limit == min(256, most)
    with pytest.raises(InputError, match=f"expected 1 to {most} tokens, .* found"):
        forms.int8.generate([("he " * (most + 1),)])
    with pytest.raises(InputError, match=f"target: expected at most {most} tokens"):
        forms.int8.score([("he",)], [("he " * (most + 1),)])
    if most <= 256:
        with pytest.raises(InputError, match=f"expected at most {most} tokens"):
            forms.torch.generate([("he " * (most + 1),)])
        target = ("he " * (most - 12),)  # padded beyond the last position, whose vectors the padding shares
        np.testing.assert_allclose(
            forms.float32.score([("it",)], [target]), forms.torch.score([("it",)], [target]), rtol=1e-3
        )


_LIGHT = """
import sys
for name in ("torch", "transformers", "sentencepiece", "onnx"):
    sys.modules[name] = None
from teo import Rewriter
print(Rewriter.from_pretrained(sys.argv[1], threads=1).rewrite(["Ben is here"], "is he there").confidence)
"""


@pytest.mark.process
def test_the_exported_folder_needs_neither_torch_nor_transformers(forms: Forms) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIGHT, str(forms.folder / "int8")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 0 <= float(done.stdout) <= 1


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("codec.json", "{}", r"codec\.json: not the description of a tokenizer \(eos_id: field required\)"),
        ("codec.json", "[]", r"codec\.json: not the description of a tokenizer"),
        ("codec.json", '{"eos_id": "x"}', r"codec\.json: not the description of a tokenizer"),
        ("tokenizer.json", "{}", r"tokenizer\.json: not a tokenizer"),
    ],
)
def test_a_broken_codec_is_one_line(file: str, content: str, words: str, forms: Forms, tmp_path: Path) -> None:
    copy = shutil.copytree(forms.folder / "int8", tmp_path / "copy")
    (copy / file).write_text(content)
    with pytest.raises(ModelError, match=words):
        open_model(copy).load(["direct"])


def test_exporting_twice_gives_the_same_bytes(forms: Forms, tmp_path: Path) -> None:
    again = export_model(forms.folder / "trained", tmp_path / "again").path
    for file in again.rglob("*"):
        if file.is_file() and file.name != "README.md":
            assert file.read_bytes() == (forms.folder / "int8" / file.relative_to(again)).read_bytes(), file.name
    assert json.loads((again / "codec.json").read_text())["eos_id"] == forms.torch.codec.eos_id
