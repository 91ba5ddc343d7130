"""`teo-lab base`: a backbone in int8, pretrained or from an unfinished run."""

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


@pytest.mark.train
@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_what_an_unfinished_run_has_learned_is_stored(ema: float, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from packed_runs import recipe, tiny_base
    from teo.models.storage import load_bytes
    from teo.training.backbones import load_base
    from teo.training.finetune import train

    base = tiny_base(tmp_path / "base", ["Who wrote Dune?", "Frank Herbert."])
    config = recipe(tmp_path, base, f"optimisation.ema={ema}", "optimisation.steps=6", "writing.checkpoint_epochs=1")
    model, out = tmp_path / "model", tmp_path / "stored"
    kept = {}
    unlink = Path.unlink

    def keep(path: Path, missing_ok: bool = False) -> None:
        if path.name == "checkpoint.pt":
            kept["checkpoint"] = path.read_bytes()
        unlink(path, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", keep)
        train(config)
    finished = dict(load_base(str(model / "weights"))[0].named_parameters())
    (model / "training" / "weights" / "checkpoint.pt").write_bytes(kept["checkpoint"])
    assert runner.invoke(app, ["base", str(model), str(out)], catch_exceptions=False).stdout == f"{out}\n"
    for name, weight in load_bytes(out).named_parameters():
        close = finished[name].abs().max() * (1 / 254 if weight.dim() > 1 else 1e-3) + 1e-6
        assert (weight - finished[name]).abs().max() <= close, f"{name}: the last checkpoint is that of the end"
    untrained = dict(load_base(str(base))[0].named_parameters())
    changed = [name for name, weight in finished.items() if not torch.equal(weight, untrained[name])]
    assert changed, "the run has learned something"
