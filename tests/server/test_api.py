"""What callers send and get: records, problems that name the field, limits, the token, request ids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.edits import EditScript, make_edit
from teo.server import problems

Ask = Callable[..., httpx.Response]
HISTORY = ["I think Bruce Wayne is very handsome.", "The poster looks a bit like Ben Affleck."]
BATMAN = {"history": HISTORY, "utterance": "It is he who acted."}
RECORD = {
    "rewrite": "It is Ben Affleck who acted as Bruce Wayne.",
    "changed": True,
    "edits": [
        {"op": "replace", "start": 6, "end": 8, "old": "he", "new": "Ben Affleck"},
        {"op": "insert", "start": 18, "end": 18, "old": "", "new": " as Bruce Wayne"},
    ],
    "operations": "[D] he [R] Ben Affleck [I] as Bruce Wayne",
    "confidence": 0.875,
    "reason": None,
    "truncated": {"turns": 0, "characters": 0},
}
CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}


def messages(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[k % 2], "content": text} for k, text in enumerate(texts)]


# ---- records ----


def test_one_dialogue_gives_the_record_that_python_gives(ask: Ask) -> None:
    answer = ask("POST", "/v1/rewrite", json=BATMAN)
    assert answer.status_code == 200
    assert answer.json() == RECORD == FakeRewriter().rewrite(HISTORY, "It is he who acted.").to_dict()
    script = EditScript(tuple(make_edit(one["start"], one["old"], one["new"]) for one in answer.json()["edits"]))
    assert script.apply("It is he who acted.") == RECORD["rewrite"]


def test_chat_messages_give_the_same_record(ask: Ask) -> None:
    system = {"role": "system", "content": "Be kind to Grace Hopper."}
    answer = ask("POST", "/v1/rewrite", json={"messages": [system, *messages(*HISTORY, "It is he who acted.")]})
    assert answer.json() == RECORD


def test_several_dialogues_of_both_forms_keep_their_order(ask: Ask) -> None:
    items = [{"history": [], "utterance": "Hello!"}, BATMAN, {"messages": messages(*HISTORY, "It is he who acted.")}]
    answer = ask("POST", "/v1/rewrite", json={"items": items}).json()
    assert [item["rewrite"] for item in answer["items"]] == ["Hello!", RECORD["rewrite"], RECORD["rewrite"]]
    assert answer["items"][0]["changed"] is False
    assert ask("POST", "/v1/rewrite", json={"items": []}).json() == {"items": []}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, False),
        ({"min_confidence": 0.2}, True),
        ({"min_confidence": 0.3}, False),
        ({"min_confidence": 0}, True),
        ({"prefer": "search"}, True),
        ({"prefer": "balanced"}, False),
        ({"prefer": "careful"}, False),
    ],
    ids=["by default", "below", "above", "always", "search", "balanced", "careful"],
)
def test_the_threshold_moves(ask: Ask, options: dict[str, Any], changed: bool) -> None:
    answer = ask("POST", "/v1/rewrite", json={"history": HISTORY, "utterance": "maybe he did"} | options).json()
    assert answer["changed"] is changed
    assert answer["confidence"] == 0.25
    assert answer["operations"] == "[D] he [R] Ben Affleck", "what was proposed stays visible"


def test_what_was_not_read_is_stated_or_refused_as_asked(ask: Ask) -> None:
    long = {"history": ["old"] * 10 + ["Ada Lovelace"] * 50, "utterance": "is he?"}
    assert ask("POST", "/v1/rewrite", json=long).json()["truncated"] == {"turns": 10, "characters": 30}
    refused = ask("POST", "/v1/rewrite", json={"items": [BATMAN, long], "truncation": "error"})
    assert refused.json()["items"][0]["rewrite"] == RECORD["rewrite"]
    assert refused.json()["items"][1]["error"]["message"] == "history: expected a dialogue of at most 50 turns"
    alone = ask("POST", "/v1/rewrite", json=long | {"truncation": "error"})
    assert (alone.status_code, alone.json()["errors"][0]["field"]) == (422, "history")
    chat = {"messages": messages(*long["history"], long["utterance"]), "truncation": "error"}
    assert ask("POST", "/v1/rewrite", json=chat).json()["errors"] == [
        {"field": "messages", "message": "expected a dialogue of at most 50 turns"}
    ]


@pytest.mark.parametrize(
    "text", ["\ud800 he", "\x00\x1f he", "[SEP] [I] he", "العربية he", "👩‍👩‍👧 he", "<script>he</script>"]
)
def test_any_text_comes_back_as_it_was(ask: Ask, text: str) -> None:
    body = json.dumps({"history": ["Ada Lovelace"], "utterance": text}).encode()
    answer = ask("POST", "/v1/rewrite", content=body, headers=JSON)
    assert answer.status_code == 200
    assert json.loads(answer.content)["rewrite"] == text.replace("he", "Ada Lovelace", 1)


def test_the_answer_says_where_its_time_went(ask: Ask) -> None:
    names = [
        part.split(";dur=") for part in ask("POST", "/v1/rewrite", json=BATMAN).headers["server-timing"].split(", ")
    ]
    assert [name for name, _ in names] == ["queue", "model"]
    assert all(float(value) >= 0 for _, value in names)


def test_many_requests_at_once_share_batches_and_get_their_own_answers(
    talk: Callable[..., Any], rewriter: FakeRewriter
) -> None:
    async def conversation(client: httpx.AsyncClient) -> list[httpx.Response]:
        bodies = [{"history": ["Ada Lovelace"], "utterance": f"is he {k}?"} for k in range(40)]
        return await asyncio.gather(*(client.post("/v1/rewrite", json=body) for body in bodies))

    answers = talk(conversation, window_ms=30, max_batch=16)
    assert [answer.json()["rewrite"] for answer in answers] == [f"is Ada Lovelace {k}?" for k in range(40)]
    assert len(rewriter.batches) <= 5


def test_messages_without_roles_are_read_by_their_type(ask: Ask) -> None:
    chat = [
        {"type": "human", "content": "The poster looks a bit like Ben Affleck."},
        {"type": "function_call", "name": "look_up", "arguments": "{}"},
        {"type": "human", "content": [{"text": "It is he who acted."}]},
    ]
    same = {"history": ["The poster looks a bit like Ben Affleck."], "utterance": "It is he who acted."}
    answers = [ask("POST", "/v1/rewrite", json=body) for body in ({"messages": chat}, same)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


# ---- problems ----

BAD_FIELDS: list[tuple[Any, str, str]] = [
    (
        {"utterance": "y", "id": 3},
        "history",
        'missing; found utterance, id; a dialogue is {"history": [...], "utterance": "..."} or {"messages": [...]}',
    ),
    (
        {"history": []},
        "utterance",
        'missing; found history; a dialogue is {"history": [...], "utterance": "..."} or {"messages": [...]}',
    ),
    ([], "body", "expected an object, found a list"),
    ("x", "body", "expected an object, found a string"),
    (None, "body", "missing"),
    ({"history": [], "utterance": 5}, "utterance", "expected a string, found a number"),
    ({"history": [], "utterance": None}, "utterance", "expected a string, found nothing"),
    ({"history": "x", "utterance": "y"}, "history", "expected a list, found a string"),
    ({"history": ["x", 1], "utterance": "y"}, "history[1]", "expected a string, found a number"),
    (
        {"history": [], "utterance": "y", "mood": 1},
        "mood",
        "unknown field; expected history and utterance, or messages, or items; and id, prefer, min_confidence, "
        "truncation, n_best",
    ),
    (
        {"utterance": "y", "messages": [{"role": "user", "content": "x"}]},
        "utterance",
        "expected either items, or messages, or history and utterance; found more than one of them",
    ),
    ({"messages": []}, "messages", "expected at least one message, found none; the last message is rewritten"),
    ({"messages": [{"content": "x"}]}, "messages[0].role", "missing"),
    (
        {"messages": [{"role": "user", "parts": ["x"]}, {"role": "user", "content": "y"}]},
        "messages[0].content",
        'missing; found role, parts; a message is {"role": "user", "content": "..."}',
    ),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "expected a string, found nothing"),
    ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content", "expected a string, found a number"),
    (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content",
        "expected text, found none in its 1 parts; parts of type text, input_text and output_text are read",
    ),
    ({"items": {}}, "items", "expected a list, found an object"),
    ({"utterance": "y", "min_confidence": 1.5}, "min_confidence", "expected a number from 0 to 1, found 1.5"),
    ({"utterance": "y", "min_confidence": "1"}, "min_confidence", "expected a number from 0 to 1, found a string"),
    ({"utterance": "y", "n_best": 0}, "n_best", "expected an integer from 1 to 16, found 0"),
    ({"utterance": "y", "n_best": 17}, "n_best", "expected an integer from 1 to 16, found 17"),
    ({"utterance": "y", "n_best": "2"}, "n_best", "expected an integer from 1 to 16, found a string"),
    ({"utterance": "y", "n_best": True}, "n_best", "expected an integer from 1 to 16, found true or false"),
    ({"utterance": "y", "id": {"a": 1}}, "id", "expected a string or an integer, found an object"),
    (
        {"items": [], "prefer": "search", "min_confidence": 0.3},
        "prefer",
        "expected either prefer or min_confidence, found both",
    ),
    ({"utterance": "y", "prefer": "x"}, "prefer", "expected 'search', 'balanced' or 'careful', found a string"),
    ({"utterance": "y", "truncation": "x"}, "truncation", "expected 'oldest' or 'error', found a string"),
]


@pytest.mark.parametrize(("body", "field", "message"), BAD_FIELDS, ids=[str(row[0])[:60] for row in BAD_FIELDS])
def test_bad_input_is_a_problem_that_names_the_field(ask: Ask, body: Any, field: str, message: str) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    answer = ask("POST", "/v1/rewrite", content=content, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert problem["type"] == "urn:teo:problem:invalid-input"
    assert {"field": field, "message": message} in problem["errors"]
    assert problem["detail"].startswith(f"{problem['errors'][0]['field']}: {problem['errors'][0]['message']}")
    assert problem["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"{", "body: expected JSON, found something else at character 1 (Expecting property name"),
        (b"[" * 100_000, "body: expected JSON in UTF-8, found something that cannot be parsed"),
        (b"\xff", "body: expected JSON in UTF-8, found something that cannot be parsed"),
        (b'{"utterance": "", "min_confidence": 1' + b"0" * 5000 + b"}", "body: expected JSON in UTF-8"),
    ],
    ids=["cut", "deep", "not UTF-8", "a number without end"],
)
def test_what_is_no_json_is_a_problem(ask: Ask, content: bytes, detail: str) -> None:
    answer = ask("POST", "/v1/rewrite", content=content, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(detail)
    assert answer.json()["errors"][0]["field"] == "body"


BAD_ITEMS: list[tuple[Any, str, str]] = [
    ({"history": [], "utterance": 5}, "items[1].utterance", "utterance: expected a string, found a number"),
    (
        {"messages": [{"role": "user", "content": "a"}, {"role": 5}]},
        "items[1].messages[1].role",
        "messages[1].role: expected a string, found a number",
    ),
    (
        {"messages": [{"role": "user"}]},
        "items[1].messages[0].content",
        "messages[0].content: expected a string, found nothing",
    ),
    (
        {"history": [], "utterance": "y", "id": 1.5},
        "items[1].id",
        "id: expected a string or an integer, found a number",
    ),
    (
        BATMAN | {"n_best": 2},
        "items[1].n_best",
        "n_best: expected beside items, for all of them; found in one of them",
    ),
    (BATMAN | {"mood": 1}, "items[1].mood", "mood: unknown field; expected history and utterance, or messages; and id"),
    (7, "items[1]", "expected an object, found a number"),
    (
        {str(key): key for key in range(200)},
        "items[1]",
        "expected the fields of /openapi.json, found 200 keys",
    ),
]


@pytest.mark.parametrize(("item", "field", "message"), BAD_ITEMS, ids=[str(row[0])[:60] for row in BAD_ITEMS])
def test_a_bad_item_has_its_error_and_the_others_their_records(ask: Ask, item: Any, field: str, message: str) -> None:
    answer = ask("POST", "/v1/rewrite", json={"items": [BATMAN, item, BATMAN]})
    assert answer.status_code == 200
    before, bad, after = answer.json()["items"]
    assert before == after == RECORD
    assert bad["error"] == {
        "type": "urn:teo:problem:invalid-input", "status": 422, "field": field, "message": message,
    }  # fmt: skip


def test_a_bad_item_keeps_its_id_and_the_limits_are_each_items_own(ask: Ask) -> None:
    items = [
        {"history": [], "utterance": "ok"},
        {"id": "b", "history": ["123456"], "utterance": "12345"},
        {"id": 3, "history": [], "utterance": 3},
        {"id": True, "history": [], "utterance": 3},
    ]
    good, long, bad, unnamed = ask("POST", "/v1/rewrite", server={"max_characters": 10}, json={"items": items}).json()[
        "items"
    ]
    assert (good["rewrite"], long["id"], bad["id"]) == ("ok", "b", 3)
    assert "id" not in unnamed, "what cannot be an id is none"
    assert (long["error"]["status"], long["error"]["field"]) == (413, "items[1].history")
    assert long["error"]["message"] == (
        "history: expected a dialogue of at most 10 characters, found 11; send the latest turns"
    )


MANY = [1] * 520_000
HUGE_BODIES: dict[str, Any] = {
    "numbers as turns": {"utterance": "a", "history": MANY},
    "numbers as messages": {"messages": MANY},
    "items of numbers": {"items": MANY},
    "empty messages": {"messages": [{}] * 340_000},
    "numbers as parts": {"messages": [{"role": "user", "content": MANY}]},
    "unknown keys": {"utterance": "a"} | {str(key): 1 for key in range(100_000)},
    "items full of numbers": {"items": [{"utterance": "a", "history": [1] * 1950}] * 256},
}
"""Each about as large as a body may be."""


@pytest.mark.parametrize("body", HUGE_BODIES.values(), ids=HUGE_BODIES)
def test_a_huge_bad_request_makes_no_error_per_element(ask: Ask, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = problems.from_validation

    def count(errors: Any, **options: Any) -> Any:
        made.append(len(errors))
        return original(errors, **options)

    monkeypatch.setattr(problems, "from_validation", count)
    monkeypatch.setattr("teo.server.app.from_validation", count)
    content = json.dumps(body, separators=(",", ":")).encode()
    answer = ask("POST", "/v1/rewrite", server={"max_body": 1_300_000}, content=content, headers=JSON)
    assert answer.status_code in (200, 413, 422)
    assert sum(made) <= 256 + 4
    if answer.status_code == 200:
        assert {item["error"]["field"][-11:] for item in answer.json()["items"]} == {".history[0]"}


def test_a_body_that_is_not_declared_as_json_is_refused(ask: Ask) -> None:
    answer = ask("POST", "/v1/rewrite", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert answer.json()["detail"] == "Content-Type: expected application/json, found text/plain"


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/nowhere", 404, "/nowhere: no such address; see /openapi.json"),
        ("GET", "/v1/rewrite", 405, "GET /v1/rewrite: expected POST"),
        ("GET", "/static/../app.py", 404, "/app.py: no such address; see /openapi.json"),
        ("GET", "/static/%2e%2e/app.py", 404, "/static/../app.py: no such address; see /openapi.json"),
    ],
)
def test_wrong_addresses_are_problems_too(ask: Ask, method: str, path: str, status: int, detail: str) -> None:
    answer = ask(method, path)
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)


def test_a_failure_of_the_model_is_a_problem_without_its_words(ask: Ask) -> None:
    answer = ask("POST", "/v1/rewrite", json={"history": ["a"], "utterance": "explode"})
    assert answer.status_code == 500
    assert answer.json()["detail"] == "something failed on the server; its log has the request's id"
    assert "secret" not in answer.text


# ---- limits ----


@pytest.mark.parametrize(
    ("settings", "body", "detail"),
    [
        (
            {"max_items": 2},
            {"items": [BATMAN] * 3},
            "items: expected at most 2 dialogues, found 3",
        ),
        (
            {"max_turns": 3},
            {"history": ["a"] * 4, "utterance": "b"},
            "history: expected a history of at most 3 turns, found 4; send the latest",
        ),
        (
            {"max_characters": 10},
            {"history": ["123456"], "utterance": "12345"},
            "history: expected a dialogue of at most 10 characters, found 11; send the latest turns",
        ),
        (
            {"max_characters": 10},
            {"history": ["1"], "utterance": "12345678901"},
            "utterance: expected at most 10 characters, found 11; shorten it",
        ),
        (
            {"max_turns": 3},
            {"messages": messages(*"aaaab")},
            "messages: expected a history of at most 3 turns, found 4; send the latest",
        ),
        (
            {"max_characters": 10},
            {"messages": messages("123", "123", "12345")},
            "messages: expected a dialogue of at most 10 characters, found 11; send the latest turns",
        ),
        (
            {"max_characters": 10},
            {"messages": messages("12345678901")},
            "messages: expected a last message of at most 10 characters, found 11; shorten it",
        ),
        (
            {"max_body": 100},
            {"utterance": "x" * 200},
            "body: expected at most 100 bytes, found 217; send fewer dialogues at once",
        ),
    ],
    ids=["items", "turns", "characters", "utterance", "messages", "messages' text", "last message", "body"],
)
def test_over_a_limit_is_413_and_says_which(
    ask: Ask, settings: dict[str, int], body: dict[str, Any], detail: str
) -> None:
    answer = ask("POST", "/v1/rewrite", server=settings, content=json.dumps(body).encode(), headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:teo:problem:too-large")
    assert answer.json()["detail"] == detail
    assert answer.json()["errors"][0]["field"] == detail.partition(":")[0]


def test_at_the_limits_is_still_answered(ask: Ask) -> None:
    settings = {"max_items": 2, "max_turns": 3, "max_characters": 12}
    item = {"history": ["1234", "1234"], "utterance": "1234"}
    assert ask("POST", "/v1/rewrite", server=settings, json={"items": [item, item]}).status_code == 200


def test_a_body_without_a_stated_length_is_counted_as_it_comes(ask: Ask) -> None:
    async def endless() -> Any:
        for _ in range(1000):
            yield b" " * 50

    answer = ask("POST", "/v1/rewrite", server={"max_body": 100}, content=endless(), headers=JSON)
    assert answer.status_code == 413
    assert answer.json()["detail"].startswith("body: expected at most 100 bytes, found more than 100")


def test_a_body_that_does_not_come_is_given_up(ask: Ask) -> None:
    async def slow() -> Any:
        yield b"{"
        await asyncio.sleep(5)

    answer = ask("POST", "/v1/rewrite", server={"body_timeout": 0.05}, content=slow(), headers=JSON)
    assert answer.status_code == 408
    assert answer.json()["detail"] == "body: expected it within 0.05 s, it did not end"


def test_a_full_queue_is_429_with_a_time_to_try_again(talk: Callable[..., Any], rewriter: FakeRewriter) -> None:
    async def conversation(client: httpx.AsyncClient) -> tuple[httpx.Response, list[httpx.Response]]:
        rewriter.hold.clear()
        first = [asyncio.create_task(client.post("/v1/rewrite", json=BATMAN))]
        while not rewriter.batches:
            await asyncio.sleep(0.001)
        first += [asyncio.create_task(client.post("/v1/rewrite", json=BATMAN)) for _ in range(2)]
        while (await client.get("/health")).json()["queue"] < 2:
            await asyncio.sleep(0.001)
        refused = await client.post("/v1/rewrite", json=BATMAN)
        rewriter.hold.set()
        return refused, await asyncio.gather(*first)

    refused, answered = talk(conversation, max_queue=2, max_items=2)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json()["detail"] == "queue: 2 dialogues wait already, at most 2 may; try again"
    assert [answer.status_code for answer in answered] == [200, 200, 200]


def test_a_model_that_takes_too_long_is_503_and_the_next_request_is_answered(
    talk: Callable[..., Any], rewriter: FakeRewriter
) -> None:
    async def conversation(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        rewriter.hold.clear()
        late = await client.post("/v1/rewrite", json=BATMAN)
        rewriter.hold.set()
        while (after := await client.post("/v1/rewrite", json=BATMAN)).status_code == 503:
            pass  # on a busy machine 0.2 s may be short for it too
        return late, after

    late, after = talk(conversation, request_timeout=0.2)
    assert (late.status_code, after.status_code) == (503, 200)
    assert late.json()["detail"] == "the model did not answer within 0.2 s; try again"


# ---- token and ids ----


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer secret2", 401),
        ("Bearer secre", 401),
        ("Basic secret", 401),
        ("Bearer s\xe9cret", 401),
        ("Bearer secret", 200),
        ("bearer secret", 200),
    ],
)
def test_with_a_token_only_its_bearers_are_served(ask: Ask, header: str | None, status: int) -> None:
    headers = {} if header is None else {"authorization": header.encode("latin-1")}
    for method, path, body in [("POST", "/v1/rewrite", BATMAN), ("GET", "/metrics", None)]:
        answer = ask(method, path, server={"token": "secret"}, json=body, headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.headers["www-authenticate"] == 'Bearer realm="teo"'
            assert answer.json()["detail"].startswith("Authorization: expected 'Bearer' and the server's token, found")
            assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/", "/docs", "/health", "/openapi.json", "/static/app.js"])
def test_what_holds_no_text_needs_no_token(ask: Ask, path: str) -> None:
    assert ask("GET", path, server={"token": "secret"}).status_code == 200


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2_3", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ('"><script>', False), ("", False)],
)
def test_a_request_id_is_kept_where_it_is_harmless(ask: Ask, given: str, kept: bool) -> None:
    found = ask("GET", "/health", headers={"x-request-id": given}).headers["x-request-id"]
    assert (found == given) is kept
    assert kept or len(found) == 32


def test_every_answer_has_the_headers_that_keep_browsers_safe(ask: Ask) -> None:
    for path in ("/", "/health", "/nowhere", "/static/app.js"):
        headers = ask("GET", path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_health_names_the_model(ask: Ask) -> None:
    answer = ask("GET", "/health").json()
    assert answer | {"version": ""} == {
        "status": "ok", "version": "", "model": "fake", "variant": "rule",
        "threshold": 0.5, "prefer": {"search": 0.2, "balanced": 0.5, "careful": 0.8}, "source_limit": 256, "queue": 0,
        "token_required": False,
    }  # fmt: skip


# ---- chat completions ----


def test_the_last_message_is_answered_with_its_rewrite(ask: Ask) -> None:
    body = {"model": "any", "messages": messages(*HISTORY, "It is he who acted."), "temperature": 0, "n": 1}
    answer = ask("POST", CHAT, json=body, headers={"x-request-id": "r1"}).json()
    assert answer["id"] == "chatcmpl-r1"
    assert (answer["object"], answer["model"]) == ("chat.completion", "fake")
    assert answer["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": RECORD["rewrite"]}, "finish_reason": "stop"}
    ]
    assert answer["teo"] == RECORD


def test_a_stream_ends_as_the_protocol_says(ask: Ask) -> None:
    answer = ask("POST", CHAT, json={"messages": messages(*HISTORY, "It is he who acted."), "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == RECORD["rewrite"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["teo"] == RECORD


def test_a_chat_problem_has_the_form_that_its_clients_read(ask: Ask) -> None:
    problem = ask("POST", CHAT, json={"messages": [{"content": "x"}]}).json()
    assert problem["error"] == {
        "message": "messages[0].role: missing",
        "type": "invalid-input",
        "param": "messages[0].role",
        "code": "invalid-input",
    }
    assert "error" not in ask("POST", "/v1/rewrite", json={}).json()


def test_parts_of_a_message_are_read_as_its_text(ask: Ask) -> None:
    parts = [{"type": "text", "text": "It is he "}, {"type": "image_url", "image_url": {"url": "x"}},
             {"type": "text", "text": "who acted."}]  # fmt: skip
    body = {"messages": [*messages(*HISTORY), {"role": "user", "content": parts}]}
    assert ask("POST", CHAT, json=body).json()["choices"][0]["message"]["content"] == RECORD["rewrite"]


def test_the_rewriter_gets_dialogues_and_nothing_else(ask: Ask, rewriter: FakeRewriter) -> None:
    ask("POST", "/v1/rewrite", json=BATMAN)
    assert rewriter.batches == [[Dialogue(tuple(HISTORY), "It is he who acted.")]]
