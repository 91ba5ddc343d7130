"""What a caller is told when a request is not answered: problem JSON (RFC 9457) that names the field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from teo.arguments import kind_of
from teo.dialogue import ROW, name_keys
from teo.errors import TeoError
from teo.rewriter import MOST_ALTERNATIVES
from teo.server.schemas import FORM_TAGS

MEDIA_TYPE = "application/problem+json"
CHAT_PATH = "/v1/chat/completions"
REWRITE_PATH = "/v1/rewrite"
_MOST_ERRORS = 20
_LONGEST_NAME = 100
_ITEM = re.compile(r"items\[\d+\]")
_PATH = re.compile(r"([a-z_]+(?:\[\d+\]|\.[a-z_]+)*): ")


class RecordResponse(JSONResponse):
    """JSON in UTF-8; a record that holds lone surrogates, which UTF-8 cannot, is written with escapes."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content).encode("ascii")


@dataclass(eq=False)
class ProblemError(Exception):
    """A request that is not answered: status, a name for machines, a sentence for people."""

    status: int
    name: str
    detail: str
    errors: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self, request_id: str, path: str) -> dict[str, Any]:
        """Return the problem as JSON; clients of the chat protocol, which ask elsewhere too, find their own form."""
        errors = [{"field": name, "message": message} for name, message in self.errors]
        record: dict[str, Any] = {
            "type": f"urn:teo:problem:{self.name}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
            "errors": errors,
        }
        if path != REWRITE_PATH:
            param = errors[0]["field"] if errors else None
            record["error"] = {"message": self.detail, "type": self.name, "param": param, "code": self.name}
        return record

    def to_item(self, place: str) -> dict[str, Any]:
        """Return the problem of one of several dialogues as that item's `error`; `place` is the item's path."""
        field_name = self.errors[0][0] if self.errors else ""
        return {
            "type": f"urn:teo:problem:{self.name}",
            "status": self.status,
            "field": f"{place}.{field_name}" if field_name not in {"", "body"} else place,
            "message": self.detail.removeprefix("body: "),
        }

    def named(self, name: str, sent_name: str) -> ProblemError:
        """Return the problem with a field under the name by which the caller sent it."""
        if not self.errors or self.errors[0][0] != name:
            return self
        return replace(
            self,
            detail=sent_name + self.detail.removeprefix(name),
            errors=[(sent_name, self.errors[0][1]), *self.errors[1:]],
        )

    def to_response(self, request_id: str, path: str) -> Response:
        """Return the problem as an answer."""
        return RecordResponse(
            self.to_dict(request_id, path), self.status, headers=dict(self.headers), media_type=MEDIA_TYPE
        )


def invalid(field_name: str, message: str) -> ProblemError:
    """Return the problem of one bad field."""
    return ProblemError(422, "invalid-input", f"{field_name}: {message}", [(field_name, message)])


def too_large(field_name: str, message: str) -> ProblemError:
    """Return the problem of a field over its limit."""
    return ProblemError(413, "too-large", f"{field_name}: {message}", [(field_name, message)])


def from_error(error: TeoError, prefix: str = "") -> ProblemError:
    """Return the problem that one of the package's own errors is; its sentence begins with the field."""
    text = str(error)
    match = _PATH.match(text)
    if match is None:
        return ProblemError(422, "invalid-input", text, [(prefix.rstrip("."), text)] if prefix else [])
    return invalid(prefix + match.group(1), text[match.end() :])


def from_validation(errors: Sequence[Mapping[str, Any]], *, tagged: bool = True, in_item: bool = False) -> ProblemError:
    """Return the problem that a body's failed validation is, the fields named.

    `tagged`: the body has several forms, whose names stand in the places that validation reports. `in_item`: the body
    is one of several dialogues.
    """
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is not None:
        reason = str(broken.get("ctx", {}).get("error", "it cannot be parsed"))
        message = f"expected JSON, found something else at character {broken['loc'][-1]} ({reason})"
        return ProblemError(400, "invalid-json", f"body: {message}", [("body", message)])
    found: dict[str, str] = {}
    for error in errors:
        if error["loc"][-1] == "str" and isinstance(error.get("input"), list):
            continue  # a message's content may be a string or a list: a list is judged as one
        found.setdefault(_field(error["loc"], tagged=tagged), _sentence(error, in_item=in_item))
    listed = list(found.items())[:_MOST_ERRORS]
    name, message = listed[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return ProblemError(422, "invalid-input", f"{name}: {message}{more}", listed)


def install_handlers(app: FastAPI, count_refused: Callable[[], None]) -> None:
    """Make every error of the application an answer in problem JSON; a dialogue that is none is counted."""

    def respond(request: Request, problem: ProblemError) -> Response:
        return problem.to_response(request.scope.get("teo_request_id", ""), request.url.path)

    async def on_problem(request: Request, error: Any) -> Response:
        return respond(request, error)

    async def on_validation(request: Request, error: Any) -> Response:
        if isinstance(error.body, Mapping) and "items" not in error.body:
            count_refused()
        return respond(request, from_validation(error.errors(), tagged=request.url.path != CHAT_PATH))

    async def on_http(request: Request, error: Any) -> Response:
        return respond(request, _from_http(request, error))

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)


