"""`teo-lab base`: a pretrained backbone in int8."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from teo.errors import ModelError
from teo_lab.cli.app import app

runner = CliRunner()


def test_a_base_is_made_of_a_backbone_with_its_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from teo.models import TeoConfig, TeoForConditionalGeneration
    from teo.models.storage import load_bytes
    from teo.models.tokenizer import train_tokenizer, wrap_tokenizer

    checkpoint, out = tmp_path / "checkpoint", tmp_path / "base"
    tokenizer = train_tokenizer(["Who played Batman?"] * 4, size=450, alphabet=90)
    size = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "heads": 2, "d_ff": 32}
    model = TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **size))
    model.save_pretrained(checkpoint)
    with pytest.raises(ModelError, match=r"expected the folder of a backbone with its tokenizer, found no tokenizer\."):
        runner.invoke(app, ["base", str(checkpoint), str(out)], catch_exceptions=False)
    wrap_tokenizer(tokenizer).save_pretrained(checkpoint)
    assert runner.invoke(app, ["base", str(checkpoint), str(out)], catch_exceptions=False).stdout == f"{out}\n"
    stored = load_bytes(out).embedding.weight
    assert (stored - model.embedding.weight).abs().max() < model.embedding.weight.abs().max() / 127
