"""Fine-tuning our own backbone: roles together or alone, with every setting that other families have too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

from packed_runs import recipe, tiny_base  # noqa: E402
from teo.errors import TeoError  # noqa: E402
from teo.training.backbones import load_base  # noqa: E402
from teo.training.batches import Batches, ProcessShare  # noqa: E402
from teo.training.finetune import train  # noqa: E402
from teo.training.fitting import loop_settings  # noqa: E402


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny backbone with its tokenizer."""
    return tiny_base(tmp_path_factory.mktemp("base"), ["Who is it? It is he.", "苹果多少钱"])


@pytest.mark.train
def test_roles_of_one_source_make_a_model_folder(base: Path, tmp_path: Path) -> None:
    result = train(recipe(tmp_path, base))
    assert set(result.em) == {"fused", "direct", "fast"}
    assert [step for step, _ in result.groups["weights"].losses] == [4, 8, 12, 16]
    assert (tmp_path / "model" / "teo.json").is_file()
    assert (tmp_path / "model" / "weights" / "config.json").is_file()


@pytest.mark.train
def test_two_separate_stages_are_trained(base: Path, tmp_path: Path) -> None:
    result = train(recipe(tmp_path, base, "shared=false", 'roles=["stage1", "stage2"]'))
    assert set(result.groups) == {"stage1", "stage2"}
    assert (tmp_path / "model" / "stage2" / "config.json").is_file()


@pytest.mark.train
@pytest.mark.parametrize("family", ["teo", "bart"])
def test_every_family_knows_evaluation_time_and_token_limits(base: Path, tmp_path: Path, family: str) -> None:
    start = [f"model.base={base}"] if family == "teo" else ["model.base=random", "model.dropout=-1"]
    limits = [
        "evaluation.every=1",
        "optimisation.batch_tokens=1024",
        "optimisation.minutes=5",
        "optimisation.bf16=false",
    ]
    result = train(recipe(tmp_path, base, *start, *limits))
    evaluated = [entry["step"] for entry in result.groups["weights"].history if "eval_em" in entry]
    assert len(evaluated) == 2 and evaluated[1] == 2 * evaluated[0] > 32, "smaller batches, evaluated in every epoch"


@pytest.mark.train
def test_a_run_ends_when_its_time_is_over(base: Path, tmp_path: Path) -> None:
    overrides = ["optimisation.minutes=0.02", "optimisation.epochs=10000", "writing.log_every=1"]
    result = train(recipe(tmp_path, base, *overrides))
    assert 1 <= result.groups["weights"].step < 10_000
    assert set(result.em) == {"fused", "direct", "fast"}, "the last weights are evaluated"


@pytest.mark.train
def test_frozen_layers_and_the_embeddings_stay_as_they_are(base: Path, tmp_path: Path) -> None:
    train(recipe(tmp_path, base, "optimisation.steps=4", "model.frozen_layers=1"))
    before = load_base(str(base))[0].state_dict()
    after = load_file(tmp_path / "model" / "weights" / "model.safetensors")
    same = {name for name, weight in after.items() if weight.equal(before[name])}
    frozen = {name for name in after if "embedding" in name or name.startswith("encoder.layers.0.")}
    assert same == {name for name in frozen if not name.startswith("decoder.")}
    assert "encoder.layers.1.feed_forward.up.weight" in after
    with pytest.raises(TeoError, match=re.escape("model.frozen_layers: expected at most 2, found 3")):
        train(recipe(tmp_path, base, "overwrite=true", "model.frozen_layers=3"))


@pytest.mark.train
def test_bfloat16_on_a_cpu_is_asked_for(base: Path, tmp_path: Path) -> None:
    weights = {}
    for name, more in {"whole": (), "again": (), "half": ("optimisation.cpu_bf16=true",)}.items():
        (tmp_path / name).mkdir()
        losses = train(recipe(tmp_path / name, base, "optimisation.steps=4", *more)).groups["weights"].losses
        assert losses[0][1] == pytest.approx(3.72, abs=0.05), name
        weights[name] = load_file(tmp_path / name / "model" / "weights" / "model.safetensors")["embedding.weight"]
    assert weights["whole"].equal(weights["again"])
    assert not weights["whole"].equal(weights["half"])
    assert weights["half"].dtype == torch.float32


@pytest.mark.parametrize(
    ("override", "steps", "warmup", "save", "reason"),
    [
        ("optimisation.epochs=3", 12, 1, 4, "epochs decide; the warm-up is a share of the updates"),
        ("optimisation.steps=5", 5, 0, 4, "stopped after N updates"),
        ("optimisation.steps=500", 8, 1, 4, "not more than the epochs have"),
        ("writing.checkpoint_epochs=0", 8, 1, 0, "no checkpoints"),
    ],
)
def test_epochs_become_updates(
    base: Path, tmp_path: Path, override: str, steps: int, warmup: int, save: int, reason: str
) -> None:
    class Empty(Batches):
        def examples(self, item: int, epoch: int) -> list[object]:  # type: ignore[override]
            return []

    config = recipe(tmp_path, base, override)
    settings = loop_settings(config, ProcessShare(Empty([(1, 1)] * 256, config.optimisation, 0), 0, 2))
    assert (settings.steps, settings.warmup, settings.save_every) == (steps, warmup, save), reason


@pytest.mark.train
def test_a_loss_that_is_not_finite_is_one_clear_line(base: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TeoError, match=r"the loss or its gradient is not finite at update \d+; lower the learning rate"
    ):
        train(recipe(tmp_path, base, "optimisation.learning_rate=1e30", "optimisation.clip=1e30"))
    assert json.loads((tmp_path / "model" / "training" / "record.json").read_text())
