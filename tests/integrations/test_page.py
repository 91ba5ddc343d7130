"""docs/integrations.md names every setting of the adapters, with its default, and its Python runs."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
BLOCKS = {
    title: blocks
    for title, part in SECTIONS.items()
    if (blocks := re.findall(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))
}
CHAT = ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."]
QUESTION, REWRITTEN = "When did he die?", "When did Pierre Curie die?"
COMMON = SECTIONS["Settings of every adapter"]


@pytest.mark.parametrize(
    ("module", "name", "section"),
    [
        ("langchain", "RewriteQuery", "LangChain"),
        ("llama_index", "RewriteTransform", "LlamaIndex"),
        ("haystack", "QueryRewriter", "Haystack"),
    ],
)
def test_every_setting_of_an_adapter_is_named(module: str, name: str, section: str) -> None:
    adapter = getattr(pytest.importorskip(f"teo.integrations.{module}", exc_type=Exception), name)
    assert f"from teo.integrations.{module} import {name}" in SECTIONS[section]
    for setting in list(inspect.signature(adapter.__init__).parameters)[1:]:
        assert re.search(rf"`{setting}\b|{name}\({setting}\b|\({setting}\)", COMMON + SECTIONS[section]), setting


def test_the_python_page_names_every_error_that_a_caller_meets() -> None:
    from teo import errors
    from teo.integrations import fallback, guard, remote, wire

    raised = {
        name
        for module in (errors, fallback, guard, remote, wire)
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, errors.TeoError) and value is not errors.TeoError
    }
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", page, re.MULTILINE))
    assert set(rows) == raised
    for name, module in rows.items():
        assert hasattr(importlib.import_module(module), name)


def test_defaults_of_the_common_settings() -> None:
    adapter = pytest.importorskip("teo.integrations.langchain", exc_type=Exception).RewriteQuery
    defaults = {name: value.default for name, value in inspect.signature(adapter.__init__).parameters.items()}
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", COMMON, re.MULTILINE))
    assert rows.pop("prefer") == '`"search"`', "the adapters' default if nothing is given"
    assert rows == {
        name: f'`"{defaults[name]}"`' if defaults[name] else "None"
        for name in ("min_confidence", "on_rewrite", "on_error", "timeout")
    }


async def run_blocks(section: str, url: str, **names: Any) -> dict[str, Any]:
    """Return the names after running the blocks of a section one after the other; `url` is the server's."""
    names["asyncio"] = asyncio
    for block in BLOCKS[section]:
        code = compile(block.replace("http://127.0.0.1:8000", url), section, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if (waiting := eval(code, names)) is not None:
            await waiting
    return names


def as_messages(role: str = "role") -> list[dict[str, str]]:
    return [{role: name, "content": text} for name, text in zip(("user", "assistant"), CHAT, strict=True)]


def test_every_block_is_run_by_a_test() -> None:
    assert set(BLOCKS) == {
        *("LangChain", "LlamaIndex", "Haystack", "OpenAI's client library", "When the rewriter is down or slow"),
        *("A rewriter on a server", "A language model for unsure utterances"),
    }


def test_langchains_blocks_run() -> None:
    runnables = pytest.importorskip("langchain_core.runnables")
    names = {"your_retriever": runnables.RunnableLambda(lambda query: [query]), "messages": as_messages()}
    found = asyncio.run(run_blocks("LangChain", "", **names))
    assert found["documents"] == [REWRITTEN]
    state = {"messages": [*as_messages(), {"role": "user", "content": QUESTION}]}
    assert found["retrieve"](state) == asyncio.run(found["aretrieve"](state)) == {"documents": [REWRITTEN]}


def test_llama_indexs_blocks_run() -> None:
    engines = pytest.importorskip("llama_index.core.query_engine")
    memory = pytest.importorskip("llama_index.core.memory").ChatMemoryBuffer.from_defaults(token_limit=1000)
    message = pytest.importorskip("llama_index.core.llms").ChatMessage
    memory.set([message(role=role["role"], content=role["content"]) for role in as_messages()])

    class Echo(engines.CustomQueryEngine):  # type: ignore[misc]
        def custom_query(self, query_str: str) -> str:
            return query_str

    found = asyncio.run(run_blocks("LlamaIndex", "", memory=memory, your_query_engine=Echo(), messages=CHAT))
    assert (str(found["answer"]), found["query"]) == (REWRITTEN, REWRITTEN)


def test_haystacks_blocks_run() -> None:
    haystack = pytest.importorskip("haystack")
    pipeline = haystack.Pipeline
    if "allowed_modules" not in inspect.signature(pipeline.loads).parameters:
        pytest.skip("Haystack 2 has no list of modules to load")
    retriever = pytest.importorskip("haystack.components.builders").PromptBuilder("{{query}}")
    found = asyncio.run(run_blocks("Haystack", "", your_retriever=retriever, messages=CHAT))
    assert found["found"]["retriever"]["prompt"] == REWRITTEN
    assert isinstance(found["pipeline"], pipeline)


def test_the_blocks_for_a_server_run(live_server: Callable[..., Any]) -> None:
    messages = [*as_messages(), {"role": "user", "content": QUESTION}]
    with live_server(token="secret") as url:
        remote = asyncio.run(run_blocks("A rewriter on a server", url, messages=messages))
    assert remote["result"].rewrite == REWRITTEN
    pytest.importorskip("openai")
    with live_server() as url:
        answered = asyncio.run(run_blocks("OpenAI's client library", url, messages=messages))
    assert answered["query"] == REWRITTEN


def test_the_block_for_a_rewriter_that_is_down_runs(down_server: str) -> None:
    runnables = pytest.importorskip("langchain_core.runnables")
    names = {"your_retriever": runnables.RunnableLambda(lambda query: [query])}
    found = asyncio.run(run_blocks("When the rewriter is down or slow", down_server, **names))
    assert found["retriever"].invoke({"input": QUESTION, "chat_history": CHAT}) == [QUESTION]


def test_the_block_with_a_language_model_runs() -> None:
    def your_model(prompt: str) -> str:
        return "The technician didn't help."

    found = asyncio.run(run_blocks("A language model for unsure utterances", "", your_model=your_model))
    assert (found["result"].rewrite, found["rewriter"].asked) == ("The technician didn't help.", 1)
