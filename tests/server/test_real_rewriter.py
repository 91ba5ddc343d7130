"""The real Rewriter behind the server, with a scripted generator in place of weights."""

from __future__ import annotations

import asyncio

import httpx

from scripted import ScriptedGenerator, rewriter_of
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
            assert answer["items"][2]["truncated"] == {"turns": 1, "characters": 150}
            refused = await client.post("/v1/rewrite", json={"items": rows[:3], "truncation": "error"})
            assert refused.status_code == 422
            assert refused.json()["errors"][0]["field"] == "items[2].history"
            assert (await client.get("/health")).json()["model"] == "scripted"

    asyncio.run(main())
