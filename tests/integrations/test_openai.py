"""The OpenAI client library, and plain HTTP, against a running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

openai = pytest.importorskip("openai", reason="pip install openai")

MESSAGES = [{"role": "user", "content": "I met Ada Lovelace."}, {"role": "user", "content": "maybe he"}]


def test_the_example_gets_the_rewrite_whole_and_streamed(
    example: Callable[[str], Any], live_server: Callable[..., Any], capsys: Any
) -> None:
    with live_server(token="secret") as url:
        assert example("openai_client").main(url, "secret") == "When did Pierre Curie die?"
    shown = capsys.readouterr().out
    assert "'When did Pierre Curie die?', confidence 0.93" in shown
    assert "'When did Pierre Curie die?', streamed" in shown


def test_the_threshold_goes_through_the_clients_extra_body(live_server: Callable[..., Any]) -> None:
    with live_server() as url, openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
        kept = client.chat.completions.create(model="teo", messages=MESSAGES, temperature=0.5)
        moved = client.chat.completions.create(model="teo", messages=MESSAGES, extra_body={"min_confidence": 0.1})
    assert kept.choices[0].message.content == "maybe he"
    assert moved.choices[0].message.content == "maybe Ada Lovelace"
    assert moved.choices[0].finish_reason == "stop"
    assert moved.teo["operations"] == "[D] he [R] Ada Lovelace"


def test_problems_become_the_clients_own_errors(live_server: Callable[..., Any]) -> None:
    with live_server(token="secret") as url:
        wrong, right = (openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) for key in ("wrong", "secret"))
        with wrong, pytest.raises(openai.AuthenticationError, match="expected 'Bearer' and the server's token"):
            wrong.chat.completions.create(model="teo", messages=MESSAGES)
        with right, pytest.raises(openai.UnprocessableEntityError) as caught:
            right.chat.completions.create(model="teo", messages=[{"role": "user"}])
    assert caught.value.param == "messages[0].content"
    assert caught.value.code == "invalid-input"


def test_the_plain_http_example(example: Callable[[str], Any], live_server: Callable[..., Any]) -> None:
    with live_server(token="secret") as url:
        assert example("http_client").main(url, "secret") == ["When did Pierre Curie die?", "周杰伦哪年出生的"]
