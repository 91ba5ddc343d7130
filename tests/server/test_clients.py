"""What clients of several kinds ask for: several rewrites, ids, models, usage, other origins, the token's scheme."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.server.app import create_app
from teo.server.chat import measure_usage
from teo.server.schemas import ChatRequest
from teo.server.settings import ServerSettings

Ask = Callable[..., httpx.Response]
ADA = {"history": ["I met Ada Lovelace."], "utterance": "is he here?"}
MESSAGES = [{"role": "user", "content": "I met Ada Lovelace."}, {"role": "user", "content": "is he here?"}]
REWRITE = "is Ada Lovelace here?"
CHAT = "/v1/chat/completions"
ORIGIN = "https://chat.example.org"


# ---- several rewrites, ids, reasons ----


@pytest.mark.parametrize("form", ["turns", "messages"])
def test_several_rewrites_are_alternatives_of_the_record(ask: Ask, form: str) -> None:
    body: dict[str, Any] = ADA if form == "turns" else {"messages": MESSAGES}
    record = ask("POST", "/v1/rewrite", json=body | {"n_best": 3}).json()
    assert record == FakeRewriter().rewrite(**ADA, n_best=3).to_dict()
    assert [one["rewrite"] for one in record["alternatives"]] == [
        REWRITE,
        f"{REWRITE}!",
        ADA["utterance"],
    ]
    assert record["rewrite"] == REWRITE


def test_items_have_alternatives_too_and_without_n_best_there_are_none(ask: Ask) -> None:
    items = ask(
        "POST", "/v1/rewrite", json={"items": [ADA, {"history": [], "utterance": "Hello!"}], "n_best": 2}
    ).json()["items"]
    assert [len(item["alternatives"]) for item in items] == [2, 1]
    assert items[1]["alternatives"][0]["confidence"] is None
    assert "alternatives" not in ask("POST", "/v1/rewrite", json=ADA | {"n_best": 1}).json()


def test_dialogues_that_ask_for_several_rewrites_fill_as_many_places_of_a_batch(
    ask: Ask, rewriter: FakeRewriter
) -> None:
    ask("POST", "/v1/rewrite", server={"max_batch": 8}, json={"items": [ADA] * 8, "n_best": 4})
    assert [len(batch) for batch in rewriter.batches] == [2, 2, 2, 2]


def test_a_pipeline_that_has_one_rewrite_only_says_so(ask: Ask, rewriter: FakeRewriter) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise InputError("n_best: expected a variant that writes one text (fast), found 'teo'")

    rewriter.try_many = refuse  # type: ignore[method-assign]
    answer = ask("POST", "/v1/rewrite", json=ADA | {"n_best": 2})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "n_best"


def test_ids_come_back_as_they_were(ask: Ask) -> None:
    ids = ["a", 7, "", None, 10**20, "\u00fc"]
    items = [ADA | {"id": name} for name in ids] + [{"messages": MESSAGES, "id": "m"}, ADA]
    found = ask("POST", "/v1/rewrite", json={"items": items}).json()["items"]
    assert [item.get("id", "absent") for item in found] == [*ids, "m", "absent"]
    assert ask("POST", "/v1/rewrite", json=ADA | {"id": "x"}).json()["id"] == "x"


@pytest.mark.parametrize(
    ("history", "utterance", "reason", "asked"),
    [
        ([], "is he here?", "no-history", False),
        (None, "is he here?", "no-history", False),
        (["I met Ada Lovelace."], " ", "empty", False),
        (["I met Ada Lovelace."], "Hello!", "reaction", False),
        (["I met Ada Lovelace."], "`x = 1`", "code", False),
        (["I met Ada Lovelace."], "he " * 1000, "too-long", False),
        (["I met Ada Lovelace."], "Water is wet.", "complete", True),
        (["I met Ada Lovelace."], "maybe he did", "unsure", True),
        (["I met Ada Lovelace."], "is he here?", None, True),
    ],
)
def test_a_record_says_why_an_utterance_was_kept(
    ask: Ask, history: list[str] | None, utterance: str, reason: str | None, asked: bool
) -> None:
    record = ask("POST", "/v1/rewrite", json={"history": history, "utterance": utterance}).json()
    assert record["reason"] == reason
    assert (record["confidence"] is not None) is asked


# ---- chat protocol ----


def test_models_are_listed_and_found_by_name(ask: Ask) -> None:
    listed = ask("GET", "/v1/models").json()
    assert listed["object"] == "list"
    (model,) = listed["data"]
    assert model == {"id": "fake", "object": "model", "created": model["created"], "owned_by": "teo"}
    found = ask("GET", "/v1/models/fake").json()
    assert found | {"created": 0} == model | {"created": 0}
    missing = ask("GET", "/v1/models/gpt")
    assert (missing.status_code, missing.json()["detail"]) == (
        404,
        "model: expected 'fake', found another; see /v1/models",
    )
    assert ask("GET", "/v1/models", server={"token": "secret"}).status_code == 401


def test_usage_counts_the_models_tokens(ask: Ask) -> None:
    answer = ask("POST", CHAT, json={"messages": MESSAGES}).json()
    assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}


def test_a_rewriter_that_cannot_count_is_counted_in_words_and_characters() -> None:
    class Uncounted:
        pass

    found = measure_usage(Uncounted(), Dialogue(("你好 Ada",), "他?"), ["a b"])  # type: ignore[arg-type]
    assert found == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def test_choices_are_the_alternatives(ask: Ask) -> None:
    answer = ask("POST", CHAT, json={"messages": MESSAGES, "n": 3}).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in answer["choices"]]
    assert (
        texts == [REWRITE, f"{REWRITE}!", ADA["utterance"]] == [one["rewrite"] for one in answer["teo"]["alternatives"]]
    )
    assert answer["usage"]["completion_tokens"] == 11
    assert len(ask("POST", CHAT, json={"messages": MESSAGES, "n": None}).json()["choices"]) == 1


@pytest.mark.parametrize("n", [0, 17, "2"])
def test_choices_that_cannot_be_are_refused_in_the_protocols_form(ask: Ask, n: Any) -> None:
    answer = ask("POST", CHAT, json={"messages": MESSAGES, "n": n})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "n"
    assert answer.json()["error"]["message"].startswith("n: expected an integer from 1 to 16, found")


def test_a_stream_has_every_choice_and_the_usage_where_asked(ask: Ask) -> None:
    body = {"messages": MESSAGES, "n": 2, "stream": True}
    plain, counted = (
        ask("POST", CHAT, json=body | more).text.split("\n\n")[:-1]
        for more in ({}, {"stream_options": {"include_usage": True}})
    )
    assert len(counted) == len(plain) + 1
    chunks = [json.loads(line.removeprefix("data: ")) for line in counted[:-1]]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 14
    texts = {0: "", 1: ""}
    for chunk in chunks[:-1]:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: REWRITE, 1: ADA["utterance"]}
    assert not any("usage" in line for line in plain)


def test_the_official_client_lists_models_and_reads_choices(live_server: Callable[..., Any]) -> None:
    openai = pytest.importorskip("openai", reason="the openai library is not installed")
    with live_server(token="secret") as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="secret")
        assert [model.id for model in client.models.list()] == ["fake"]
        assert client.models.retrieve("fake").id == "fake"
        answer = client.chat.completions.create(model="fake", messages=MESSAGES, n=2)
        assert [choice.message.content for choice in answer.choices] == [REWRITE, ADA["utterance"]]
        assert answer.usage.total_tokens == 14


def test_a_client_of_the_chat_protocol_says_when_to_rewrite(ask: Ask) -> None:
    long = [{"role": "user", "content": "I met Ada Lovelace."}] * 60 + [{"role": "user", "content": "maybe he did"}]
    body = {"messages": long, "prefer": "search", "truncation": "oldest"}
    assert ask("POST", CHAT, json=body).json()["teo"]["truncated"]["turns"] == 10
    refused = ask("POST", CHAT, json=body | {"truncation": "error"})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "messages: expected a dialogue of at most 50 turns"
    assert ask("POST", CHAT, json=body | {"truncation": "x"}).json()["error"]["param"] == "truncation"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("n_best", "n"),
        ("min_confidense", "min_confidence"),
        ("minConfidence", "min_confidence"),
        ("perfer", "prefer"),
        ("trunctation", "truncation"),
    ],
)
def test_a_setting_of_another_name_is_refused_in_a_chat(ask: Ask, key: str, expected: str) -> None:
    answer = ask("POST", CHAT, json={"messages": MESSAGES, key: None})
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"{key}: unknown field; expected {expected}"
    assert answer.json()["error"]["param"] == key


def test_every_setting_of_the_chat_protocol_is_accepted() -> None:
    pytest.importorskip("openai", reason="the openai library is not installed")
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase

    others = CompletionCreateParamsBase.__annotations__.keys() - ChatRequest.model_fields.keys()
    assert len(others) > 20
    assert ChatRequest(messages=MESSAGES, **dict.fromkeys(others)).misspelt is None


def test_a_pipeline_that_has_one_rewrite_only_says_so_of_n(ask: Ask, rewriter: FakeRewriter) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise InputError("n_best: expected a variant that writes one text (fast), found 'teo'")

    rewriter.try_many = refuse  # type: ignore[method-assign]
    problem = ask("POST", CHAT, json={"messages": MESSAGES, "n": 2}).json()
    assert problem["detail"] == "n: expected a variant that writes one text (fast), found 'teo'"
    assert problem["errors"][0]["field"] == problem["error"]["param"] == "n"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 401),
        ("POST", "/v1/chat/completions", 401),
        ("GET", "/v1/models/gpt", 404),
        ("POST", "/chat/completions", 404),
        ("POST", "/v1/embeddings", 404),
    ],
)
def test_a_problem_anywhere_has_the_form_that_chat_clients_read(ask: Ask, method: str, path: str, status: int) -> None:
    headers = {} if status == 401 else {"authorization": "Bearer secret"}
    answer = ask(method, path, server={"token": "secret"}, json={}, headers=headers)
    problem = answer.json()
    assert answer.status_code == status
    assert problem["error"] == {
        "message": problem["detail"],
        "type": "unauthorized" if status == 401 else "not-found",
        "param": "Authorization" if status == 401 else None,
        "code": "unauthorized" if status == 401 else "not-found",
    }


def test_the_official_client_says_why_it_was_refused(live_server: Callable[..., Any]) -> None:
    openai = pytest.importorskip("openai", reason="the openai library is not installed")
    with live_server(token="secret") as url:
        with pytest.raises(openai.AuthenticationError) as caught:
            openai.OpenAI(base_url=f"{url}/v1", api_key="wrong").models.list()
        assert caught.value.code == "unauthorized"
        with pytest.raises(openai.NotFoundError) as missing:
            openai.OpenAI(base_url=url, api_key="secret").models.list()
        assert missing.value.body["message"] == "/models: no such address; see /openapi.json"


# ---- other origins ----


def preflight(ask: Ask, **server: Any) -> httpx.Response:
    headers = {
        "origin": ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os,traceparent",
    }
    return ask("OPTIONS", "/v1/rewrite", server=server, headers=headers)


def test_other_origins_are_let_in_by_setting_only(ask: Ask) -> None:
    assert preflight(ask).status_code == 405
    for origins, allowed in [((), None), (("https://other.example.org",), None), ((ORIGIN,), ORIGIN), (("*",), "*")]:
        answer = ask("POST", "/v1/rewrite", server={"cors_origins": origins}, json=ADA, headers={"origin": ORIGIN})
        assert answer.headers.get("access-control-allow-origin") == allowed, origins


def test_a_page_elsewhere_may_ask_with_a_token_and_read_why_it_was_refused(ask: Ask) -> None:
    server = {"cors_origins": (ORIGIN,), "token": "secret"}
    asked = preflight(ask, **server)
    assert asked.status_code == 200, "the browser asks before it sends the token"
    allowed = asked.headers["access-control-allow-headers"].lower().split(",")
    assert {"authorization", "x-stainless-os", "traceparent"} <= set(allowed), "what clients and tracers add, too"
    assert "access-control-allow-credentials" not in asked.headers
    refused = ask("POST", "/v1/rewrite", server=server, json=ADA, headers={"origin": ORIGIN})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert "X-Request-ID" in refused.headers["access-control-expose-headers"]


# ---- the description ----


@pytest.mark.parametrize(("token", "security"), [(None, [{}, {"bearerToken": []}]), ("s", [{"bearerToken": []}])])
def test_the_description_says_where_the_token_goes(token: str | None, security: list[Any]) -> None:
    whole = create_app(FakeRewriter(), ServerSettings(token=token)).openapi()
    assert whole["components"]["securitySchemes"]["bearerToken"] | {"description": ""} == {
        "type": "http",
        "scheme": "bearer",
        "description": "",
    }
    found = {path: next(iter(operations.values())).get("security") for path, operations in whole["paths"].items()}
    assert found.pop("/health") is None
    assert set(found) == {"/v1/rewrite", CHAT, "/v1/models", "/v1/models/{model_id}", "/metrics"}
    assert all(value == security for value in found.values())


def test_the_examples_of_the_description_are_answered(ask: Ask) -> None:
    whole = create_app(FakeRewriter()).openapi()
    sent = 0
    for path in ("/v1/rewrite", CHAT):
        content = whole["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for name, example in content["examples"].items():
            assert ask("POST", path, json=example["value"]).status_code == 200, name
            sent += 1
    assert sent == 5
