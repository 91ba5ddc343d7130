"""The mean of models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from teo.errors import ConfigError, ModelError  # noqa: E402
from teo.loading import DEFAULT_MODEL, ModelFolder, Role  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.runtime.torch_generator import load_model  # noqa: E402
from teo.training.backbones import load_base  # noqa: E402
from teo_lab.average import average  # noqa: E402
from teo_lab.cli.app import app  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with the roles fast and direct."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    size = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "heads": 4, "d_ff": 48}
    TeoForConditionalGeneration(TeoConfig(vocab_size=100, **size)).save_pretrained(folder / "shared")
    ModelFolder({"fast": Role("shared", ("[F]",)), "direct": Role("shared", ("[Y]",))}).save(folder)
    return folder


def scaled(model: Path, out: Path, factor: int) -> Path:
    """Return a copy of the model whose weights are multiplied."""
    shutil.copytree(model, out)
    weights = TeoForConditionalGeneration.from_pretrained(out / "shared")
    with torch.no_grad():
        for weight in weights.parameters():
            weight.mul_(factor)
    weights.save_pretrained(out / "shared")
    return out


def test_a_mean_lies_between_its_models(model: Path, tmp_path: Path) -> None:
    tripled, out = scaled(model, tmp_path / "b", 3), tmp_path / "mean"
    done = CliRunner().invoke(app, ["average", str(out), str(model), str(tripled)], catch_exceptions=False)
    assert done.stdout.strip() == str(out)
    mean, first = (TeoForConditionalGeneration.from_pretrained(folder / "shared") for folder in (out, model))
    assert torch.allclose(mean.embedding.weight, 2 * first.embedding.weight, atol=1e-6)
    assert ModelFolder.load(out).roles == ModelFolder.load(model).roles


def test_a_folder_that_is_given_twice_counts_twice(model: Path, tmp_path: Path) -> None:
    average(tmp_path / "mean", [model, model, scaled(model, tmp_path / "b", 4)])
    mean, first = (TeoForConditionalGeneration.from_pretrained(each / "shared") for each in (tmp_path / "mean", model))
    assert torch.allclose(mean.embedding.weight, 2 * first.embedding.weight, atol=1e-6)


def test_a_share_moves_the_first_towards_the_others(model: Path, tmp_path: Path) -> None:
    folders = [str(tmp_path / "mean"), str(model), str(scaled(model, tmp_path / "b", 3)), "--share", "0.75"]
    CliRunner().invoke(app, ["average", *folders], catch_exceptions=False)
    mean, first = (TeoForConditionalGeneration.from_pretrained(each / "shared") for each in (tmp_path / "mean", model))
    assert torch.allclose(mean.embedding.weight, 1.5 * first.embedding.weight, atol=1e-6)
    with pytest.raises(ConfigError, match="share: expected a number from 0 to below 1, found 1"):
        average(tmp_path / "mean", [model, model], share=1.0)


def test_weights_that_all_have_alike_stay_as_they_are(model: Path, tmp_path: Path) -> None:
    average(tmp_path / "mean", [model, model, model], share=0.3)
    mean, first = (TeoForConditionalGeneration.from_pretrained(each / "shared") for each in (tmp_path / "mean", model))
    assert all(weight.equal(first.state_dict()[name]) for name, weight in mean.state_dict().items())


def test_an_exported_model_may_be_averaged_with_its_own_start(tmp_path: Path) -> None:
    start, _ = load_base("teo-default")
    start.save_pretrained(tmp_path / "start" / "weights")
    roles = ModelFolder.load(DEFAULT_MODEL).roles
    ModelFolder({name: Role("weights", role.prompt) for name, role in roles.items()}).save(tmp_path / "start")
    average(tmp_path / "mean", [tmp_path / "start", Path("teo-default")], share=0.5)
    mean = load_model(tmp_path / "mean" / "weights")
    assert all(weight.equal(start.state_dict()[name]) for name, weight in mean.state_dict().items())


def test_models_of_other_roles_have_no_mean(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "b")
    ModelFolder({"fast": Role("shared", ("[F]",))}).save(tmp_path / "b")
    with pytest.raises(ModelError, match="same roles"):
        average(tmp_path / "mean", [model, tmp_path / "b"])
    assert not (tmp_path / "mean").exists()


def test_averaging_needs_two_models(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected at least two model folders, found 1"):
        CliRunner().invoke(app, ["average", str(tmp_path / "out"), str(tmp_path)], catch_exceptions=False)
