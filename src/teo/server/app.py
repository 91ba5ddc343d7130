"""The application: addresses, and the path of a request from its body to its record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles

from teo.decision import PREFER
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.result import Rewrite
from teo.server.batching import (
    BatchedAnswer,
    Batcher,
    ClosedError,
    ModelFailedError,
    QueueFullError,
    RewriteOptions,
    ServedRewriter,
)
from teo.server.chat import chat_completion, chat_events, choice_texts, measure_usage
from teo.server.description import CHAT_EXAMPLES, PROBLEMS, REWRITE_EXAMPLES, REWRITING_PROBLEMS, describe_api
from teo.server.metrics import ServerMetrics, outcome_of
from teo.server.middleware import RequestMiddleware, needs_token
from teo.server.problems import (
    ProblemError,
    RecordResponse,
    from_error,
    from_validation,
    install_handlers,
    invalid,
    too_large,
)
from teo.server.schemas import (
    BadItem,
    ChatCompletion,
    ChatRequest,
    DialogueBody,
    Health,
    ItemsRecord,
    ItemsRequest,
    ModelList,
    RewriteRecord,
    RewriteRequest,
    ServedModel,
    read_dialogue,
    read_options,
    write_record,
)
from teo.server.settings import CORS_HEADERS, ServerSettings
from teo.version import __version__

PAGE = Path(__file__).parent / "page"


def create_app(rewriter: ServedRewriter, settings: ServerSettings | None = None) -> FastAPI:
    """Return the application that serves a rewriter."""
    settings = settings or ServerSettings()
    metrics = ServerMetrics()
    service = Service(rewriter, settings, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.close()

    app = FastAPI(
        title="teo",
        version=__version__,
        summary="Rewrite the last utterance of a dialogue so that it stands on its own.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.service = service
    install_handlers(app, metrics.count_refused)
    _add_rewriting(app, service)
    _add_models(app, service)
    _add_state(app, service)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    describe_api(app, needs_token, token_set=settings.token is not None)
    app.add_middleware(RequestMiddleware, settings=settings, metrics=metrics)
    if settings.cors_origins:  # outside the middleware, so that a page can read why it was refused
        app.add_middleware(CORSMiddleware, allow_origins=settings.cors_origins, **CORS_HEADERS)
    return app


class Service:
    """What the handlers share: one model's queue, the limits and the counts."""

    def __init__(self, rewriter: ServedRewriter, settings: ServerSettings, metrics: ServerMetrics) -> None:
        self.rewriter, self.settings, self.metrics = rewriter, settings, metrics
        self.batcher = Batcher(rewriter, settings, on_batch=metrics.observe_batch, on_queue=metrics.queue.set)

    async def rewrite(
        self, request: Request, dialogues: Sequence[Dialogue | ProblemError], options: RewriteOptions
    ) -> tuple[list[Rewrite | ProblemError], dict[str, str]]:
        """Return the rewrite of each dialogue, or its problem, and headers that say where the time went.

        What is a problem already stays one; the others are asked of the model together.
        """
        outcomes: list[Any] = [self._within_limits(dialogue) for dialogue in dialogues]
        asked = {place: one for place, one in enumerate(outcomes) if isinstance(one, Dialogue)}
        answers = await self._answers(request, list(asked.values()), options) if asked else []
        self.metrics.observe_answers(answers)
        self.metrics.count_refused(len(outcomes) - len(asked))
        fields = _log_fields(answers)
        if self.settings.log_text:
            fields["text"] = [
                {"history": dialogue.history, "utterance": dialogue.utterance, "result": str(answer.result)}
                for dialogue, answer in zip(asked.values(), answers, strict=True)
            ]
        request.scope["teo_log"].update(fields)
        for place, answer in zip(asked, answers, strict=True):
            outcomes[place] = (
                answer.result
                if isinstance(answer.result, Rewrite)
                else from_error(answer.result).named("history", _turns_field(asked[place]))
            )
        timing = f"queue;dur={fields['queue_ms']}, model;dur={fields['model_ms']}"
        return outcomes, {"Server-Timing": timing}

    async def rewrite_one(
        self, request: Request, dialogue: Dialogue, options: RewriteOptions
    ) -> tuple[Rewrite, dict[str, str]]:
        """Return the rewrite of a dialogue and the headers; a problem is raised."""
        (outcome,), headers = await self.rewrite(request, [dialogue], options)
        if isinstance(outcome, ProblemError):
            raise outcome
        return outcome, headers

    def read(self, body: DialogueBody | ChatRequest) -> Dialogue:
        """Return the dialogue of a request that has one; what cannot be one is counted, and a problem."""
        dialogue = _try_read(body)
        if isinstance(dialogue, ProblemError):
            self.metrics.count_refused()
            raise dialogue
        return dialogue

    def _within_limits(self, dialogue: Dialogue | ProblemError) -> Dialogue | ProblemError:
        """Return the dialogue, or the problem that it is too large."""
        if isinstance(dialogue, ProblemError):
            return dialogue
        field, most = _turns_field(dialogue), self.settings.max_characters
        turns, own = len(dialogue.history), len(dialogue.utterance)
        characters = sum(map(len, dialogue.history)) + own
        if turns > self.settings.max_turns:
            message = f"expected a history of at most {self.settings.max_turns} turns, found {turns}"
            return too_large(field, f"{message}; send the latest")
        if own > most:
            named, text = ("utterance", "") if field == "history" else (field, "a last message of ")
            return too_large(named, f"expected {text}at most {most} characters, found {own}; shorten it")
        if characters > most:
            message = f"expected a dialogue of at most {most} characters, found {characters}"
            return too_large(field, f"{message}; send the latest turns")
        return dialogue

    async def _answers(
        self, request: Request, dialogues: Sequence[Dialogue], options: RewriteOptions
    ) -> list[BatchedAnswer]:
        """Return the answers, unless the caller leaves first, the queue is full or the time is up."""
        asked = asyncio.ensure_future(self.batcher.rewrite(dialogues, options))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({asked, gone}, timeout=self.settings.request_timeout, return_when="FIRST_COMPLETED")
            if asked.done():
                return asked.result()
            if gone.done():
                raise ProblemError(400, "client-left", "the connection ended before the answer")
            seconds = f"{self.settings.request_timeout:g}"
            raise _unavailable("timeout", f"the model did not answer within {seconds} s; try again")
        except QueueFullError:
            detail = f"queue: {self.batcher.waiting} dialogues wait already, at most {self.settings.max_queue} may"
            raise ProblemError(429, "queue-full", f"{detail}; try again", headers={"Retry-After": "1"}) from None
        except (ClosedError, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # this request itself was cancelled, not only its dialogues
                raise
            raise _unavailable("stopping", "the server is stopping; try again") from None
        except ModelFailedError as error:
            raise error.__cause__ or error from None
        finally:
            asked.cancel()
            gone.cancel()


def _add_rewriting(app: FastAPI, service: Service) -> None:
    """Add the addresses that rewrite."""

    async def require_few_items(request: Request) -> None:
        """Refuse too many dialogues before each of them is validated."""
        body, most = await request.json() if await request.body() else None, service.settings.max_items
        found = body.get("items") if isinstance(body, dict) else None
        if isinstance(found, list) and len(found) > most:
            raise too_large("items", f"expected at most {most} dialogues, found {len(found)}")

    @app.post(
        "/v1/rewrite",
        response_model=RewriteRecord | ItemsRecord,
        responses=REWRITING_PROBLEMS,
        dependencies=[Depends(require_few_items)],
        tags=["rewrite"],
    )
    async def rewrite(
        body: Annotated[RewriteRequest, Body(openapi_examples=REWRITE_EXAMPLES)],
        request: Request,
    ) -> Response:
        """Rewrite the last utterance of one dialogue, or of several (`items`); the records keep their order.

        One of several that cannot be rewritten has an `error` in its place.
        """
        options = _require_one_threshold(read_options(body))
        if not isinstance(body, ItemsRequest):
            result, headers = await service.rewrite_one(request, service.read(body), options)
            return RecordResponse(write_record(body, result), headers=headers)
        dialogues = [_try_read(item) for item in body.items]
        results, headers = await service.rewrite(request, dialogues, options)
        records = [
            write_record(item, result) if isinstance(result, Rewrite) else _error_record(item, result, number)
            for number, (item, result) in enumerate(zip(body.items, results, strict=True))
        ]
        return RecordResponse({"items": records}, headers=headers)

    streamed: dict[str, Any] = {"content": {"text/event-stream": {}}}

    @app.post(
        "/v1/chat/completions",
        response_model=ChatCompletion,
        responses={200: streamed, **REWRITING_PROBLEMS},
        tags=["rewrite"],
    )
    async def chat_completions(
        body: Annotated[ChatRequest, Body(openapi_examples=CHAT_EXAMPLES)], request: Request
    ) -> Response:
        """Answer with the rewrite of the last message, for clients that speak the chat completion protocol."""
        if body.misspelt is not None:
            found, expected = body.misspelt
            raise invalid(found, f"unknown field; expected {expected}")
        options = _require_one_threshold(
            RewriteOptions(body.prefer, body.min_confidence, body.truncation, n_best=body.n or 1)
        )
        dialogue = service.read(body)
        try:
            result, headers = await service.rewrite_one(request, dialogue, options)
        except ProblemError as problem:
            raise problem.named("n_best", "n") from None
        usage = await asyncio.to_thread(measure_usage, service.rewriter, dialogue, choice_texts(result))
        completion = chat_completion(result, service.rewriter.name, request.scope["teo_request_id"], usage)
        if body.stream:
            with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            events = chat_events(completion, with_usage=with_usage)
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        return RecordResponse(completion, headers=headers)


def _add_models(app: FastAPI, service: Service) -> None:
    """Add the addresses at which clients of the chat protocol look for models."""
    served = ServedModel(id=service.rewriter.name, created=int(time.time()))

    @app.get("/v1/models", tags=["rewrite"], responses={401: PROBLEMS[401]})
    async def models() -> ModelList:
        """List the model that is served."""
        return ModelList(data=[served])

    @app.get("/v1/models/{model_id:path}", tags=["rewrite"], responses={s: PROBLEMS[s] for s in (401, 404, 422)})
    async def model(model_id: str) -> ServedModel:
        """Describe the model that is served."""
        if model_id != served.id:
            raise ProblemError(404, "not-found", f"model: expected '{served.id}', found another; see /v1/models")
        return served


def _add_state(app: FastAPI, service: Service) -> None:
    """Add the page, and the addresses that say how the server is."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(PAGE / "docs.html", headers={"Cache-Control": "no-cache"})

    @app.get("/health", tags=["state"], responses={503: PROBLEMS[503]})
    async def health() -> Health:
        """Return the server's status: model, threshold, whether a token is required."""
        rewriter = service.rewriter
        if service.batcher.model_seconds > service.settings.model_timeout / 2:
            raise _unavailable("stuck", "the model has not answered for a while; the worker will be replaced")
        return Health(
            version=__version__,
            model=rewriter.name,
            variant=rewriter.variant,
            threshold=rewriter.threshold,
            prefer=dict(PREFER.items()),
            source_limit=rewriter.source_limit,
            queue=service.batcher.waiting,
            token_required=service.settings.token is not None,
        )

    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @app.get("/metrics", tags=["state"], response_class=Response, responses={200: text, 401: PROBLEMS[401]})
    async def metrics() -> Response:
        """Give the counts and times in Prometheus' text format."""
        return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _require_one_threshold(options: RewriteOptions) -> RewriteOptions:
    """Return the options, unless they hold a threshold by name and one by number."""
    if options.prefer is not None and options.min_confidence is not None:
        raise invalid("prefer", "expected either prefer or min_confidence, found both")
    return options


def _try_read(body: DialogueBody | ChatRequest | BadItem) -> Dialogue | ProblemError:
    """Return the dialogue of a body, or its problem."""
    if isinstance(body, BadItem):
        return from_validation([{**error, "loc": ("body", *error["loc"])} for error in body.errors], in_item=True)
    try:
        return read_dialogue(body)
    except InputError as error:
        return from_error(error)


def _turns_field(dialogue: Dialogue) -> str:
    """Return the field in which a dialogue's turns were sent; only messages tell who spoke."""
    return "history" if dialogue.speakers is None else "messages"


def _error_record(item: DialogueBody | BadItem, problem: ProblemError, number: int) -> dict[str, Any]:
    """Return what stands in the place of a dialogue that cannot be rewritten."""
    named = {} if item.id is None else {"id": item.id}
    return named | {"error": problem.to_item(f"items[{number}]")}


def _log_fields(answers: Sequence[BatchedAnswer]) -> dict[str, Any]:
    """Return what the log says of a request's answers: counts and times."""
    outcomes = [outcome_of(answer.result) for answer in answers]
    return {
        "dialogues": len(answers),
        "batch": max((answer.batch_size for answer in answers), default=0),
        "queue_ms": round(1000 * max((answer.queue_seconds for answer in answers), default=0.0), 2),
        "model_ms": round(1000 * max((answer.model_seconds for answer in answers), default=0.0), 2),
        **{outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))},
    }


def _unavailable(name: str, detail: str) -> ProblemError:
    return ProblemError(503, name, detail, headers={"Retry-After": "1"})


async def _disconnected(request: Request) -> None:
    """Return when the caller has left."""
    while (await request.receive())["type"] != "http.disconnect":
        await asyncio.sleep(0)
