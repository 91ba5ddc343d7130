"""The description of the API (OpenAPI): problems, the token, and examples that can be sent as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from teo.server.problems import MEDIA_TYPE
from teo.server.schemas import ProblemRecord

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": text,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemRecord"}}},
    }
    for status, text in {
        400: "The body is no JSON.",
        401: "The token is missing or wrong.",
        404: "There is no such model.",
        408: "The body did not arrive in time.",
        413: "Over a limit: body, dialogues, turns or characters.",
        415: "The body is not declared as JSON.",
        421: "The name in `Host` is not of this machine, and the server has no token.",
        422: "A field cannot be used; `errors` names it.",
        429: "Too many dialogues are waiting; try again.",
        503: "The model did not answer in time, or the server is stopping.",
    }.items()
}
"""What may go wrong, by status."""
REWRITING_PROBLEMS = {status: problem for status, problem in PROBLEMS.items() if status not in {404, 421}}
SCHEME = "bearerToken"
_DUNE = ["Who wrote Dune?", "Frank Herbert."]
_MESSAGES = [
    {"role": "user", "content": _DUNE[0]},
    {"role": "assistant", "content": _DUNE[1]},
    {"role": "user", "content": "When was he born?"},
]
REWRITE_EXAMPLES: dict[str, Any] = {
    "turns": {"summary": "One dialogue", "value": {"history": _DUNE, "utterance": "When was he born?"}},
    "messages": {"summary": "One dialogue as chat messages", "value": {"messages": _MESSAGES}},
    "items": {
        "summary": "Several dialogues",
        "value": {
            "items": [
                {"id": "en-1", "history": _DUNE, "utterance": "When was he born?"},
                {"id": "zh-1", "history": ["你喜欢周杰伦吗", "喜欢"], "utterance": "他哪年出生的"},
            ]
        },
    },
    "n_best": {
        "summary": "Several rewrites of one utterance",
        "value": {"history": _DUNE, "utterance": "When was he born?", "n_best": 3},
    },
}
CHAT_EXAMPLES: dict[str, Any] = {
    "messages": {"summary": "The last message is rewritten", "value": {"model": "teo", "messages": _MESSAGES}}
}


def describe_api(app: FastAPI, needs_token: Callable[[str], bool], *, token_set: bool) -> None:
    """Put problem JSON, in place of FastAPI's own errors, what holds for every address, and the token into it.

    `needs_token` says which addresses need the token, if the server has one.
    """
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            whole = describe()
            schemas = whole["components"]["schemas"]
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
            record = ProblemRecord.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= record.pop("$defs")
            schemas["ProblemRecord"] = record
            scheme = {"type": "http", "scheme": "bearer", "description": "The token of `teo serve` (TEO_TOKEN)."}
            whole["components"]["securitySchemes"] = {SCHEME: scheme}
            for path, operations in whole["paths"].items():
                for operation in operations.values():
                    operation["responses"]["421"] = PROBLEMS[421]
                    if needs_token(path):
                        operation["security"] = [{SCHEME: []}] if token_set else [{}, {SCHEME: []}]
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]
