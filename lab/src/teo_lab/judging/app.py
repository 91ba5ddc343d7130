"""create_app(store): the page that raters use, and the few addresses behind it.

The page is blind: an item is known by its position in the rater's own list, and its rewrites as first and second. What
system wrote which, the systems' names and the rows' ids never leave the server.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from teo.errors import InputError
from teo_lab.judging.items import Presentation, Shown
from teo_lab.judging.votes import Vote, VoteStore

PAGE = Path(__file__).parent / "page"
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",  # two raters may share a browser
}
_LONGEST_NAME = 100


class MissingItemError(InputError):
    """A rater or an item that the study does not have."""


class Judging:
    """What the addresses do: seats, items as a rater sees them, votes."""

    def __init__(self, store: VoteStore) -> None:
        self._store, self._items = store, store.study.items
        self._orders = {seat: store.study.order(seat) for seat in range(1, store.study.plan.raters + 1)}

    def join(self, name: str) -> dict[str, Any]:
        """Return a rater's seat, and where the rater stopped."""
        name = " ".join(name.split())
        if not 0 < len(name) <= _LONGEST_NAME:
            raise InputError(f"name: expected 1 to {_LONGEST_NAME} characters, found {len(name)}")
        if any("\ud800" <= sign <= "\udfff" for sign in name):
            raise InputError("name: expected Unicode text, found a lone surrogate")
        seat = self._store.seat(name)
        return {"rater": seat, **self._progress(seat)}

    def show(self, seat: int, number: int) -> dict[str, Any]:
        """Return an item as a rater sees it, with the rater's vote if there is one."""
        shown_item = self._find(seat, number)
        item = self._items[shown_item.item]
        vote = next((vote for vote in self._store.votes(seat) if vote.item == shown_item.item), None)
        return {
            "number": number,
            "history": item.history,
            "utterance": item.utterance,
            "first": item.a if shown_item.a_first else item.b,
            "second": item.b if shown_item.a_first else item.a,
            "vote": None if vote is None else shown_item.shown_as(vote.choice),
            **self._progress(seat),
        }

    def vote(self, seat: int, number: int, shown: Shown) -> dict[str, Any]:
        """Return how far the rater is, once the vote is on the disk."""
        shown_item = self._find(seat, number)
        self._store.vote(Vote(seat, shown_item.item, shown_item.choice_of(shown)))
        return self._progress(seat)

    def _progress(self, seat: int) -> dict[str, Any]:
        judged = {vote.item for vote in self._store.votes(seat)}
        open_ = (number for number, shown_item in enumerate(self._orders[seat], 1) if shown_item.item not in judged)
        return {"total": len(self._items), "done": len(judged), "next": next(open_, None)}

    def _find(self, seat: int, number: int) -> Presentation:
        if seat not in self._store.seats():
            raise MissingItemError(f"rater: expected one who has started, found {seat}; open the page anew")
        if not 1 <= number <= len(self._items):
            raise MissingItemError(f"item: expected 1 to {len(self._items)}, found {number}")
        return self._orders[seat][number - 1]


def create_app(store: VoteStore) -> FastAPI:
    """Return the application that lets people judge a study."""
    judging = Judging(store)
    app = FastAPI(title="teo-lab judge", docs_url=None, redoc_url=None, openapi_url=None)

    # All that changes something is a PUT: a browser lets no other site's page send it.
    @app.put("/api/raters")
    def join(name: Annotated[str, Body(embed=True)]) -> Response:
        return _json(judging.join(name))

    @app.get("/api/raters/{seat}/items/{number}")
    def show(seat: int, number: int) -> Response:
        return _json(judging.show(seat, number))

    @app.put("/api/raters/{seat}/items/{number}")
    def vote(seat: int, number: int, choice: Annotated[Shown, Body(embed=True)]) -> Response:
        return _json(judging.vote(seat, number, choice))

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")

    @app.exception_handler(InputError)
    def refuse(_: Request, error: InputError) -> Response:
        return _json({"detail": str(error)}, 404 if isinstance(error, MissingItemError) else 409)

    @app.middleware("http")
    async def add_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        response.headers.update(_HEADERS)
        return response

    return app


def _json(value: object, status: int = 200) -> Response:
    """Return an answer in ASCII: rewrites may hold half a surrogate pair, which UTF-8 cannot."""
    return Response(json.dumps(value), status, media_type="application/json")
