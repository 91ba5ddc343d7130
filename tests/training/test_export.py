"""export_model: what it writes, and what it refuses; what the graphs compute is tested beside the generator."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="exporting a model needs torch")
pytest.importorskip("transformers", reason="exporting a model needs transformers")
pytest.importorskip("onnx", reason="exporting a model needs onnx")

from family_models import build_family  # noqa: E402
from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.errors import InputError, ModelError  # noqa: E402
from teo.export.export import export_model, measure_loss  # noqa: E402
from teo.export.families import read_network  # noqa: E402
from teo.export.tokenizer import write_tokenizer  # noqa: E402
from teo.loading import ModelFolder, Role, open_model  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402
from teo.runtime.codec import Coding  # noqa: E402

LINES = ["Ben is here", "is he there", "乔峰在这里吗"]
ROWS = [
    Row("1", Dialogue(("Ben is here",), "is he there"), "is Ben there"),
    Row("2", Dialogue(("乔峰在这里吗",), "在"), "乔峰在这里"),
    Row("3", Dialogue(("here", "there"), "he"), "he"),
]


def save_weights(path: Path, seed: int) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    tokenizer = train_tokenizer(LINES, size=340)
    config = TeoConfig(
        vocab_size=tokenizer.get_vocab_size(), d_model=16, encoder_layers=1, decoder_layers=1, heads=2, d_ff=32
    )
    TeoForConditionalGeneration(config).save_pretrained(path)
    wrap_tokenizer(tokenizer).save_pretrained(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trained") / "tiny"
    save_weights(path / "weights", seed=0)
    roles = {"fused": Role("weights", ("[E]",)), "direct": Role("weights", ("[Y]",))}
    facts = {"trained_on": "three lines"}
    ModelFolder(roles, ("en", "zh"), source_limit=64, threshold=0.4, variant="direct", extra=facts).save(path)
    return path


def test_everything_is_in_one_folder(trained: Path, tmp_path: Path) -> None:
    exported = export_model(trained, tmp_path / "out")
    names = sorted(str(file.relative_to(exported.path)) for file in exported.path.rglob("*") if file.is_file())
    assert names == [
        "README.md",
        "onnx/decoder.onnx",
        "onnx/encoder.onnx",
        "onnx/graphs.json",
        "onnx/probe.onnx",
        "onnx/weights-1.bin",
        "teo.json",
        "tokenizer.json",
    ]
    assert exported.bytes == sum((exported.path / name).stat().st_size for name in names)
    described = ModelFolder.load(exported.path)
    assert described.roles == {"fused": Role("onnx", ("[E]",)), "direct": Role("onnx", ("[Y]",))}
    assert (described.threshold, described.variant, described.source_limit) == (0.4, "direct", 64)
    assert described.extra == {
        "trained_on": "three lines",
        "export": {"form": "int8", "parameters": exported.parameters},
    }
    assert "8-bit" in (exported.path / "README.md").read_text()
    assert "Languages: en, zh" in (exported.path / "README.md").read_text()


def test_the_models_own_card_is_kept(trained: Path, tmp_path: Path) -> None:
    (trained / "README.md").write_text("# the card\n")
    exported = export_model(trained, tmp_path / "out")
    (trained / "README.md").unlink()
    assert (exported.path / "README.md").read_text() == "# the card\n"


def test_exporting_twice_gives_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    first, second = (export_model(trained, tmp_path / name).path for name in ("a", "b"))
    for file in first.rglob("*"):
        if file.is_file() and file.name != "README.md":
            assert file.read_bytes() == (second / file.relative_to(first)).read_bytes(), file.name


def test_an_old_export_is_replaced_whole(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_model(trained, out)
    (out / "left over").write_text("")
    export_model(trained, out, quantize="none")
    assert not (out / "left over").exists()
    assert not (out / "onnx" / "probe.onnx").exists(), "the float form has nothing to probe"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_separate_stages_keep_separate_weights(trained: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    for number, name in enumerate(("stage1", "stage2")):
        save_weights(both / name, seed=number)
    ModelFolder({name: Role(name) for name in ("stage1", "stage2")}, source_limit=64).save(both)
    exported = export_model(both, tmp_path / "out")
    stages = open_model(exported.path, threads=1).load(["stage1", "stage2"])
    assert stages["stage1"].generator is not stages["stage2"].generator
    assert (exported.path / "onnx" / "stage1" / "tokenizer.json").is_file()


def test_the_loss_of_a_form_is_measured(trained: Path, tmp_path: Path) -> None:
    exact = export_model(trained, tmp_path / "float", quantize="none").path
    loss = measure_loss(exact, exact, ROWS, threads=1)
    assert (loss.rows, loss.same, loss.score_gap) == (3, 1.0, 0.0)
    assert loss.em_before == loss.em_after
    rounded = export_model(trained, tmp_path / "int8").path
    loss = measure_loss(exact, rounded, ROWS, variant="fused", threads=1)
    assert json.loads(json.dumps(loss.to_dict()))["rows"] == 3
    with pytest.raises(InputError, match="expected at least one row to compare on"):
        measure_loss(exact, rounded, [])


def test_unknown_forms_and_other_models_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="quantize: expected int8 or none, found 'int4'"):
        export_model(trained, tmp_path / "out", quantize="int4")
    with pytest.raises(ModelError, match=r"found no teo\.json"):
        export_model(tmp_path / "nowhere", tmp_path / "out")
    ModelFolder({}).save(tmp_path / "empty")
    with pytest.raises(ModelError, match="expected at least one role, found none"):
        export_model(tmp_path / "empty", tmp_path / "out")
    from transformers import MBartConfig, MBartForConditionalGeneration

    sizes = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    config = MBartConfig(vocab_size=16, d_model=8, encoder_layers=1, decoder_layers=1, **sizes)
    MBartForConditionalGeneration(config).save_pretrained(tmp_path / "mbart" / "weights")
    ModelFolder({"direct": Role("weights")}).save(tmp_path / "mbart")
    with pytest.raises(
        ModelError, match=r"expected BART, Marian, T5 or the project's own backbone, found mbart; other"
    ):
        export_model(tmp_path / "mbart", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.part").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"activation_function": "tanh"},
            r"activation: expected one of gelu, .* found 'tanh'; run it with runtime='torch'",
        ),
        ({"encoder_attention_heads": 4}, "expected as many heads in the encoder as in the decoder, found 4 and 2"),
    ],
)
def test_layers_that_graphs_do_not_have_are_named(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    model, _ = build_family("bart", tmp_path, LINES)
    for name, value in changes.items():
        setattr(model.config, name, value)
    with pytest.raises(ModelError, match=words):
        read_network(model, tmp_path)


def test_a_tokenizer_that_has_no_light_form_is_refused(tmp_path: Path) -> None:
    _, codec = build_family("bart", tmp_path, LINES)
    codec.tokenizer = SimpleNamespace(is_fast=False)
    with pytest.raises(ModelError, match=r"expected a tokenizer with a tokenizer\.json .* found SimpleNamespace; run"):
        write_tokenizer(codec, tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model_type": "bpe"}, "merges are another kind of model"),
        ({"byte_fallback": True, "vocab_size": 300}, "bytes would have to be put together again"),
        ({"user_defined_symbols": ["Ben"]}, "such pieces win over all others"),
    ],
)
def test_a_sentencepiece_model_of_another_kind_is_refused(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="Marian's tokenizer needs sentencepiece")
    file, prefix = tmp_path / "texts.txt", tmp_path / "spm"
    file.write_text("\n".join(LINES * 9), encoding="utf-8")
    plain = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.Train(input=str(file), model_prefix=str(prefix), **(plain | settings))
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    tokenizer = SimpleNamespace(is_fast=False, spm_source=processor, separate_vocabs=False)
    with pytest.raises(ModelError, match="expected SentencePiece's Unigram model without bytes"):
        write_tokenizer(
            SimpleNamespace(tokenizer=tokenizer, coding=Coding(0, 0, (), {}, {}, frozenset(), {})), tmp_path, tmp_path
        )


def test_an_exported_model_is_not_exported_again(trained: Path, tmp_path: Path) -> None:
    folder = export_model(trained, tmp_path / "out").path
    with pytest.raises(
        ModelError, match=r"out: expected the folder that training wrote, found .* exported already; use"
    ):
        export_model(folder, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_exported_folder_is_evaluated_like_a_trained_one(trained: Path, tmp_path: Path) -> None:
    from teo.pipelines import PIPELINES, predict

    folder = export_model(trained, tmp_path / "out", quantize="none").path
    dialogues = [row.dialogue for row in ROWS]
    stages = [open_model(path, device="cpu").load(["direct"]) for path in (trained, folder)]
    before, after = (predict(PIPELINES["direct"], each, dialogues) for each in stages)
    assert [one.rewrite for one in before] == [one.rewrite for one in after]
