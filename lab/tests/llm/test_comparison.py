"""Language models, ours and joined turns on equal rows: prompts, verdicts, search, what is stored, and the tables."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from scripted_endpoint import Script, chat
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.metrics.meaning import COMPLETE, INCOMPLETE
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo_lab.llm.client import Endpoint
from teo_lab.llm.comparison import JOINED, OURS, OURS_FOR_SEARCH, PERSON, UNCHANGED, Asked, ComparedSet, compare
from teo_lab.llm.evaluate import LlmRequest
from teo_lab.llm.prompt import LANGCHAIN, SHOTS, make_langchain_prompt
from teo_lab.llm.table import show_comparison
from teo_lab.paths import RESULTS
from teo_lab.reproduce.stored_rows import ROWS

PROMPTS = "langchain_classic.chains.conversational_retrieval.prompts"
ROW = {
    "id": "pool",
    "history": ["When does the pool open?", "At 8."],
    "utterance": "And the sauna?",
    "rewrite": "When does the sauna open?",
    "need": [["sauna"], ["open*", "when"]],
    "forbid": ["pool"],
}
KEPT = {"id": "thanks", "history": ["When does the pool open?", "At 8."], "utterance": "Thanks!", "rewrite": "Thanks!"}


class Template:
    """What a prompt of LangChain can do."""

    def format(self, chat_history: str, question: str) -> str:
        return f"history:{chat_history}|question:{question}"


@pytest.fixture
def langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(PROMPTS)
    module.CONDENSE_QUESTION_PROMPT = Template()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, PROMPTS, module)


class Scripted:
    """A rewriter that completes one question, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rewrite(self, history: tuple[str, ...], utterance: str, prefer: str | None = None) -> Rewrite:
        self.asked.append(utterance)
        return Rewrite("When does the sauna open?" if utterance == "And the sauna?" else utterance)


@pytest.mark.parametrize(
    ("dialogue", "history", "reason"),
    [
        (Dialogue(("a", "b"), "c"), "\nHuman: a\nAssistant: b", "the turn before the utterance is the assistant's"),
        (Dialogue(("a", "b", "c"), "d"), "\nAssistant: a\nHuman: b\nAssistant: c", "the others alternate"),
        (Dialogue(("a", "b"), "c", ("user", "user", "user")), "\nHuman: a\nHuman: b", "speakers that are known"),
    ],
)
@pytest.mark.usefixtures("langchain")
def test_langchains_prompt_gets_the_history_as_its_chain_writes_it(dialogue: Dialogue, history: str, reason: str):
    assert make_langchain_prompt(dialogue) == f"history:{history}|question:{dialogue.utterance}", reason


def test_the_installed_langchain_writes_the_same_history() -> None:
    chain = pytest.importorskip("langchain_classic.chains.conversational_retrieval.base")
    history = chain._get_chat_history([("Who wrote Dune?", "Frank Herbert.")])
    prompt = make_langchain_prompt(Dialogue(("Who wrote Dune?", "Frank Herbert."), "What else?"))
    assert history in prompt
    assert "What else?" in prompt
    assert "standalone question" in prompt


def test_without_langchain_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PROMPTS, None)
    with pytest.raises(InputError, match="found none; pip install langchain-classic"):
        make_langchain_prompt(Dialogue(("a",), "b"))


def test_another_prompt_is_refused(tmp_path: Path) -> None:
    endpoint = Endpoint("http://127.0.0.1:1/v1", "m")
    with pytest.raises(InputError, match="prompt: expected one of shots, langchain; found 'haiku'"):
        LlmRequest(endpoint, "jsonl", tmp_path, tmp_path, prompt="haiku")


