"""`teo serve`: what its options become, what it refuses, and that it says which extra is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import teo.server.run as running
from teo.cli.serve import serve
from teo.errors import ConfigError, InputError, MissingExtraError, ModelError, TeoError
from teo.rewriter import Rewriter
from teo.server.settings import ServerSettings

needs_server = pytest.mark.skipif(
    importlib.util.find_spec("fastapi") is None, reason="pip install 'teo-rewriter[serve]'"
)


def run(*arguments: str, env: dict[str, str | None] | None = None) -> Any:
    app = typer.Typer()
    app.command()(serve)
    return CliRunner().invoke(app, list(arguments), env={"TEO_TOKEN": None, **(env or {})})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    """What would have been run."""
    calls: list[tuple[Any, Any, dict[str, Any]]] = []

    def run_nothing(bound: Any, settings: ServerSettings, workers: int) -> bool:
        plan = running.read_plan(running.os.environ[running.PLAN], running.os.environ["TEO_TOKEN"] or None)
        assert plan[1] == settings
        assert Path(running.os.environ["PROMETHEUS_MULTIPROC_DIR"]).is_dir()
        calls.append((plan[0], settings, {"address": bound, "workers": workers}))
        return True

    for name in ("PROMETHEUS_MULTIPROC_DIR", running.PLAN, "TEO_TOKEN"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(running, "bind", lambda host, port: FakeSocket((host, port)))
    monkeypatch.setattr(running, "_run", run_nothing)
    return calls


class FakeSocket(tuple[str, int]):
    """An address that nothing listens at."""

    def __enter__(self) -> FakeSocket:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return self[0], self[1]


@needs_server
def test_by_default_it_is_one_worker_on_loopback(started: list[Any]) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    settings = ServerSettings(local_only=True)
    assert started == [(running.ServerModelChoice(), settings, {"address": ("127.0.0.1", 8000), "workers": 1})]


@needs_server
def test_options_become_settings(started: list[Any]) -> None:
    result = run(
        *["--port", "9", "--model", "m", "--variant", "fast", "--threads", "2", "--max-body", "10", "--max-items", "3"],
        *["--max-turns", "4", "--max-characters", "5", "--max-queue", "6", "--max-batch", "7", "--window-ms", "0"],
        *["--request-timeout", "8", "--log-text", "--cors-origin", "https://a.org", "--cors-origin", "*"],
        env={"TEO_TOKEN": "secret"},
    )
    assert result.exit_code == 0, result.output
    choice, settings, options = started[0]
    assert choice == running.ServerModelChoice("m", "fast", 2)
    assert settings == ServerSettings(
        token="secret", max_body=10, max_items=3, max_turns=4, max_characters=5, max_queue=6, max_batch=7,
        window_ms=0, request_timeout=8, log_text=True, cors_origins=("https://a.org", "*"),
    )  # fmt: skip
    assert options["address"][1] == 9


@needs_server
@pytest.mark.parametrize(
    ("arguments", "env", "allowed"),
    [
        (["--host", "0.0.0.0"], {}, False),
        (["--host", "0.0.0.0"], {"TEO_TOKEN": ""}, False),
        (["--host", "0.0.0.0"], {"TEO_TOKEN": "secret"}, True),
        (["--host", "0.0.0.0", "--token", "secret"], {}, True),
        (["--host", "0.0.0.0", "--allow-anonymous"], {}, True),
        (["--host", "localhost"], {}, True),
    ],
)
def test_without_a_token_it_stays_on_this_machine(
    started: list[Any], arguments: list[str], env: dict[str, str | None], allowed: bool
) -> None:
    result = run(*arguments, env=env)
    assert (len(started) == 1) is allowed
    if not allowed:
        assert isinstance(result.exception, InputError)
        assert str(result.exception).startswith("host: 0.0.0.0 can be reached from other machines and there is no")


@needs_server
@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["--runtime", "abacus"], InputError, "runtime: expected onnx or torch, found 'abacus'"),
        (["--dtype", "int8"], InputError, "dtype: expected float32 or bfloat16, found 'int8'"),
        (["--max-queue", "5"], ConfigError, "max_queue: expected at least max_items (256), found 5"),
    ],
)
def test_what_cannot_be_is_refused(started: list[Any], arguments: list[str], kind: type, message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, kind)
    assert str(result.exception).startswith(message)
    assert started == []


@needs_server
def test_several_workers_get_their_plan(started: list[Any]) -> None:
    settings = ServerSettings(token="secret", max_batch=4)
    running.serve(running.ServerModelChoice("m", device="cuda:1"), settings, port=1, workers=3)
    choice, found, options = started[0]
    assert (choice, found) == (running.ServerModelChoice("m", device="cuda:1"), settings)
    assert options["workers"] == 3


@needs_server
def test_a_server_none_of_whose_workers_could_load_the_model_says_why(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "_run", lambda bound, settings, workers: False)
    with pytest.raises(ModelError):
        running.serve(running.ServerModelChoice(str(tmp_path)), ServerSettings(), workers=2)
    monkeypatch.setattr(running.ServerModelChoice, "load", lambda choice: None)
    with pytest.raises(TeoError, match="workers: expected one to start, found that none could load the model"):
        running.serve(running.ServerModelChoice(), ServerSettings())


def test_the_choice_of_a_model_reaches_the_rewriter(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(Rewriter, "from_pretrained", lambda *args, **options: given.append((args, options)))
    running.ServerModelChoice("m", "fast", 2, "torch", "cuda", "bfloat16").load()
    options = {"variant": "fast", "threads": 2, "runtime": "torch", "device": "cuda", "dtype": "bfloat16"}
    assert given == [(("m",), options)]


@pytest.mark.parametrize("library", ["fastapi", "uvicorn", "prometheus_client"])
def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError) as caught:
        running.require_server_libraries()
    assert str(caught.value) == (
        f"teo serve needs the library '{library}', which is not installed: pip install 'teo-rewriter[serve]'"
    )


@pytest.mark.process
def test_the_verb_imports_no_server_before_it_runs() -> None:
    code = (
        "import sys, teo.cli.serve; print([m for m in ('fastapi', 'uvicorn', 'pydantic', 'numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
