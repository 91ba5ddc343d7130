"""The language-model baseline against a scripted server on the loopback: failures, chatter, cache, counts."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scripted_endpoint import Reply, Script, chat
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError
from teo_lab.cli.evaluate import evaluate
from teo_lab.llm.cache import Cache, Completion, hash_request
from teo_lab.llm.client import ChatClient, Endpoint, EndpointError
from teo_lab.llm.evaluate import CACHE, LanguageModel, LlmRequest, Usage, evaluate_llm
from teo_lab.llm.prompt import draw_demonstrations, make_prompt, read_rewrite
from verbs import app_of

BODY = {"model": "m", "messages": []}


def client_of(script: Script, tmp_path: Path, waits: list[float] | None = None, **settings: Any) -> ChatClient:
    slept: list[float] = [] if waits is None else waits
    endpoint = Endpoint(script.url, "m", **{"timeout": 5.0, **settings})
    return ChatClient(endpoint, Cache(tmp_path / CACHE), slept.append)


FAILURES: list[tuple[Reply, str]] = [
    ((429, {"error": {"message": "slow down"}}), "too many requests"),
    ((500, {"error": "oops"}), "a failure of the server"),
    ((503, b"<html>busy</html>"), "busy, and not in JSON"),
    ((200, b'{"choices": [{"mess'), "JSON that breaks off"),
    ((200, {"choices": []}), "JSON without an answer"),
    ((200, [1]), "JSON of another kind"),
]


@pytest.mark.process
@pytest.mark.parametrize(("failure", "reason"), FAILURES, ids=[reason for _, reason in FAILURES])
def test_a_failure_is_asked_again_with_growing_pauses(
    failure: Reply, reason: str, script: Script, tmp_path: Path
) -> None:
    script.answer = lambda number, _body: failure if number < 3 else chat("is ben")
    waits: list[float] = []
    client = client_of(script, tmp_path, waits)
    assert client.complete(BODY).text == "is ben"
    assert (client.requests, client.retried) == (4, 3)
    for number, wait in enumerate(waits):
        assert 2**number <= wait <= 1.5 * 2**number, reason


@pytest.mark.process
def test_a_timeout_is_asked_again(script: Script, tmp_path: Path) -> None:
    def answer(number: int, _body: object) -> Reply:
        if number == 0:
            time.sleep(0.6)
        return chat("late" if number == 0 else "in time")

    script.answer = answer
    assert client_of(script, tmp_path, timeout=0.2).complete(BODY).text == "in time"


@pytest.mark.process
def test_the_endpoint_may_say_how_long_to_wait(script: Script, tmp_path: Path) -> None:
    waits: list[float] = []
    script.answer = lambda number, _body: (429, {}, {"Retry-After": "17"}) if number == 0 else chat("x")
    client_of(script, tmp_path, waits).complete(BODY)
    assert waits == [17.0]


@pytest.mark.process
def test_after_the_last_retry_the_reason_is_told(script: Script, tmp_path: Path) -> None:
    script.answer = lambda _number, _body: (500, {"error": {"message": "on fire"}})
    with pytest.raises(EndpointError, match=r"no answer after 3 requests, the last: status 500: on fire; run again"):
        client_of(script, tmp_path, retries=2).complete(BODY)


@pytest.mark.process
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((401, {"error": {"message": "bad key"}}), "status 401: bad key; is the key right?"),
        ((404, {"error": {"message": "no model"}}), "status 404: no model; are --base-url and the name right?"),
        ((400, {"error": {"message": "max_tokens is not supported", "code": "unsupported"}}), "max_tokens is not"),
        ((429, {"error": {"message": "pay first", "code": "insufficient_quota"}}), "status 429: pay first"),
        ((307, {}, {"Location": "http://127.0.0.1:9/v1"}), "status 307"),
    ],
    ids=["key", "name", "body", "no money: waiting does not help", "the key follows no redirection"],
)
def test_what_does_not_pass_ends_at_once(reply: Reply, words: str, script: Script, tmp_path: Path) -> None:
    script.answer = lambda _number, _body: reply
    with pytest.raises(EndpointError, match=words.replace("?", r"\?")):
        client_of(script, tmp_path).complete(BODY)
    assert len(script.bodies) == 1


@pytest.mark.process
def test_a_refused_text_is_no_end(script: Script, tmp_path: Path) -> None:
    script.answer = lambda _number, _body: (400, {"error": {"message": "no", "code": "content_filter"}})
    assert client_of(script, tmp_path).complete(BODY).refusal == "content_filter: no"
    script.answer = lambda _number, _body: chat(None)
    assert client_of(script, tmp_path).complete({**BODY, "n": 1}).refusal == "stop"


@pytest.mark.process
def test_the_cache_answers_the_same_request_only(script: Script, tmp_path: Path) -> None:
    client = client_of(script, tmp_path, key="secret")
    first = client.complete(BODY)
    assert client.complete(dict(reversed(BODY.items()))) == first, "the order of keys says nothing"
    assert client_of(script, tmp_path, key="other").complete(BODY) == first, "another process, another key"
    assert len(script.bodies) == 1
    client.complete({**BODY, "temperature": 1})
    assert len(script.bodies) == 2
    assert script.headers[0]["Authorization"] == "Bearer secret"
    assert script.headers[0]["path"] == "/v1/chat/completions"
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert "secret" not in repr(Endpoint(script.url, "m", "secret"))


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / CACHE).write_text("no database, and longer than a header of one would be" * 9)
    with pytest.raises(InputError, match="expected a cache of completions"):
        Cache(tmp_path / CACHE)


@pytest.mark.parametrize(
    ("answer", "rewrite", "reason"),
    [
        ("Did Ben act?", "Did Ben act?", "the rewrite alone"),
        ("  Did Ben act?\n", "Did Ben act?", "white space"),
        ("Sure! Rewritten utterance: Did Ben act?", "Did Ben act?", "an opening and a label on the line"),
        ("Rewrite: Did Ben act?", "Did Ben act?", "the label of the prompt"),
        ("Sure, here is the rewritten utterance:\n\nDid Ben act?", "Did Ben act?", "the rewrite on the next line"),
        ("Certainly!\nDid Ben act?", "Did Ben act?", "an opening on a line"),
        ("Follow up question: Did Ben act?", "Did Ben act?", "a label of LangChain's prompt"),
        ("What is the standalone question: is it Ben?", "What is the standalone question: is it Ben?", "no label"),
        ("Here is the rewritten utterance:\n\"Did Ben act?\"\n\nI replaced 'he'.", "Did Ben act?", "explained after"),
        ('**Rewritten utterance:** "Did Ben act?"', "Did Ben act?", "bold label, quoted"),
        ("```\nDid Ben act?\n```", "Did Ben act?", "a block of code"),
        ('{"rewrite": "Did Ben act?"}', "Did Ben act?", "JSON"),
        ("<think>he is Ben: so\nrewrite</think>\nDid Ben act?", "Did Ben act?", "thoughts"),
        ("Did Ben act? (Note: he is Ben.)", "Did Ben act?", "a note"),
        ("改写后的句子：本演了吗", "本演了吗", "a Chinese label"),
        ("好的，\n“本演了吗”", "本演了吗", "a Chinese opening, quoted"),
        ('"Ben" and "Tom" act', '"Ben" and "Tom" act', "quotation marks of the text stay"),
        ("Did Ben say: no?", "Did Ben say: no?", "a colon of the text stays"),
        ("<think>it never ends", "", "thoughts alone"),
        ("", "", "nothing"),
    ],
)
def test_chatter_around_the_answer(answer: str, rewrite: str, reason: str) -> None:
    assert read_rewrite(answer, "Did he act?") == rewrite, reason


def test_what_the_utterance_has_too_stays() -> None:
    assert read_rewrite("The answer: Ben is right", "The answer: he is right") == "The answer: Ben is right"
    assert read_rewrite('"Ben acts"', '"he acts"') == '"Ben acts"'


def row(number: int) -> Row:
    return Row(f"r{number}", Dialogue((f"ben {number} is here",), "is he"), f"is ben {number}")


def test_demonstrations_by_seed_never_show_an_evaluated_row() -> None:
    rows = [row(number) for number in range(20)]
    first = draw_demonstrations(rows, 5, 1, rows[:10])
    assert first == draw_demonstrations(rows, 5, 1, rows[:10])
    assert first != draw_demonstrations(rows, 5, 2, rows[:10])
    assert not set(first) & set(rows[:10])
    with pytest.raises(DataError, match="expected 5 rows that are not evaluated, found 0"):
        draw_demonstrations(rows, 5, 1, rows)


def test_the_prompt_shows_task_examples_dialogue() -> None:
    prompt = make_prompt(row(1).dialogue, [row(2), row(3)])
    shown = prompt.split("\n\n")
    assert shown[1:] == [
        "History:\n- ben 2 is here\nUtterance: is he\nRewrite: is ben 2",
        "History:\n- ben 3 is here\nUtterance: is he\nRewrite: is ben 3",
        "History:\n- ben 1 is here\nUtterance: is he\nRewrite:",
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for part, numbers in (("train", range(100, 140)), ("dev", range(50, 52)), ("test", range(12))):
        lines = "".join(json.dumps(row(number).to_dict()) + "\n" for number in numbers)
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def solve(_number: int, body: dict[str, Any]) -> Reply:
    """Answer as a model that is right, with chatter."""
    last = body["messages"][0]["content"].rsplit("- ben ", 1)[1].split()[0]
    return chat(f"Sure! Rewritten utterance: is ben {last}")


def request(script: Script, data: Path, out: Path, **settings: Any) -> LlmRequest:
    endpoint = Endpoint(script.url, "tiny", timeout=5.0, retries=0)
    return LlmRequest(endpoint, "jsonl", data, out, **settings)


@pytest.mark.process
def test_an_evaluation_and_what_it_took(script: Script, data: Path, tmp_path: Path) -> None:
    def slow(number: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.05)
        return solve(number, body)

    script.answer = slow
    out = tmp_path / "out"
    settings = {"concurrency": 3, "price_in": 2.0, "price_out": 10.0, "body": {"top_p": 1, "temperature": None}}
    metrics = evaluate_llm(request(script, data, out, **settings), io.StringIO()).to_dict()
    assert (metrics["n"], metrics["em"]) == (12, 1.0)
    assert 1 < script.busiest <= 3
    usage = metrics["run"]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (1200, 120)
    assert usage["cost"] == pytest.approx((1200 * 2 + 120 * 10) / 1e6)
    assert 0.05 <= usage["median_seconds"] <= usage["p95_seconds"] < 5
    assert {"model": "tiny", "max_tokens": 256, "top_p": 1}.items() <= script.bodies[0].items()
    assert "temperature" not in script.bodies[0]
    assert script.bodies[0]["messages"][0]["content"].count("History:") == 6
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == [f"r{number}" for number in range(12)], "in order"
    assert lines[0]["answer"] == "Sure! Rewritten utterance: is ben 0"
    assert "tiny at http://127.0.0.1" in (out / "report.md").read_text(encoding="utf-8")


@pytest.mark.process
def test_a_broken_run_goes_on_without_paying_twice(script: Script, data: Path, tmp_path: Path) -> None:
    def breaks(number: int, body: dict[str, Any]) -> Reply:
        return solve(number, body) if number < 7 else (500, {})

    script.answer = breaks
    asked = request(script, data, tmp_path / "out", concurrency=1)
    with pytest.raises(EndpointError, match="run again to resume"):
        evaluate_llm(asked, io.StringIO())
    answered = {json.dumps(body) for body in script.bodies[:7]}
    script.answer = solve
    script.bodies.clear()
    evaluation = evaluate_llm(asked, io.StringIO())
    assert evaluation.measures.scores["em"] == 1.0
    assert len(script.bodies) == 12 - 7
    assert not answered & {json.dumps(body) for body in script.bodies}
    assert evaluation.run["usage"]["answers"] == 12, "the answers before the break are counted"
    script.bodies.clear()
    evaluate_llm(asked, io.StringIO())
    assert script.bodies == [], "a finished run asks nothing"
    with pytest.raises(InputError, match="holds predictions of other settings"):
        evaluate_llm(request(script, data, tmp_path / "out", shots=2), io.StringIO())


@pytest.mark.process
def test_a_refused_row_keeps_its_utterance_and_is_counted(script: Script, data: Path, tmp_path: Path) -> None:
    script.answer = lambda _number, _body: chat(None)
    evaluation = evaluate_llm(request(script, data, tmp_path / "out", limit=2, shots=0), io.StringIO())
    assert evaluation.run["usage"]["refused"] == 2
    line = json.loads((tmp_path / "out" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (line["prediction"], line["well_formed"], line["refusal"]) == ("is he", False, "stop")


@pytest.mark.process
@pytest.mark.parametrize(
    ("answer", "rewrite"),
    [("Sure! Rewrite: is Ben here", "is Ben here"), (None, "")],
)
def test_a_model_serves_as_the_fallback_of_a_rewriter(
    script: Script, tmp_path: Path, answer: str | None, rewrite: str
) -> None:
    script.answer = lambda _number, _body: chat(answer)
    cache = Cache(tmp_path / "cache.sqlite")
    model = LanguageModel(ChatClient(Endpoint(script.url, "m"), cache), "m", ())
    assert model.rewrite(Dialogue(("Ben came",), "is he here")) == rewrite
    cache.close()


def test_cost_is_not_guessed() -> None:
    told, untold = Completion("x", 1.0, 10, 5), Completion("x", 3.0)
    assert Usage.of([told], None, None).cost is None
    assert Usage.of([told], 1e6, 2e6).cost == 20.0
    assert (Usage.of([told, untold], 1.0, 1.0).cost, Usage.of([told, untold], 1.0, 1.0).not_counted) == (None, 1)


def test_the_hash_of_a_request_knows_where_it_goes() -> None:
    assert hash_request("http://a", BODY) != hash_request("http://b", BODY)


@pytest.mark.process
def test_the_command(script: Script, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script.answer = solve
    monkeypatch.setenv("MY_KEY", "k")
    words = f"evaluate --data jsonl --path {data} --limit 3 --out {tmp_path / 'o'} --model openai:org/tiny --seed 3"
    line = [*words.split(), "--base-url", script.url, "--api-key-env", "MY_KEY", "--price-in", "1"]
    result = CliRunner().invoke(app_of(evaluate), line)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("300 + 30 tokens, cost 0.0003, latency median ")
    assert "\n5-shot on jsonl (test), 3 rows, in percent\n" in result.stdout
    assert "EM 100.0" in result.stdout
    assert (script.bodies[0]["model"], script.headers[0]["Authorization"]) == ("org/tiny", "Bearer k")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--model openai:m", "base-url: expected the endpoint's address"),
        ("--base-url http://h", "base-url: expected --model openai:NAME beside it, found no model"),
        ("--model openai:m --base-url h", "base-url: expected http:// or https://, found 'h'"),
        ("--model openai: --base-url http://h", "model: expected openai:NAME"),
        (
            "--model runs/default",
            "model: expected openai:NAME or the folder of a baseline, found runs/default; evaluate",
        ),
        (
            "",
            "model: expected openai:NAME or the folder of a baseline, found none; evaluate other models with teo eval",
        ),
        ("--model openai:m --base-url http://h --body [1]", r"body: expected a JSON object, found \[1\]"),
        ("--model openai:m --base-url http://h --shots -1", "shots: expected a number from 0 on"),
    ],
)
def test_a_mistake_on_the_line_is_explained(words: str, message: str, data: Path, tmp_path: Path) -> None:
    line = f"evaluate --data jsonl --path {data} --out {tmp_path / 'o'} {words}"
    error = CliRunner().invoke(app_of(evaluate), line.split()).exception
    assert isinstance(error, InputError)
    with pytest.raises(InputError, match=message):
        raise error