def write_rows(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


@pytest.mark.process
@pytest.mark.usefixtures("langchain")
def test_all_systems_are_graded_by_the_same_keys(script: Script, tmp_path: Path) -> None:
    """The endpoint answers LangChain's prompt with a wording of its own, and the one with examples wrongly."""

    def answer(_number: int, body: dict[str, Any]) -> Any:
        prompt = body["messages"][0]["content"]
        if "question:Thanks!" in prompt or "Utterance: Thanks!" in prompt:
            return chat("Thanks!" if prompt.startswith("history:") else "Thanks for the pool!")
        return chat(
            "The sauna, when is it open?\nmore" if prompt.startswith("history:") else "When does the pool open?"
        )

    script.answer = answer
    example = {"history": ["I am in Rome."], "utterance": "Is it big?", "rewrite": "Is Rome big?"}
    examples = write_rows(tmp_path / "examples.jsonl", example)
    path = write_rows(tmp_path / "rows.jsonl", ROW, KEPT)
    dataset = ComparedSet("mine", "jsonl", path, split="all", examples=examples, own=True)
    asked = Asked([Endpoint(script.url, "tiny")], [LANGCHAIN, SHOTS], tmp_path / "runs", shots=1)
    figures = compare(dataset, asked, cast(Rewriter, Scripted()), tmp_path / "out")
    verdicts = {
        name: [verdict for verdict in (*INCOMPLETE, *COMPLETE) if found["meaning"]["counts"][verdict]]
        for name, found in figures.items()
        if "meaning" in found
    }
    assert verdicts == {
        OURS: ["right", "kept"],
        OURS_FOR_SEARCH: ["right", "kept"],
        "tiny, langchain": ["right", "kept"],
        "tiny, shots": ["wrong", "harmed"],
        UNCHANGED: ["missed", "kept"],
    }
    assert [figures[name]["em_incomplete"] for name in (OURS, "tiny, langchain")] == [1.0, 0.0]
    assert figures[JOINED] == {"rows": 2}, "joined turns are no sentence"
    assert any("Is Rome big?" in body["messages"][0]["content"] for body in script.bodies), "examples are shown"
    assert figures["tiny, shots"]["prompt_tokens"] == 200
    rows = read_rows(tmp_path / "out" / "mine" / f"tiny-langchain{ROWS}")
    assert [(row["id"], row["meaning"], row["rewrite"]) for row in rows] == [
        ("pool", "right", "The sauna, when is it open?"),
        ("thanks", "kept", "Thanks!"),
    ]


@pytest.mark.process
def test_texts_are_measured_as_queries_if_it_is_known_what_they_should_find(script: Script, tmp_path: Path) -> None:
    script.answer = lambda _number, _body: chat("Is the sauna open?")
    path = write_rows(tmp_path / "rows.jsonl", ROW, KEPT)

    def search(every: Sequence[Row], rows: Sequence[Row], texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        assert ([row.id for row in every], [row.id for row in rows]) == (["pool", "thanks"], ["pool"])
        return {name: {"mrr": float("sauna open" in text)} for name, (text,) in texts.items()}

    dataset = ComparedSet("asked", "jsonl", path, split="all", limit=1, search=search)
    asked = Asked([Endpoint(script.url, "tiny")], [SHOTS], tmp_path / "runs", shots=0)
    figures = compare(dataset, asked, cast(Rewriter, Scripted()), tmp_path / "out")
    found = {name: measured["mrr"] for name, measured in figures.items()}
    assert found == {OURS: 1, OURS_FOR_SEARCH: 1, "tiny, shots": 1, UNCHANGED: 0, JOINED: 0, PERSON: 1}
    assert figures[JOINED] == {"rows": 1, "mrr": 0}
    stored = read_rows(tmp_path / "out" / "asked" / f"tiny-shots{ROWS}")
    assert [set(row) for row in stored] == [{"id", "right", "changed", "hash", "meaning"}], "no text is stored"


@pytest.mark.process
def test_ours_is_timed_between_the_answers_of_a_model(script: Script, tmp_path: Path) -> None:
    """Four rows at a time, under the load that the model has too."""
    rewriter, seen = Scripted(), list[int]()

    def answer(_number: int, _body: dict[str, Any]) -> Any:
        seen.append(len(rewriter.asked))
        return chat("ok")

    script.answer = answer
    rows = [{**ROW, "id": str(number), "utterance": f"And the sauna {number}?"} for number in range(6)]
    dataset = ComparedSet("mine", "jsonl", write_rows(tmp_path / "rows.jsonl", *rows), split="all")
    asked = Asked([Endpoint(script.url, "tiny")], [SHOTS], tmp_path / "runs", shots=0)
    figures = compare(dataset, asked, cast(Rewriter, rewriter), tmp_path / "out")
    assert seen == [0, 0, 0, 0, 4, 4]
    assert figures[OURS]["median_seconds"] >= 0
    assert "median_seconds" not in figures[UNCHANGED]
    again = compare(dataset, asked, cast(Rewriter, rewriter), tmp_path / "out")
    assert len(script.bodies) == 6, "answers that are stored are not asked for again"
    assert again["tiny, shots"] == figures["tiny, shots"]


def test_a_comparison_by_meaning_becomes_a_table() -> None:
    counts = {"right": 0.5, "partly": 0.25, "wrong": 0.25, "missed": 0.0, "kept": 1.0}
    meaning = {"rates": counts, "intervals": {"right": [0.4, 0.6]}}
    ours = {"meaning": meaning, "em_incomplete": 0.125, "median_seconds": 0.02, "p95_seconds": 0.04}
    model = {**ours, "median_seconds": 3.0, "p95_seconds": 5.5}
    shown = show_comparison({"systems": {OURS: ours, "tiny, langchain": model, JOINED: {"rows": 4}}})
    assert shown.splitlines()[2:] == [
        "| **default** | 50.0 | 40.0 to 60.0 | 25.0 | 25.0 | 0.0 | 100.0 | 12.5 | 0.02 | 0.04 | 1 |",
        "| tiny, langchain | 50.0 | 40.0 to 60.0 | 25.0 | 25.0 | 0.0 | 100.0 | 12.5 | 3.00 | 5.50 | 150 |",
        "| last two turns joined | - | - | - | - | - | - | - | - | - | - |",
    ]


def test_a_comparison_by_words_becomes_a_table() -> None:
    ours = {"em": 0.25, "rougeL_rouge_1_0_1": 0.75, "run_f1": 0.5, "median_seconds": 0.02, "p95_seconds": 0.04}
    joined = {"rows": 4, "mrr": 0.2, "mrr_interval": [0.1, 0.3]}
    shown = show_comparison({"systems": {OURS: ours, JOINED: joined}})
    assert shown.splitlines()[2:] == [
        "| **default** | 25.0 | 75.0 | 50.0 | - | - | 0.02 | 0.04 | 1 |",
        "| last two turns joined | - | - | - | 0.200 | 0.100 to 0.300 | - | - | - |",
    ]


@pytest.mark.parametrize("dataset", ["everyday", "canard"])
def test_stored_rows_give_the_stored_figures(dataset: str) -> None:
    """All systems have the same rows, and no text of a published dataset is stored."""
    file = RESULTS / "llm" / f"{dataset}.json"
    systems = json.loads(file.read_text(encoding="utf-8"))["systems"]
    ids = set()
    for name, figures in systems.items():
        if name == UNCHANGED or "em" not in figures:
            continue
        rows = read_rows(file.with_suffix("") / f"{name.replace(', ', '-').replace(' ', '-')}{ROWS}")
        assert len(rows) == figures["rows"]
        assert sum(row["right"] for row in rows) / len(rows) == pytest.approx(figures["em"]), name
        if "meaning" in figures:
            right = sum(row["meaning"] == "right" for row in rows)
            assert right == figures["meaning"]["counts"]["right"], name
        assert all(("rewrite" in row) is (dataset == "everyday") for row in rows)
        ids.add(tuple(row["id"] for row in rows))
    assert len(ids) == 1
