"""A trained folder on torch: the runtime is found, the GPUs are shared out, and parts come out alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from batch_jobs import contents, make_rows, read_output, write_rows  # noqa: E402
from teo.loading import ModelFolder, Role  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402
from teo.scale.job import Job, run_job  # noqa: E402
from teo.scale.worker import BatchTask, ModelChoice, Worker  # noqa: E402


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with random weights, as training writes it."""
    folder = tmp_path_factory.mktemp("trained")
    tokenizer = train_tokenizer(["a b c say 1 2 3"] * 5, size=300, alphabet=60)
    torch.manual_seed(1)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "heads": 2, "d_ff": 32}
    TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **sizes)).save_pretrained(folder / "w")
    wrap_tokenizer(tokenizer).save_pretrained(folder / "w")
    ModelFolder({"direct": Role("w")}, variant="direct").save(folder)
    return folder


@pytest.mark.slow
def test_a_trained_folder_gives_the_same_parts_again(
    trained: Path, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(30))
    for name in ("first", "second"):
        choice = ModelChoice(str(trained), batch_size=7)
        totals, _ = run_job(make_job(source, tmp_path / name, model=choice, min_confidence=0.0))
        assert (totals.rows, totals.errors) == (30, 0)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    assert all(record["confidence"] is not None for record in read_output(tmp_path / "first"))


@pytest.mark.parametrize(
    ("device", "number", "found", "reason"),
    [
        ("cpu", 3, "cpu", "no GPU was asked for"),
        ("cuda", 0, "cuda", "the first process takes the first GPU"),
        ("cuda", 3, "cuda:1", "of two GPUs"),
        ("cuda:1", 3, "cuda:1", "the one that was named"),
    ],
)
def test_processes_share_the_gpus_out(
    monkeypatch: pytest.MonkeyPatch, device: str, number: int, found: str, reason: str
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("teo.loading.open_model", lambda model, **settings: asked.append(settings))
    monkeypatch.setattr("teo.rewriter.Rewriter.of_model", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    ModelChoice("m", device=device, bf16=True, batch_size=512).load(number)
    assert (asked[0]["device"], asked[0]["bf16"], asked[0]["batch_size"]) == (found, True, 512), reason


@pytest.mark.parametrize(
    ("choice", "remembers"),
    [
        (ModelChoice(runtime="onnx"), True),
        (ModelChoice(runtime="torch"), False),
        (ModelChoice(runtime="torch", device="cuda"), False),
    ],
)
def test_only_a_model_that_no_batch_changes_remembers_other_parts(choice: ModelChoice, remembers: bool) -> None:
    assert Worker(BatchTask("in", "out", "jsonl", choice))._remembers is remembers
