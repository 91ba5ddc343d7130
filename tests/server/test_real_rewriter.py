"""The real Rewriter behind the server, with a scripted generator in place of weights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx

from teo.folder import ModelFolder, Role
from teo.layouts import Pieces, text_of
from teo.rewriter import Rewriter
from teo.runtime.generator import Generated
from teo.server.app import create_app
from teo.stages import Player

HISTORY = ["I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."]
UTTERANCE = "  It is he  who acted."


class Scripted:
    """A generator that names Ben Affleck wherever it reads " he "."""

    source_limit = 200

    def measure(self, text: str) -> int:
        return len(text) + 1

    def generate(self, sources: Sequence[Pieces], *, prompts: Any = None, beams: int = 1) -> list[Generated]:
        return [Generated((text_of(source[-2:]).replace(" he ", " Ben Affleck "),), (-0.1,)) for source in sources]

    def score(self, sources: Any, targets: Any, *, prompts: Any = None) -> list[float]:
        raise NotImplementedError


class Cast:
    order = "position"

    def has(self, role: str) -> bool:
        return role == "direct"

    def player(self, role: str) -> Player:
        return Player(Scripted())


def test_http_gives_the_record_that_python_gives() -> None:
    folder = ModelFolder({"direct": Role("w")}, variant="direct")
    rewriter = Rewriter(Cast(), folder, name="scripted")  # type: ignore[arg-type]
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
