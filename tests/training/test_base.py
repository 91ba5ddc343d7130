"""The pretrained backbone in 8 bits: its weights, its name, and what is said if it is damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from packed_runs import tiny_base  # noqa: E402
from teo.errors import ModelError  # noqa: E402
from teo.models import TeoForConditionalGeneration  # noqa: E402
from teo.models.storage import BASE, find_base, load_bytes  # noqa: E402
from teo.runtime.torch_codec import Codec  # noqa: E402
from teo.training.backbones import load_base  # noqa: E402


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny backbone with its tokenizer."""
    return tiny_base(tmp_path_factory.mktemp("base"), ["I like Batman. Who acted?", "苹果多少钱"])


def test_eight_bits_keep_the_weights(base: Path) -> None:
    torch.manual_seed(0)
    stored = load_bytes(base)
    again = load_bytes(base)
    ids = torch.tensor([[2, 20, 21, 3]])
    torch.testing.assert_close(
        stored.eval()(input_ids=ids, decoder_input_ids=ids).logits,
        again.eval()(input_ids=ids, decoder_input_ids=ids).logits,
    )
    matrix = stored.encoder.layers[0].feed_forward.up.weight
    steps = matrix / (matrix.abs().amax(1, keepdim=True) / 127)
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)


def test_the_base_is_found_by_name(base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEO_BASE", str(base))
    model, codec = load_base(BASE)
    assert isinstance(model, TeoForConditionalGeneration)
    assert isinstance(codec, Codec)
    monkeypatch.setenv("TEO_BASE", str(tmp_path))
    with pytest.raises(ModelError, match="expected the pretrained backbone in weights/base of a checkout, found none"):
        find_base()


def test_a_damaged_base_is_an_error(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "x")
    config = (tmp_path / "x" / "config.json").read_text().replace('"d_ff": 64', '"d_ff": 48')
    (tmp_path / "x" / "config.json").write_text(config)
    with pytest.raises(ModelError, match=r"expected encoder\.layers\.0\.feed_forward\.up\.weight of shape \(48, 32\)"):
        load_bytes(tmp_path / "x")
