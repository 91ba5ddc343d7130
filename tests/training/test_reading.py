"""read_exported: an exported model is a model to start from, with the weights that it was exported with."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="reading weights for training needs torch")
pytest.importorskip("transformers", reason="reading weights for training needs transformers")
pytest.importorskip("onnx", reason="reading graphs needs onnx")

from teo.errors import ModelError  # noqa: E402
from teo.export.export import export_model  # noqa: E402
from teo.loading import ModelFolder, Role, has_default  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402
from teo.runtime.torch_reading import find_graphs, read_exported  # noqa: E402
from teo.training.backbones import EMBEDDED, load_base  # noqa: E402


def save_trained(path: Path) -> TeoForConditionalGeneration:
    """Write a small model with random weights, biases and norms included; return it."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer(["Ben is here", "is he there", "乔峰在这里吗"], size=340)
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "heads": 2, "d_ff": 32}
    model = TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    model.save_pretrained(path / "weights")
    wrap_tokenizer(tokenizer).save_pretrained(path / "weights")
    ModelFolder({"direct": Role("weights", ("[Y]",))}, ("en",), variant="direct").save(path)
    return model


@pytest.mark.parametrize("form", ["none", "int8"])
def test_weights_come_back(tmp_path: Path, form: str) -> None:
    model = save_trained(tmp_path / "trained")
    export_model(tmp_path / "trained", tmp_path / "out", quantize=form)
    graphs = find_graphs(tmp_path / "out")
    assert graphs == tmp_path / "out" / "onnx"
    read = read_exported(graphs)
    wanted = dict(model.named_parameters())
    assert dict(read.named_parameters()).keys() == wanted.keys()
    for name, weight in read.named_parameters():
        step = wanted[name].abs().max().item() / 127 if form == "int8" and weight.dim() > 1 else 1e-6
        assert torch.allclose(weight, wanted[name], atol=0.51 * step + 1e-6), name


def test_training_starts_from_an_exported_folder(tmp_path: Path) -> None:
    save_trained(tmp_path / "trained")
    export_model(tmp_path / "trained", tmp_path / "out", quantize="none")
    (before, codec), (after, read) = (load_base(str(tmp_path / name)) for name in ("trained/weights", "out"))
    pieces = ("Ben is here",)
    assert codec.encode(pieces) == read.encode(pieces)
    assert torch.allclose(before.embedding.weight, after.embedding.weight)


def test_a_folder_without_its_tokenizer_is_refused(tmp_path: Path) -> None:
    save_trained(tmp_path / "trained")
    export_model(tmp_path / "trained", tmp_path / "out")
    (tmp_path / "out" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"expected tokenizer\.json beside the graphs"):
        load_base(str(tmp_path / "out"))


def test_graphs_of_another_family_are_refused(tmp_path: Path) -> None:
    save_trained(tmp_path / "trained")
    export_model(tmp_path / "trained", tmp_path / "out")
    graphs = tmp_path / "out" / "onnx"
    (graphs / "encoder.onnx").write_bytes((graphs / "decoder.onnx").read_bytes())
    with pytest.raises(ModelError, match="expected the project's own backbone"):
        read_exported(graphs)


@pytest.mark.slow
@pytest.mark.skipif(not has_default(), reason="the embedded model is not in this checkout")
def test_the_embedded_model_is_a_model_to_start_from() -> None:
    model, codec = load_base(EMBEDDED)
    assert (model.config.d_model, model.config.encoder_layers) == (512, 12)
    assert len(codec) == model.config.vocab_size
