"""The real Rewriter behind the server, with a scripted generator in place of weights."""

from __future__ import annotations

import asyncio

import httpx

from scripted import ScriptedGenerator, rewriter_of
from teo import Rewriter
from teo.layouts import Pieces, text_of
from teo.server.app import create_app

HISTORY = ["I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."]
UTTERANCE = "  It is he  who acted."


def name_him(source: Pieces, _prompt: Pieces) -> Pieces:
    """Return the utterance with Ben Affleck wherever it has " he "."""
    return (text_of(source[-2:]).replace(" he ", " Ben Affleck "),)


def test_http_gives_the_record_that_python_gives() -> None:
    rewriter = rewriter_of(ScriptedGenerator(name_him, token_scores=lambda _: (-0.1,), source_limit=200))
    rows = [
        {"history": HISTORY, "utterance": UTTERANCE},
        {"history": [], "utterance": UTTERANCE},
        {"history": ["y" * 150, *HISTORY], "utterance": UTTERANCE},
        {"history": HISTORY, "utterance": "Thank you very much!"},
        {"history": HISTORY, "utterance": "x" * 5000},
    ]

    async def main() -> None:
        app = create_app(rewriter)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://teo")
        async with app.router.lifespan_context(app), client:
            answer = (await client.post("/v1/rewrite", json={"items": rows})).json()
            assert answer["items"] == [one.to_dict() for one in rewriter.rewrite_many(rows)]
            assert answer["items"][0]["rewrite"] == "  It is Ben Affleck  who acted."
            assert answer["items"][2]["truncated"] == {"turns": 0, "characters": 47}
            refused = await client.post("/v1/rewrite", json={"items": rows[:3], "truncation": "error"})
            assert refused.json()["items"][2]["error"]["field"] == "items[2].history"
            assert (await client.get("/health")).json()["model"] == "scripted"

    asyncio.run(main())


def test_several_rewrites_of_the_embedded_model_are_those_that_python_gives() -> None:
    rewriter = Rewriter.from_pretrained()
    rows = [
        {"history": ["Who wrote Dune?", "Frank Herbert."], "utterance": "When was he born?"},
        {"history": ["你喜欢周杰伦吗", "喜欢"], "utterance": "他哪年出生的"},
        {"history": [], "utterance": "When was he born?"},
    ]

    async def main() -> None:
        app = create_app(rewriter)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://teo", timeout=60)
        async with app.router.lifespan_context(app), client:
            answer = (await client.post("/v1/rewrite", json={"items": rows, "n_best": 3})).json()
            assert answer["items"] == [one.to_dict() for one in rewriter.rewrite_many(rows, n_best=3)]
            assert [len(item["alternatives"]) for item in answer["items"]] == [3, 3, 1]
            messages = [{"role": "user", "content": text} for text in (*rows[0]["history"], rows[0]["utterance"])]
            chat = (await client.post("/v1/chat/completions", json={"messages": messages, "n": 3})).json()
            texts = [choice["message"]["content"] for choice in chat["choices"]]
            assert texts == [one["rewrite"] for one in answer["items"][0]["alternatives"]]
            assert chat["usage"]["prompt_tokens"] > 10

    asyncio.run(main())
