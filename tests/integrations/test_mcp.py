"""The protocol's own SDK: its client starts `teo mcp` as a process and calls the tool."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.errors import InputError, MissingExtraError
from teo.result import Rewrite
from teo.rewriter import Rewriter

pytest.importorskip("mcp_types", reason="pip install 'teo-rewriter[mcp]'")

from mcp import Client, StdioServerParameters

from teo.integrations.mcp import OUTPUT_SCHEMA, call_rewriter, create_server

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
CURIE = {
    "history": ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."],
    "utterance": "When did he die?",
}
CHAT = {
    "messages": [
        {"role": "user", "content": "你喜欢周杰伦吗"},
        {"role": "assistant", "content": "喜欢"},
        {"role": "user", "content": "他哪年出生的"},
    ]
}


def command(*options: str) -> StdioServerParameters:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return StdioServerParameters(command=sys.executable, args=["-m", "teo", "mcp", *options], env=environment)


def talk(server: Any, conversation: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with Client(server, **options) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.process
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_starts_the_command_and_gets_text_and_record(mode: str) -> None:
    async def conversation(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        return tools, await client.call_tool("rewrite", CURIE), await client.call_tool("rewrite", CHAT)

    tools, english, chinese = talk(command("--threads", "1"), conversation, mode=mode)
    assert [tool.name for tool in tools] == ["rewrite"]
    local = Rewriter.from_pretrained(threads=1)
    assert not english.is_error
    assert english.structured_content == local.rewrite(**CURIE).to_dict()  # type: ignore[arg-type]
    assert [part.text for part in english.content] == ["When did Pierre Curie die?"]
    assert chinese.structured_content == local.rewrite(**CHAT).to_dict()  # type: ignore[arg-type]


def test_it_may_stand_before_a_running_server(live_server: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setenv("TEO_TOKEN", "secret")
    with live_server(token="secret") as url:
        result = talk(command("--url", url), lambda client: client.call_tool("rewrite", CURIE))
    assert result.structured_content["confidence"] == 0.93
    assert result.content[0].text == "When did Pierre Curie die?"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "utterance: missing; found no keys; a row is"),
        ({"utterance": "x"}, "history: missing; found utterance; a row is"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages[0]: expected the user's message at the end"),
        ({"utterance": 3}, "utterance: expected a string, found a number"),
        ({**CURIE, **CHAT}, "messages: expected either messages or history and utterance, found both"),
        ({**CURIE, "model": "x"}, "model: unknown argument; expected history, utterance, messages, prefer"),
        ({**CURIE, "min_confidence": "high"}, "min_confidence: expected a number, found 'high'"),
        ({**CURIE, "n_best": 2.5}, "n_best: expected a whole number, found 2.5"),
        ({**CURIE, "n_best": True}, "n_best: expected a whole number, found True"),
    ],
)
def test_a_bad_call_is_the_tools_error_in_a_sentence(
    rewriter: FakeRewriter, arguments: dict[str, Any], message: str
) -> None:
    result = talk(create_server(rewriter), lambda client: client.call_tool("rewrite", arguments))
    assert result.is_error
    assert result.content[0].text.startswith(message)
    assert result.structured_content is None


def test_another_tool_is_an_error(rewriter: FakeRewriter) -> None:
    result = talk(create_server(rewriter), lambda client: client.call_tool("translate", CURIE))
    assert result.is_error
    assert result.content[0].text == "tool: expected 'rewrite', found 'translate'"


def test_a_model_that_breaks_does_not_tell_a_users_words(rewriter: FakeRewriter) -> None:
    async def conversation(client: Client) -> Any:
        broken = await client.call_tool("rewrite", {**CURIE, "utterance": "explode"})
        return broken, await client.call_tool("rewrite", CURIE)

    broken, after = talk(create_server(rewriter), conversation)
    assert broken.is_error
    assert broken.content[0].text == "the rewriter failed (RuntimeError); the server is still running"
    assert after.content[0].text == "When did Pierre Curie die?"


def test_options_reach_the_model_and_null_is_nothing(rewriter: FakeRewriter) -> None:
    maybe = {"history": ["I met Ada Lovelace."], "utterance": "maybe he", "messages": None, "n_best": None}
    assert call_rewriter(rewriter, maybe).rewrite == "maybe he"
    assert call_rewriter(rewriter, {**maybe, "min_confidence": 0.1}).rewrite == "maybe Ada Lovelace"
    assert call_rewriter(rewriter, {**maybe, "history": None}).reason == "no-history"
    assert call_rewriter(rewriter, {**CHAT, "history": None, "utterance": None}).changed
    several = call_rewriter(Rewriter.from_pretrained(threads=1), {**CURIE, "n_best": 3})
    assert len(several.alternatives) > 1


def test_calls_do_not_wait_for_the_event_loop(rewriter: FakeRewriter) -> None:
    talk(create_server(rewriter), lambda client: client.call_tool("rewrite", CURIE))
    assert "MainThread" not in rewriter.threads


def test_the_record_is_described_key_by_key() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    record = Rewriter.from_pretrained(threads=1).rewrite(**CURIE, n_best=2).to_dict()  # type: ignore[arg-type]
    assert record.keys() <= OUTPUT_SCHEMA["properties"].keys()
    assert set(OUTPUT_SCHEMA["required"]) <= Rewrite("x").to_dict().keys()
    jsonschema.validate(record, OUTPUT_SCHEMA)
    jsonschema.validate({**record, "confidence": None, "reason": "no-history"}, OUTPUT_SCHEMA)


@pytest.mark.process
def test_stdout_carries_the_protocol_alone_and_the_end_of_stdin_ends_it() -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    done = subprocess.run(
        [sys.executable, "-m", "teo", "mcp", "--threads", "1"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["result"]["serverInfo"]["name"] for answer in answers] == ["teo"]
    assert done.returncode == 0


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--url", "http://127.0.0.1:1", "--threads", "1"], "teo: url: the server chooses model, variant and threads"),
        (["--url", "localhost:8000"], "teo: url: expected http:// or https://, found 'localhost:8000'"),
        (["--model", "/no/such/folder"], "teo: /no/such/folder"),
    ],
)
def test_a_command_that_cannot_start_is_one_line(options: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "teo", "mcp", *options],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "teo.integrations.mcp")
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("teo.integrations.mcp")
    assert str(caught.value).endswith("which is not installed: pip install 'teo-rewriter[mcp]'")
    assert isinstance(caught.value, InputError)


@pytest.mark.process
def test_the_example_calls_the_tool(example: Callable[[str], Any], monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    record = asyncio.run(example("mcp_client").call(["--threads", "1"]))
    assert record["rewrite"] == "When did Pierre Curie die?"
    assert "tools: rewrite" in capsys.readouterr().out
