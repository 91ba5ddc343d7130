"""`teo evaluate`: what the command passes on, and that it stays light."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.cli.evaluate import evaluate as command
from teo.errors import InputError, MissingExtraError
from teo.evaluation.measures import Evaluation, measure
from teo.evaluation.predict import PredictedRow, Settings
from teo.loading import DEFAULT_MODEL, ModelFolder, Role, has_default

app = typer.Typer()
app.command()(command)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    pytest.importorskip("numpy")
    requests: list[Any] = []

    rows = [
        PredictedRow("1", (), "is he", "is ben", "is ben", "[D] he [R] ben", "[D] he [R] ben"),
        PredictedRow("2", (), "why", "why not", "why", "", "[I] not"),
    ]
    settings = Settings("task", "dev", {}, "d", "fast", "m", "h", 0, "int8")

    def fake(request: Any) -> Evaluation:
        requests.append(request)
        return Evaluation(measure(rows), settings, {}, "fast alone")

    monkeypatch.setattr("teo.evaluation.evaluate.evaluate", fake)
    return requests


def test_the_command_line_becomes_a_request(asked: list[Any]) -> None:
    line = "--data task --path d --split dev --model m --variant fast --out o --limit 3 --batch-size 8 --device cpu"
    result = CliRunner().invoke(
        app, [*line.split(), "--seed", "7", "--option", "history=last-two", "--dtype", "bfloat16"]
    )
    assert result.exit_code == 0, result.output
    (request,) = asked
    assert (request.data, request.path, request.split, request.model) == ("task", Path("d"), "dev", Path("m"))
    assert (request.variant, request.out, request.limit, request.batch_size) == ("fast", Path("o"), 3, 8)
    assert (request.device, request.seed, request.bf16, request.options) == ("cpu", 7, True, {"history": "last-two"})
    assert result.stdout == (
        "fast on task (dev), 2 rows, in percent\n"
        "pipeline: fast alone\n"
        "EM 50.0 (0.0 to 100.0)  complete -  incomplete 50.0\n"
        "BLEU-4 0.0  ROUGE-2 50.0  F1 66.7\n"
        "stage-1 EM 50.0  E2C 0.0  C2E 0.0\n"
        "written to o\n"
    )


def test_defaults(asked: list[Any]) -> None:
    CliRunner().invoke(app, ["--data", "task", "--path", "d", "--out", "o"])
    (request,) = asked
    assert (request.split, request.variant, request.model, request.limit) == ("test", None, None, None)


def test_a_bad_option_is_the_users_mistake(asked: list[Any]) -> None:
    result = CliRunner().invoke(app, ["--data", "task", "--path", "d", "--out", "o", "--option", "history"])
    assert isinstance(result.exception, InputError)
    assert asked == []


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "teo.runtime.torch_generator", raising=False)
    ModelFolder({"direct": Role("weights")}).save(tmp_path)
    options = {"--data": "jsonl", "--path": tmp_path, "--model": tmp_path, "--out": tmp_path / "o"}
    result = CliRunner().invoke(app, [str(word) for pair in options.items() for word in pair])
    assert isinstance(result.exception, MissingExtraError)
    assert str(result.exception) == (
        "a model that was not exported needs the library 'torch', which is not installed: "
        "pip install 'teo-rewriter[train]'"
    )


@pytest.mark.process
@pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
def test_an_exported_model_needs_no_torch(tmp_path: Path) -> None:
    rows = tmp_path / "test.jsonl"
    rows.write_text('{"id": "1", "history": ["ben is here"], "utterance": "is he", "rewrite": "is ben"}\n')
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'onnx', 'accelerate'): sys.modules[name] = None\n"
        "from teo.cli.app import main\n"
        "main()\n"
    )
    options = {"--data": "jsonl", "--path": rows, "--model": DEFAULT_MODEL, "--out": tmp_path / "o"}
    words = ["evaluate", "--variant", "fused", *(str(word) for pair in options.items() for word in pair)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fused on jsonl (test), 1 rows, in percent\npipeline: fused alone")
    assert json.loads((tmp_path / "o" / "metrics.json").read_text())["run"]["device"] == "cpu"
    refused = subprocess.run([sys.executable, "-c", code, *words, "--device", "cuda"], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "teo: device: an exported model runs on the CPU as it is, found cuda; leave it out, or give the folder that "
        "training wrote with runtime 'torch'\n"
    )


@pytest.mark.process
def test_help_loads_neither_torch_nor_numpy() -> None:
    code = "import sys; import teo.cli.evaluate; sys.exit(any(name in sys.modules for name in ('torch', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
