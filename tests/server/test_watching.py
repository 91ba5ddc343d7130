"""What the operator sees: metrics and logs, and that neither holds users' text unless asked."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from teo.errors import InputError
from teo.result import Rewrite
from teo.server.logs import JsonFormatter, describe_failure, log_config
from teo.server.metrics import ServerMetrics, outcome_of

Talk = Callable[..., Any]
HISTORY = ["I met Ada Lovelace."]


def samples(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_metrics_count_what_happened(talk: Talk) -> None:
    async def conversation(client: httpx.AsyncClient) -> str:
        for utterance in ("is he?", "is he!", "maybe he", "nothing here"):
            await client.post("/v1/rewrite", json={"history": HISTORY, "utterance": utterance})
        await client.post("/v1/rewrite", json={"history": ["x"] * 51, "utterance": "y"})
        await client.post("/v1/rewrite", json={"history": ["x"] * 51, "utterance": "y", "truncation": "error"})
        await client.post("/v1/rewrite", json={"items": [{"history": [], "utterance": "a"}] * 3})
        await client.post("/v1/rewrite", json={"utterance": 5})
        await client.post("/v1/rewrite", json={"messages": [{"role": "user"}]})
        await client.post("/v1/chat/completions", json={"messages": [{"role": "user"}]})
        await client.post("/v1/rewrite", json={"items": [{"messages": [{"role": "user"}]}, {"utterance": 5}]})
        await client.post("/v1/rewrite", json={"items": 5})
        await client.post("/v1/rewrite", content=b"{", headers={"content-type": "application/json"})
        await client.get("/some/made-up/address")
        return (await client.get("/metrics")).text

    found = samples(talk(conversation, window_ms=0))
    expected = {
        'teo_requests_total{path="/v1/rewrite",status="200"}': 7,
        'teo_requests_total{path="/v1/rewrite",status="422"}': 4,
        'teo_requests_total{path="other",status="404"}': 1,
        'teo_rewrites_total{outcome="changed"}': 2,
        'teo_rewrites_total{outcome="abstained"}': 1,
        'teo_rewrites_total{outcome="unchanged"}': 5,
        'teo_rewrites_total{outcome="refused"}': 6,
        "teo_truncated_total": 1,
        'teo_batch_size_bucket{le="1.0"}': 6,
        "teo_batch_size_sum": 9,
        'teo_stage_seconds_count{stage="model"}': 7,
        'teo_stage_seconds_count{stage="queue"}': 9,
        'teo_stage_seconds_count{stage="total"}': 13,
        "teo_queue_dialogues": 0,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_metrics_hold_no_text_and_no_address_of_the_callers(talk: Talk) -> None:
    async def conversation(client: httpx.AsyncClient) -> str:
        await client.post("/v1/rewrite", json={"history": HISTORY, "utterance": "is he hidden?"})
        await client.get("/hidden")
        return (await client.get("/metrics")).text

    text = talk(conversation)
    assert "hidden" not in text
    assert "Lovelace" not in text


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (Rewrite("a"), "unchanged"),
        (Rewrite("a", operations="[I] b", confidence=0.1), "abstained"),
        (Rewrite("ab", changed=True), "changed"),
        (InputError("no"), "refused"),
    ],
)
def test_outcomes(result: Any, outcome: str) -> None:
    assert outcome_of(result) == outcome


def test_two_servers_of_one_process_count_apart() -> None:
    one, other = ServerMetrics(), ServerMetrics()
    one.truncated.inc()
    assert "teo_truncated_total 1.0" in one.render().decode()
    assert "teo_truncated_total 0.0" in other.render().decode()


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    formatter = JsonFormatter()
    return [json.loads(formatter.format(record)) for record in caplog.records if record.name == "teo.server"]


async def rewrite_and_fail(client: httpx.AsyncClient) -> None:
    await client.post(
        "/v1/rewrite", json={"history": HISTORY, "utterance": "is he secret?"}, headers={"x-request-id": "r1"}
    )
    await client.post("/v1/rewrite", json={"history": HISTORY, "utterance": "explode secret"})
    await client.get("/health")


def test_a_request_is_one_line_of_json_without_text(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "teo.server")
    talk(rewrite_and_fail)
    good, bad = logged(caplog)
    assert good["event"] == "request"
    assert {name: good[name] for name in ("level", "request_id", "method", "path", "status")} == {
        "level": "info", "request_id": "r1", "method": "POST", "path": "/v1/rewrite", "status": 200,
    }  # fmt: skip
    assert (good["dialogues"], good["batch"], good["changed"]) == (1, 1, 1)
    assert good["ms"] >= good["model_ms"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", good["time"])
    assert (bad["status"], bad["level"], bad["failure"]["error"]) == (500, "error", "RuntimeError")
    assert bad["failure"]["frames"][-1].startswith("fake_rewriter.py:")
    assert "secret" not in json.dumps([good, bad])
    assert "Lovelace" not in json.dumps([good, bad])


def test_text_is_logged_where_it_is_asked_for(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "teo.server")
    talk(rewrite_and_fail, log_text=True)
    good, bad = logged(caplog)
    assert good["text"] == [{"history": HISTORY, "utterance": "is he secret?", "result": "is Ada Lovelace secret?"}]
    assert bad["failure"]["message"] == "secret words of a user"


def test_a_log_line_of_another_library_keeps_its_failure_to_a_name() -> None:
    try:
        raise ValueError("a user's words")
    except ValueError as error:
        assert describe_failure(error, with_text=False)["error"] == "ValueError"
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "f.py", 1, "it broke", (), info)
    line = json.loads(JsonFormatter().format(record))
    assert (line["event"], line["failure"]["error"]) == ("it broke", "ValueError")
    assert "words" not in json.dumps(line)


def test_logs_go_to_stderr() -> None:
    assert log_config()["handlers"]["stderr"]["stream"] == "ext://sys.stderr"