def _from_http(request: Request, error: HTTPException) -> ProblemError:
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.NOT_FOUND:
        return ProblemError(
            404, "not-found", f"{request.url.path}: no such address; see /openapi.json", headers=headers
        )
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} {request.url.path}: expected {headers.get('Allow', 'another method')}"
        return ProblemError(405, "method-not-allowed", detail, headers=headers)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        message = "expected JSON in UTF-8, found something that cannot be parsed"
        return ProblemError(400, "invalid-json", f"body: {message}", [("body", message)], headers)
    return ProblemError(error.status_code, "http-error", str(error.detail), headers=headers)


def _field(place: Sequence[str | int], *, tagged: bool) -> str:
    """Return a field's path, such as `items[2].history[0]`, of where a validation failed."""
    path, at_form = "", tagged
    for part in place[1:]:  # the first is always "body"
        if isinstance(part, int):
            path += f"[{part}]"
            at_form = tagged and _ITEM.fullmatch(path) is not None
        elif at_form and part in FORM_TAGS:
            at_form = False
        elif not (
            path.rpartition(".")[2] in {"content", "id"} and (part in {"str", "int"} or part.startswith("list["))
        ):
            name = part[:_LONGEST_NAME].encode("utf-8", "replace").decode()
            path += f".{name}" if path else name
    return path or "body"


def _sentence(error: Mapping[str, Any], *, in_item: bool) -> str:
    """Return what was expected and found, in the package's wording."""
    kind, value, name = error["type"], error.get("input"), error["loc"][-1]
    if kind == "missing" and isinstance(value, Mapping) and name in {"history", "utterance"}:
        return f"missing; found {name_keys(value)}; a dialogue is {ROW}"
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        return _describe_extra(name, in_item=in_item)
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if kind == "many_keys":
        return f"expected the fields of /openapi.json, found {error['ctx']['found']} keys"
    out_of_range = kind in {"greater_than_equal", "less_than_equal", "finite_number"}
    if name in {"n_best", "n"}:
        expected = f"an integer from 1 to {MOST_ALTERNATIVES}"
    elif "id" in error["loc"][-2:]:
        expected = "a string or an integer"
    elif out_of_range:
        expected = "a number from 0 to 1"
    else:
        expected = (
            error["ctx"]["expected"] if kind == "literal_error" else _EXPECTED.get(kind, str(error["msg"]).lower())
        )
    found = value if out_of_range else "no JSON" if isinstance(value, bytes) else kind_of(value)
    return f"expected {expected}, found {found}"


def _describe_extra(name: str, *, in_item: bool) -> str:
    """Return why a field is not one of its dialogue's."""
    if name in {"history", "utterance", "messages", "items"}:
        return _SEVERAL_FORMS
    if in_item and name in _OPTIONS:
        return "expected beside items, for all of them; found in one of them"
    return f"unknown field; expected {_ITEM_FIELDS if in_item else _FIELDS}"


_SEVERAL_FORMS = "expected either items, or messages, or history and utterance; found more than one of them"
_OPTIONS = ("prefer", "min_confidence", "truncation", "n_best")
_ITEM_FIELDS = "history and utterance, or messages; and id"
_FIELDS = f"history and utterance, or messages, or items; and id, {', '.join(_OPTIONS)}"
_SENTENCES = {
    "string_unicode": "expected Unicode text, found a lone surrogate",
    "too_short": "expected at least one message, found none; the last message is rewritten",
}
_EXPECTED = {
    "string_type": "a string",
    "list_type": "a list",
    "float_type": "a number from 0 to 1",
    "bool_type": "true or false",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "union_tag_not_found": "an object",
}
